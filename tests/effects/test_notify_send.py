"""notify.send: a message of the plan, handed over with its receipt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perdure.effects.base import Found
from perdure.effects.notify_send import NotifySend
from perdure.errors import EffectNotBegun, UserError
from tests.support.world import World

SAID = {"to": "team", "title": "Orders are switched", "text": "They are live."}
WHY = "A sent message cannot be unsent."


def test_message_is_shown_whole_and_names_its_channel(world: World) -> None:
    """What is approved is what is told; the address stays a secret's name."""
    draft = world.plan("notify.send", SAID, irreversible=WHY).draft
    assert draft.body == SAID
    assert (draft.summary, draft.target, draft.ways_out) == (
        "tell team: Orders are switched",
        "channel:team",
        ["secret:team"],
    )
    assert draft.inverse.irreversible == WHY
    assert world.plan("notify.send", SAID, undo="none_needed").draft.inverse.none_needed


def test_channel_without_an_address_is_said_before_anything_happens(world: World) -> None:
    """In the preconditions, and again when it is to be done."""
    effect, context = NotifySend(), world.context()
    [problem] = effect.check(SAID, context)
    assert "secrets/team" in problem
    with pytest.raises(EffectNotBegun, match="secrets/team"):
        effect.do(SAID, context)
    known = replace(context, secrets={"team": "json://x"})
    assert effect.check(SAID, known) == []
    assert effect.do(SAID, known) == {"handed over to": "team"}
    assert effect.probe(SAID, known).found is Found.not_done  # nobody sends it before there is a receipt


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"to": "The Team"}, "a channel's name"),
        ({"title": "two\nlines"}, "one line"),
        ({"text": "x" * 4001}, "4000"),
        ({"message": "x"}, "takes no 'message'"),
        ({"title": ""}, "title"),
    ],
)
def test_message_that_cannot_be_sent_is_refused(world: World, change: dict[str, str], said: str) -> None:
    """With what was expected."""
    with pytest.raises(UserError, match=said):
        world.plan("notify.send", {**SAID, **change}, irreversible=WHY)


def test_way_back_must_be_spoken_of(world: World) -> None:
    """A template says why it cannot be unsent, or that nothing has to be."""
    with pytest.raises(UserError, match="irreversible"):
        world.plan("notify.send", SAID)
