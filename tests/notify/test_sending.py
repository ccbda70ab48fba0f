"""Sending through apprise in its child, to a real HTTP server."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.errors import SetupError
from perdure.notify.sending import NotDelivered, PerhapsDelivered, carrying
from tests.support.hearing import listening


def test_messages_go_through_one_child_with_keys_and_errors_that_hold_no_address() -> None:
    """What arrives is what was given; what does not is told by kind, and the next one is sent all the same."""
    with listening() as ear, carrying() as send:
        send("team", ear.url, "Title ✓", "body <b>&", "one")
        with pytest.raises(SetupError, match="'team' is none that apprise knows"):
            send("team", "secret-word", "t", "b", "two")
        with pytest.raises(NotDelivered, match="'team' did not take it") as refused:
            send("team", "json://127.0.0.1:1/token-of-the-team", "t", "b", "three")
        send("team", ear.url, "t", "b", "one")
    assert "token-of-the-team" not in str(refused.value)
    assert ear.heard == [("Title ✓", "body <b>&"), ("t", "b")]
    assert len(set(ear.keys)) == 1


def test_silent_channel_costs_its_limit_and_the_next_message_gets_a_new_child() -> None:
    """A message that nobody answered for is one that may have arrived."""
    with listening() as ear, listening() as other, carrying(timedelta(seconds=0.01)) as send:
        with pytest.raises(PerhapsDelivered, match=r"within 0\.01 s"):
            send("team", ear.url, "t", "b", "one")
        with pytest.raises(PerhapsDelivered):
            send("team", other.url, "t", "b", "two")
