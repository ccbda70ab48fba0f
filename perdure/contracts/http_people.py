"""What goes over the API about people, policies and delegations."""

from __future__ import annotations

from pydantic import Field

from perdure.contracts.base import Contract, UtcTime
from perdure.contracts.plan import ReviewRule


class PersonView(Contract):
    """One principal as the settings name it."""

    name: str
    groups: list[str]
    acts_for: str = ""
    """Set: an agent of that person."""


class DelegationView(Contract):
    """Somebody who decides in another's place until a time."""

    id: str
    by: str
    to: str
    groups: list[str]
    since: UtcTime
    until: UtcTime
    comment: str = ""
    stands: bool
    """Whether it is in force now."""


class PeopleView(Contract):
    """Who is who today."""

    named: bool
    """Whether the settings name people; else tokens say who is in which group, and the owner stands for all."""
    people: list[PersonView]
    policies: list[ReviewRule]
    delegations: list[DelegationView]
    """Newest first, those that ended too."""


class DelegateRequest(Contract):
    """Let somebody else decide for groups of one's own until a time."""

    decision_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    to: str = Field(min_length=1)
    groups: list[str] = Field(min_length=1)
    lasts_seconds: int = Field(gt=0, le=366 * 24 * 3600)
    comment: str = Field(default="", max_length=1000)
    passphrase: str = ""


class EndDelegationRequest(Contract):
    """Take a delegation of one's own back."""

    decision_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    passphrase: str = ""
