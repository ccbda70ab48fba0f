"""Who is told what of a record, and on which channels."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perdure.contracts.http import EventView
from perdure.contracts.notify import Channel
from perdure.contracts.people import Person
from perdure.contracts.plan import ApprovalRule, Envelope, EscalationRule, ReviewRule
from perdure.policy.notify import News, goes_to, news_of

AT = datetime(2026, 11, 30, 10, tzinfo=UTC)


def record(kind: str, **body: Any) -> EventView:
    return EventView(position=7, seq=1, thread="t", job_id="job/t/1", kind=kind, at=AT, actor="bo", body=body)


def envelope(**rule: Any) -> Envelope:
    terms = {"approvals": [ApprovalRule(group="dba"), ApprovalRule(group="on-call")], **rule}
    return Envelope(
        job_id="job/t/1",
        thread="t",
        round=1,
        requester="ada",
        template="t",
        template_digest="0" * 64,
        rule=ReviewRule(**terms),
        title="t",
        created_at=AT - timedelta(minutes=1),
        expires_at=AT + timedelta(hours=4),
        undoes="",
    )


def told(event: EventView, **rule: Any) -> list[tuple[str, list[str], datetime]]:
    found = news_of(event, envelope(**rule), "ada")
    return [(one.about, sorted(one.to), one.due_at) for one in found]


def test_open_gate_is_told_to_every_group_that_is_needed() -> None:
    """At once, to all of them."""
    assert told(record("gate.opened")) == [("waits", ["dba", "on-call"], AT)]


def test_reminders_and_escalations_are_due_since_the_plan_was_frozen_and_only_before_it_expires() -> None:
    """What would be due after the deadline is never told."""
    frozen = AT - timedelta(minutes=1)
    escalation = [EscalationRule(group="heads", after_seconds=7200)]
    found = told(record("gate.opened"), remind_after_seconds=[3600, 5 * 3600], escalations=escalation)
    assert found[1:] == [
        ("reminder", ["dba", "on-call"], frozen + timedelta(hours=1)),
        ("escalation", ["heads"], frozen + timedelta(hours=2)),
    ]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (record("gate.closed", outcome="denied"), ["decided"]),
        (record("gate.closed", outcome="expired"), ["decided"]),
        (record("gate.closed", outcome="satisfied"), []),
        (record("gate.closed", outcome="superseded"), []),
        (record("job.phase", phase="paused"), ["waits"]),
        (record("job.phase", phase="unknown"), ["trouble"]),
        (record("job.phase", phase="stuck"), ["trouble"]),
        (record("job.phase", phase="done"), ["ended"]),
        (record("job.phase", phase="applying"), []),
        (record("schedule.alert", schedule="nightly"), ["schedule"]),
        (record("schedule.recovered", schedule="nightly"), ["schedule"]),
        (record("plan.frozen"), []),
    ],
)
def test_requester_is_told_how_it_goes(event: EventView, expected: list[str]) -> None:
    """What ends, fails or waits is told once; what follows by itself is not."""
    assert [(about, to) for about, to, _ in told(event)] == [(about, ["ada"]) for about in expected]


def test_broken_glass_is_told_to_everybody() -> None:
    """Loudly: whatever a channel is for."""
    [news] = news_of(record("decision.break_glass"), None, "ada")
    assert goes_to(Channel.model_validate({"for": ["nobody-else"]}), news, {})


def test_channel_of_a_person_gets_what_their_groups_are_told_today() -> None:
    """Groups are those of the settings; an agent reads for nobody."""
    people = {
        "bo": Person(groups=["dba"]),
        "cy": Person(groups=["*"]),
        "di": Person(),
        "bot": Person.model_validate({"for": "bo", "groups": ["dba"]}),
    }
    news = News("waits", {"dba"}, AT)
    expected = {"bo": True, "cy": True, "di": False, "bot": False, "dba": True, "*": True, "somebody": False}
    for name, gets in expected.items():
        assert goes_to(Channel.model_validate({"for": [name]}), news, people) is gets, name


def test_channel_gets_only_what_it_is_about() -> None:
    """Kinds that it does not name are not told there."""
    channel = Channel.model_validate({"about": ["trouble"]})
    assert not goes_to(channel, News("waits", {"dba"}, AT), None)
    assert goes_to(channel, News("trouble", {"ada"}, AT), None)
