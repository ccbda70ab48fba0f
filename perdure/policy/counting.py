"""Whether approvals are enough: groups × counts, their order, escalation, and each person's authority once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from perdure.contracts.decisions import Decision
from perdure.contracts.plan import ApprovalRule, Envelope, ReviewRule
from perdure.policy.people import Today, delegated_to, groups_of, is_in


@dataclass(frozen=True)
class Count:
    """What approvals come to."""

    missing: list[str]
    """Who is still needed, "1 from dba"; empty: the rule is satisfied."""
    idle: dict[str, str] = field(default_factory=dict)
    """Approvals that count for no group yet, by id, with the reason."""


@dataclass(frozen=True)
class Voice:
    """One person's authority behind a decision: the decider's own, or one that was delegated to it."""

    name: str
    groups: Sequence[str]


def voices_of(decision: Decision, rule: ReviewRule, envelope: Envelope, today: Today) -> list[Voice]:
    """Return every authority that a decision speaks with.

    What somebody could not approve because of who they are, nobody else approves in their place.
    """
    delegated = delegated_to(decision, today).items()
    found = [Voice(decision.by, groups_of(decision, today))]
    found += [Voice(name, groups) for name, groups in delegated if not why_own(name, rule, envelope)]
    return [voice for voice in found if voice.groups]


def why_own(name: str, rule: ReviewRule, envelope: Envelope) -> str:
    """Return why somebody may not approve what is their own; empty when they may."""
    if name == envelope.requester and not rule.requester_may_approve:
        return f"{name} asked for this job, and its rule wants somebody else to approve"
    if name in envelope.authors and not (rule.requester_may_approve and rule.authors_may_approve):
        return f"{name} wrote a part of this plan, and its rule wants somebody else to approve"
    return ""


def groups_that_decide(rule: ReviewRule, envelope: Envelope, at: datetime) -> list[str]:
    """Return the groups whose members may decide at a time, those of an escalation from when it is due."""
    due = [one.group for one in rule.escalations if at >= envelope.created_at + timedelta(seconds=one.after_seconds)]
    return [*(rule.group for rule in rule.approvals), *due]


def count_approvals(rule: ReviewRule, approvals: Sequence[Decision], envelope: Envelope, today: Today) -> Count:
    """Count approvals of people who may approve, oldest first.

    Each authority counts once for each group, and so does each decision. One approval may count for several groups of
    which it is a member, also where one of them decides before the other.
    """
    begun: dict[str, int | None] = {}  # by group: how many approvals were given when it was satisfied
    counted: set[str] = set()
    missing = []
    for need in _in_order(rule.approvals):
        start = _start(need, begun)
        heard = [] if start is None else _hear(need, approvals, max(start - 1, 0), rule, envelope, today)
        counted |= {decision.id for decision in heard}
        begun[need.group] = approvals.index(heard[need.count - 1]) + 1 if len(heard) >= need.count else None
        if len(heard) < need.count:
            missing.append(_say_missing(need, need.count - len(heard), rule, envelope))
    idle = [decision for decision in approvals if decision.id not in counted and rule.approvals]
    return Count(missing, {decision.id: _say_idle(decision, rule, envelope, today) for decision in idle})


def _in_order(needs: Sequence[ApprovalRule]) -> list[ApprovalRule]:
    """Needs so that a group comes behind those that decide before it; of a circle none is left out."""
    ordered: list[ApprovalRule] = []
    left = list(needs)
    while left:
        known = {need.group for need in left}
        free = [need for need in left if not set(need.after) & known] or left
        ordered += free
        left = [need for need in left if need not in free]
    return ordered


def _start(need: ApprovalRule, begun: dict[str, int | None]) -> int | None:
    """How many approvals stood when this group's turn came; ``None``: it has not come."""
    ends = [begun.get(name) for name in need.after]
    known = [end for end in ends if end is not None]
    return None if len(known) < len(ends) else max(known, default=0)


def _hear(
    need: ApprovalRule,
    approvals: Sequence[Decision],
    start: int,
    rule: ReviewRule,
    envelope: Envelope,
    today: Today,
) -> list[Decision]:
    """Approvals from a position on that count for one group, each by an authority that no other one uses."""
    offers: list[tuple[Decision, list[str]]] = []
    for decision in approvals[start:]:
        voices = voices_of(decision, rule, envelope, today)
        groups = _places(need, rule, envelope, decision.at)
        names = [voice.name for voice in voices if any(is_in(voice.groups, group) for group in groups)]
        if names:
            offers.append((decision, names))
    return _match(offers)


def _match(offers: Sequence[tuple[Decision, list[str]]]) -> list[Decision]:
    """Give each decision an authority of its own, as many as can have one; in the order of the offers."""
    holder: dict[str, int] = {}

    def place(index: int, tried: set[str]) -> bool:
        for name in offers[index][1]:
            if name in tried:
                continue
            tried.add(name)
            if name not in holder or place(holder[name], tried):
                holder[name] = index
                return True
        return False

    for index in range(len(offers)):
        place(index, set())
    return [offers[index][0] for index in sorted(holder.values())]


def _places(need: ApprovalRule, rule: ReviewRule, envelope: Envelope, at: datetime) -> list[str]:
    """Groups whose members may stand for a group at a time: itself, and those of escalations that are due."""
    return [need.group, *(one for one, due in _escalations(need, rule, envelope) if at >= due)]


def _escalations(need: ApprovalRule, rule: ReviewRule, envelope: Envelope) -> list[tuple[str, datetime]]:
    return [
        (one.group, envelope.created_at + timedelta(seconds=one.after_seconds))
        for one in rule.escalations
        if not one.stands_for or need.group in one.stands_for
    ]


def _say_missing(need: ApprovalRule, count: int, rule: ReviewRule, envelope: Envelope) -> str:
    others = [f"or {group} from {due:%Y-%m-%d %H:%M} UTC on" for group, due in _escalations(need, rule, envelope)]
    after = [f"after {' and '.join(need.after)}"] if need.after else []
    about = f" ({', '.join([*after, *others])})" if after or others else ""
    return f"{count} from {need.group}{about}"


def _say_idle(decision: Decision, rule: ReviewRule, envelope: Envelope, today: Today) -> str:
    mine = [
        need
        for need in rule.approvals
        if any(
            is_in(voice.groups, group)
            for voice in voices_of(decision, rule, envelope, today)
            for group in _places(need, rule, envelope, decision.at)
        )
    ]
    waiting = [need for need in mine if need.after]
    if waiting:
        need = waiting[0]
        return f"{need.group} decides after {' and '.join(need.after)}: {decision.by} approves again once theirs stand"
    return f"somebody else's approval for {', '.join(need.group for need in mine) or 'it'} rests on the same authority"
