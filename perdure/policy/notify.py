"""Who is told what: from one record of the ledger to the messages that it asks for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from perdure.contracts.http import EventView
from perdure.contracts.job import JobPhase
from perdure.contracts.notify import EVERYBODY, About, Channel
from perdure.contracts.people import Person
from perdure.contracts.plan import Envelope
from perdure.policy.people import EVERY_GROUP
from perdure.policy.review_rules import deadline_of

NOTICE = "notify.send"

TOLD_KINDS = (
    "effect.receipt",
    "gate.opened",
    "gate.closed",
    "decision.break_glass",
    "job.phase",
    "schedule.alert",
    "schedule.recovered",
)
"""Records that anybody is told of; of all others nobody is."""

_UNDECIDED = ("satisfied", "superseded", "cancelled")
"""Ends of a gate that need no word of their own: what follows has one, or whoever made it so knows."""
_TROUBLE = (JobPhase.unknown, JobPhase.failed, JobPhase.stuck)
_ENDED = (JobPhase.done, JobPhase.nothing_to_do)


@dataclass(frozen=True)
class News:
    """Something that people are told once each."""

    about: About
    to: Collection[str]
    """Groups and people."""
    due_at: datetime
    number: int = 0
    """Tells several of one kind about one record apart: reminders."""


def news_of(event: EventView, envelope: Envelope | None, requester: str) -> list[News]:
    """Return what a record asks to tell.

    Args:
        envelope: of the plan that it is about; a gate's record needs it.
        requester: of the job that it is about.
    """
    if event.kind == "gate.opened" and envelope is not None:
        return _opened(event, envelope)
    if event.kind == "gate.closed" and event.body.get("outcome") not in _UNDECIDED:
        return [News("decided", {requester}, event.at)]
    if event.kind == "decision.break_glass":
        return [News("break_glass", {EVERYBODY}, event.at)]
    if event.kind == "job.phase":
        return _phase(event, requester)
    if event.kind.startswith("schedule."):
        return [News("schedule", {requester}, event.at)]
    return []


def goes_to(channel: Channel, news: News, people: Mapping[str, Person] | None) -> bool:
    """Whether a channel gets it: it is for somebody who is told, or one of both is for everybody."""
    if news.about not in channel.about:
        return False
    if EVERYBODY in news.to or EVERYBODY in channel.to:
        return True
    return any(name in news.to or _speaks_for(name, news.to, people) for name in channel.to)


def _speaks_for(name: str, groups: Collection[str], people: Mapping[str, Person] | None) -> bool:
    person = (people or {}).get(name)
    return person is not None and not person.acts_for and any(g in groups or g == EVERY_GROUP for g in person.groups)


def _opened(event: EventView, envelope: Envelope) -> list[News]:
    rule = envelope.rule
    groups = {one.group for one in rule.approvals}
    end = deadline_of(envelope, rule)
    reminders = [
        News("reminder", groups, envelope.created_at + timedelta(seconds=seconds), number)
        for number, seconds in enumerate(sorted(rule.remind_after_seconds))
    ]
    escalations = [
        News("escalation", {one.group}, envelope.created_at + timedelta(seconds=one.after_seconds), number)
        for number, one in enumerate(rule.escalations)
    ]
    return [News("waits", groups, event.at), *(one for one in [*reminders, *escalations] if one.due_at < end)]


def _phase(event: EventView, requester: str) -> list[News]:
    phase = event.body.get("phase")
    if phase == JobPhase.paused:
        return [News("waits", {requester}, event.at)]
    if phase in _TROUBLE:
        return [News("trouble", {requester}, event.at)]
    return [News("ended", {requester}, event.at)] if phase in _ENDED else []
