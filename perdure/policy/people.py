"""Who is who today: what the settings and people's delegations make of a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import ValidationError

from perdure.contracts.decisions import Decision, Delegation
from perdure.contracts.people import Person
from perdure.contracts.plan import ReviewRule

EVERY_GROUP = "*"
"""In a principal's groups: it stands for every group, as the local owner does where nobody is named."""


@dataclass(frozen=True)
class Today:
    """What holds at the moment of a question: people, policies, delegations."""

    people: Mapping[str, Person] | None = None
    """By name; ``None``: the settings name nobody, and a decision's own groups count."""
    policies: Mapping[str, ReviewRule] | None = None
    """By name; ``None``: today's policies are not asked, a pinned rule stands alone (evidence of the past)."""
    delegations: Sequence[Decision] = field(default=())
    """Verified ``delegate`` and ``undelegate`` decisions, oldest first."""


def is_in(groups: Sequence[str], group: str) -> bool:
    """Whether somebody with these groups is in that one."""
    return group in groups or EVERY_GROUP in groups


def groups_of(decision: Decision, today: Today) -> list[str]:
    """Return the groups for which somebody decided and still may: those of then that are left today."""
    return _left(decision.by, decision.groups, today)


def why_nobody(name: str, today: Today) -> str:
    """Return why a name decides nothing today, whatever it said; empty when it may."""
    if today.people is None:
        return ""
    person = today.people.get(name)
    if person is None:
        return f"{name} is not among the people of this installation (any more)"
    return f"{name} is an agent of {person.acts_for}, and agents decide nothing" if person.acts_for else ""


def delegated_to(decision: Decision, today: Today) -> dict[str, list[str]]:
    """Return for whom else somebody decided: groups by the name of whoever delegated them for that time."""
    ended = {(word.by, word.comment): word.at for word in today.delegations if word.kind == "undelegate"}
    found: dict[str, list[str]] = {}
    for word in today.delegations:
        given = delegation_of(word)
        if given is None or given.to != decision.by or word.by == decision.by:
            continue
        if word.at <= decision.at < min(given.until, ended.get((word.by, word.id), given.until)):
            kept = [group for group in given.groups if is_in(word.groups, group)]
            found[word.by] = [*found.get(word.by, []), *_left(word.by, kept, today)]
    return {name: groups for name, groups in found.items() if groups}


def delegation_of(word: Decision) -> Delegation | None:
    """Return what a decision delegates; ``None`` when it is no delegation, or none that can be read."""
    if word.kind != "delegate":
        return None
    try:
        return Delegation.model_validate_json(word.comment)
    except ValidationError:
        return None


def stands(word: Decision, words: Sequence[Decision], now: datetime) -> bool:
    """Whether a delegation is in force."""
    given = delegation_of(word)
    is_ended = any(other.kind == "undelegate" and other.comment == word.id for other in words)
    return given is not None and not is_ended and now < given.until


def _left(name: str, groups: Sequence[str], today: Today) -> list[str]:
    if today.people is None:
        return list(groups)
    person = today.people.get(name)
    if person is None or person.acts_for:
        return []
    if EVERY_GROUP in groups:
        return list(person.groups)
    return [group for group in groups if is_in(person.groups, group)]
