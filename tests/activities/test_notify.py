"""People are told of what waits and how it ended, over a real HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.notify import Channels, Courier
from perdure.contracts.job import JobPhase
from perdure.contracts.notify import Channel
from perdure.contracts.plan import ApprovalRule, ReviewRule
from perdure.notify.sending import Send, carrying
from perdure.store.outbox import Outbox
from tests.activities.kit import Bench, now
from tests.support.hearing import Ear, listening

WORDS = Path(__file__).resolve().parents[2] / "templates" / "messages"
RULE = ReviewRule(approvals=[ApprovalRule(group="maintainers")], remind_after_seconds=[3600])


class Office:
    """A bench with one channel; ``time`` is what the courier takes for now."""

    def __init__(self, bench: Bench, ear: Ear, send: Send) -> None:
        self.bench, self.ear, self.send = bench, ear, send
        self.outbox = Outbox(bench.ledger.database)
        self.channels = Channels({"team": Channel()})
        self.addresses = {"team": ear.url}
        self.time: datetime | None = None

    def courier(self, sender: str = "one") -> Courier:
        """One as the worker builds it."""
        return Courier(
            self.bench.ledger,
            self.bench.blobs,
            self.bench.decisions,
            lambda: self.channels,
            self.addresses.get,
            WORDS,
            sender,
            lambda name: name == "dead",
            lambda: nullcontext(self.send),
            lambda: self.time or now(),
        )

    def open(self, rule: ReviewRule = RULE) -> None:
        """A plan waits."""
        self.bench.admit()
        self.bench.freeze(rule=rule)
        self.bench.open_gate()

    def states(self, about: str) -> list[str]:
        """How the messages about something fare."""
        return [one.state for one in self.outbox.list() if one.about == about]


@pytest.fixture(scope="module")
def send() -> Iterator[Send]:
    with carrying() as sending:
        yield sending


@pytest.fixture
def office(bench: Bench, send: Send) -> Iterator[Office]:
    with listening() as ear:
        yield Office(bench, ear, send)


def test_what_waits_is_told_once_with_who_is_missing_and_where_to_look(office: Office) -> None:
    """It names the request, never what to decide; looking again tells nothing twice."""
    office.open()
    office.channels = Channels({"team": Channel()}, page="https://perdure.internal")
    courier = office.courier()
    assert courier.work() == 1
    assert courier.work() == 0
    [(title, body)] = office.ear.heard
    assert title == "bench/1 (bench) waits for 1 from maintainers"
    assert f"https://perdure.internal/plans/{office.bench.plan.digest}" in body
    assert "ada" in body and "approve" not in body


def test_reminder_is_told_when_it_is_due_and_only_while_the_plan_waits(office: Office) -> None:
    """A plan that was decided meanwhile reminds nobody."""
    office.open()
    courier = office.courier()
    courier.work()
    office.time = now() + timedelta(minutes=59)
    assert courier.work() == 0
    office.time = now() + timedelta(minutes=61)
    courier.work()
    assert office.ear.titles[1:] == ["bench/1 (bench) still waits for 1 from maintainers"]


def test_decided_plan_reminds_nobody(office: Office) -> None:
    """The message is dropped, which can be seen."""
    office.open()
    courier = office.courier()
    courier.work()
    office.bench.decide("approve")
    office.bench.close_gate()
    office.time = now() + timedelta(hours=2)
    courier.work()
    assert len(office.ear.heard) == 1
    assert office.states("reminder") == ["dropped"]


def test_message_that_is_refused_is_sent_again_with_its_own_key(office: Office) -> None:
    """The reason is kept, without the address; each attempt waits longer."""
    office.open(ReviewRule(approvals=[ApprovalRule(group="maintainers")]))
    office.ear.status = 503
    courier = office.courier()
    courier.work()
    [waiting] = office.outbox.list()
    assert (waiting.state, waiting.attempts) == ("waiting", 1)
    assert "503" in waiting.error and "hook-of-the-team" not in waiting.error
    assert courier.work() == 0
    office.ear.status = 200
    office.time = waiting.due_at
    courier.work()
    assert office.states("waits") == ["sent"]
    assert len(office.ear.keys) == 2 and len(set(office.ear.keys)) == 1
    assert "told before" not in office.ear.heard[-1][1]


def test_message_is_given_up_in_the_end_and_said_so(office: Office) -> None:
    """Twenty attempts; then a person can send it again."""
    office.open(ReviewRule(approvals=[ApprovalRule(group="maintainers")]))
    office.ear.status = 500
    courier = office.courier()
    while office.states("waits") != ["failed"]:
        courier.work()
        [message] = office.outbox.list()
        office.time = message.due_at
    assert message.attempts == 20
    office.ear.status = 200
    office.outbox.send_again(message.key, at=office.time or now())
    courier.work()
    assert office.states("waits") == ["sent"]


def test_channel_without_an_address_is_named_with_what_to_do(office: Office) -> None:
    """Nothing is lost: the message waits for it."""
    office.open()
    office.addresses = {}
    office.courier().work()
    [message, _] = sorted(office.outbox.list(), key=lambda one: one.about, reverse=True)
    assert message.state == "waiting" and "secrets/team" in message.error


def test_what_the_dead_were_sending_says_that_it_may_have_been_told(office: Office) -> None:
    """It comes with the same key, so that whoever reads keys hears it once."""
    office.open(ReviewRule(approvals=[ApprovalRule(group="maintainers")]))
    office.courier().work()
    key = office.ear.keys[0]
    [sent] = office.outbox.list()
    office.outbox.settle(sent.key, "waiting", at=now(), again_at=now())  # the end was never written
    office.outbox.take("dead", now(), timedelta(minutes=2))
    courier = office.courier("two")
    assert courier.work() == 0
    courier.take_over()
    courier.work()
    assert office.ear.keys == [key, key]
    assert "may have been told before" in office.ear.heard[1][1]


def test_requester_is_told_of_a_rejection_with_its_reason(office: Office) -> None:
    """And of a job that failed; text that steers a terminal is made visible."""
    office.open()
    office.bench.decide("reject", comment="not \x1b[31mtoday")
    office.bench.close_gate_only("denied")
    office.bench.ledger.note_job(office.bench.note(JobPhase.failed), workflow_id=office.bench.job_id, at=now())
    office.courier().work()
    assert office.ear.titles == ["bench/1 (bench): denied", "bench/1 (bench) needs a look: failed"]
    assert office.states("waits") == ["dropped"]  # it was decided before anybody could be told


def test_without_channels_nobody_is_told_and_nothing_is_left_for_later(office: Office) -> None:
    """A channel that is added hears of what comes after."""
    office.channels = Channels({})
    office.open()
    courier = office.courier()
    assert courier.work() == 0
    office.channels = Channels({"team": Channel()})
    assert courier.work() == 0
    assert office.outbox.list() == []


def test_words_of_an_erased_thread_are_told_to_nobody(office: Office) -> None:
    """A message holds no words of its own."""
    office.open()
    office.courier()
    office.addresses = {}
    courier = office.courier()
    courier.work()
    office.bench.ledger.note_job(office.bench.note(JobPhase.cancelled), workflow_id=office.bench.job_id, at=now())
    office.bench.ledger.erase_thread("bench", by="ada", at=now())
    office.addresses = {"team": office.ear.url}
    office.time = now() + timedelta(minutes=5)
    courier.work()
    assert office.ear.heard == []


def test_every_kind_of_message_has_words(office: Office) -> None:
    """A kind without a template would be told to nobody."""
    kinds: Any = Channel().about
    assert {path.name for path in WORDS.glob("*.txt.j2")} == {"base.txt.j2", *(f"{kind}.txt.j2" for kind in kinds)}
