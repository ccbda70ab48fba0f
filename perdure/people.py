"""People, agents and policies as ``config.toml`` has them now: read at each question, a change counts at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from perdure.contracts.decisions import SignedDecision
from perdure.contracts.notify import Channel
from perdure.contracts.people import Person
from perdure.contracts.plan import ReviewRule
from perdure.contracts.template_review import Policy
from perdure.errors import SetupError
from perdure.policy.authorize import Principal
from perdure.policy.people import Today
from perdure.policy.review_rules import read_policy
from perdure.settings import Settings, read_config

Model = TypeVar("Model", bound=BaseModel)

TodayOf = Callable[[], Today]
"""Reads what holds now. Raises ``SetupError`` when the settings cannot be read: nothing is decided on a guess."""


def read_today(settings: Settings) -> Today:
    """Return people and policies of the settings, without delegations (the ledger has those).

    Raises:
        SetupError: the file cannot be read, or says something that is no person or policy.
    """
    people = _read(settings, "people", Person)
    policies = {name: read_policy(name, policy) for name, policy in _read(settings, "policies", Policy).items()}
    for name, person in people.items():
        if person.acts_for and (person.groups or _is_agent(people.get(person.acts_for))):
            raise SetupError(
                f"[people.{name}] in {settings.config} is an agent: it has no groups, and acts `for` a person. Mend it."
            )
    return Today(people=people or None, policies=policies)


def channels_of(settings: Settings) -> Mapping[str, Channel]:
    """Return the channels of the settings by name.

    Raises:
        SetupError: the file cannot be read, or says something that is no channel.
    """
    return _read(settings, "channels", Channel)


def today_of(settings: Settings) -> TodayOf:
    """Return :func:`read_today` for these settings."""
    return partial(read_today, settings)


def policies_of(settings: Settings) -> Mapping[str, ReviewRule]:
    """Return the policies of the settings by name. Raises as :func:`read_today`."""
    return read_today(settings).policies or {}


def as_today(principal: Principal, today: Today) -> Principal:
    """Return a principal with the groups that it has today; an agent of the settings as such."""
    if today.people is None:
        return principal
    person = today.people.get(principal.name)
    if person is None:
        return replace(principal, groups=())
    return replace(principal, groups=tuple(person.groups), acts_for=principal.acts_for or person.acts_for)


def delegating(words: Sequence[SignedDecision], verified: Callable[[SignedDecision], bool], today: Today) -> Today:
    """Return ``today`` with the delegations among decisions whose signatures hold."""
    kinds = ("delegate", "undelegate")
    found = [word.decision for word in words if word.decision.kind in kinds and verified(word)]
    return replace(today, delegations=found)


def _is_agent(person: Person | None) -> bool:
    return person is not None and bool(person.acts_for)


def _read(settings: Settings, table: str, model: type[Model]) -> Mapping[str, Model]:
    found: dict[str, Model] = {}
    for name, value in read_config(settings, table).items():
        try:
            found[name] = model.model_validate(value)
        except ValidationError as error:
            raise SetupError(_say(settings, table, name, error.errors(include_url=False)[0])) from error
    return found


def _say(settings: Settings, table: str, name: str, fault: Any) -> str:
    place = ".".join(str(part) for part in fault["loc"])
    where = f"[{table}.{name}] in {settings.config}"
    return f"{where}: {place + ': ' if place else ''}{fault['msg']}. Mend it: docs/how-to/make-a-policy.md."
