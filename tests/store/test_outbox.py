"""The outbox: which records have messages, and who sends one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.errors import NotFound
from perdure.store.outbox import NewMessage, Outbox
from tests.store.ledger_kit import AT, Scene

KINDS = ("gate.opened",)
PATIENCE = timedelta(minutes=2)
LATER = AT + PATIENCE


@pytest.fixture
def scene(ledger, blobs, key):
    return Scene(ledger, blobs, key)


def filled(scene):
    """An outbox with one message about an open gate; returns both."""
    job_id = scene.admit()
    scene.open_gate(job_id, scene.freeze(job_id))
    outbox = Outbox(scene.ledger.database)
    upto, [record] = outbox.untold(KINDS)
    message = NewMessage(f"{record.position}.waits.0/chat", "chat", "waits", record.position, job_id, "", AT)
    assert outbox.add(upto, [message])
    return outbox, message


def test_record_is_untold_until_its_messages_are_written(scene):
    """Once they are, nobody makes them again, also who looked before."""
    outbox, message = filled(scene)
    assert outbox.untold(KINDS) == (0, [])
    assert not outbox.add(message.position, [message])
    assert [one.key for one in outbox.list()] == [message.key]


def test_records_of_other_kinds_are_passed_over(scene):
    """They cost one look."""
    scene.admit()
    outbox = Outbox(scene.ledger.database)
    upto, records = outbox.untold(KINDS)
    assert upto == 1 and records == []
    assert outbox.add(upto, [])
    assert outbox.untold(KINDS) == (0, [])


def test_message_is_taken_by_one(scene):
    """Who takes it has time to send it; then somebody else may, and it is doubtful."""
    outbox, message = filled(scene)
    taken = outbox.take("one", AT, PATIENCE)
    assert (taken.key, taken.attempts, taken.is_doubtful) == (message.key, 1, False)
    assert outbox.take("two", LATER - timedelta(seconds=1), PATIENCE) is None
    again = outbox.take("two", LATER, PATIENCE)
    assert (again.attempts, again.is_doubtful) == (2, True)


def test_what_the_dead_were_sending_is_due_at_once_and_doubtful(scene):
    """What the living send is left to them."""
    outbox, _ = filled(scene)
    outbox.take("dead", AT, PATIENCE)
    outbox.release(lambda sender: sender != "dead", AT)
    assert not outbox.is_any_due(AT)
    outbox.release(lambda sender: sender == "dead", AT)
    again = outbox.take("two", AT, PATIENCE)
    assert again.is_doubtful


def test_failure_is_kept_and_tried_again_without_doubt(scene):
    """What was refused is sure not to have arrived."""
    outbox, message = filled(scene)
    outbox.take("one", AT, PATIENCE)
    outbox.settle(message.key, "waiting", at=AT, error="refused", again_at=LATER)
    [listed] = outbox.list(states=["waiting"])
    assert (listed.error, listed.due_at) == ("refused", LATER)
    again = outbox.take("one", LATER, PATIENCE)
    assert not again.is_doubtful


def test_message_that_was_given_up_can_be_sent_again(scene):
    """A sent one is not sent twice, and one that is not there is said so."""
    outbox, message = filled(scene)
    outbox.settle(message.key, "failed", at=AT, error="refused")
    assert outbox.send_again(message.key, at=LATER).state == "waiting"
    outbox.settle(message.key, "sent", at=LATER)
    assert outbox.send_again(message.key, at=LATER).state == "sent"
    assert not outbox.is_any_due(LATER)
    with pytest.raises(NotFound, match="no message"):
        outbox.send_again("other", at=AT)
