"""Who decides: a template's ``review`` and the installation's policies, in the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, model_validator

from perdure.contracts.template_base import Part
from perdure.contracts.values import Condition, Duration

_GROUP = r"^[a-z0-9][a-z0-9-]{0,63}$"
Group = Annotated[str, Field(pattern=_GROUP)]
"""Name of a group of people."""


class Approvals(Part):
    """So many approvals from one group."""

    group: Group = Field(alias="from")
    count: int = Field(default=1, ge=1, le=50, strict=True)
    after: list[Group] = []
    """Groups that decide before: an approval of this one counts only once theirs stand."""


class Expires(Part):
    """What happens when nobody answers."""

    after: Duration = timedelta(days=7)
    then: Literal["deny", "skip", "park"] = "deny"
    """deny, skip: nothing happens and the job ends (skip: as left out) · park: it waits without a deadline."""


class Escalate(Part):
    """Who else may decide once the plan has waited for so long."""

    after: Duration
    group: Group = Field(alias="from")
    stands_for: list[Group] = Field(default=[], alias="for")
    """In whose place; left out: of every group."""


class WhenScheduled(Part):
    """How a gate behaves when the job was started by a schedule."""

    nobody_answers: Literal["park", "skip", "deny"] = "park"
    newer_plan: Literal["supersedes", "waits"] = "supersedes"


class ReviewTerms(Part):
    """Who decides, as a template's ``review`` and a policy say it in the same words."""

    approvals: list[Approvals] = [Approvals.model_validate({"from": "maintainers"})]
    """All of them are needed. ``[]``: no gate, for reversible effects only."""
    requester_may_approve: Condition = True
    """False: nor may somebody whose edits are in the plan."""
    authors_may_approve: Condition = True
    """Whether somebody whose edits are in the plan may approve it."""
    expires: Expires = Expires()
    remind: list[Duration] = []
    """When those who are missing are told again, since the plan was frozen."""
    escalate: list[Escalate] = []
    break_glass: list[Group] = []
    """Groups whose members, with the right to break glass, may let it go alone, with a reason. Nobody by default."""

    @model_validator(mode="after")
    def _check(self) -> ReviewTerms:
        groups = [rule.group for rule in self.approvals]
        if len(set(groups)) != len(groups):
            raise ValueError("one group stands twice in `approvals`; write it once with a higher `count`")
        if not getattr(self, "policy", ""):  # else the policy's groups may be named, and are checked with them
            _refuse_unknown("after", {name for rule in self.approvals for name in rule.after} - set(groups))
            _refuse_unknown("escalate", {name for step in self.escalate for name in step.stands_for} - set(groups))
        if circle := find_circle({rule.group: rule.after for rule in self.approvals}):
            raise ValueError(f"`after` goes in a circle: {', '.join(circle)} wait for each other")
        return self


def _refuse_unknown(field: str, groups: set[str]) -> None:
    if groups:
        raise ValueError(f"`{field}` names {', '.join(sorted(groups))}, of which `approvals` wants nothing")


def find_circle(after: Mapping[str, Sequence[str]]) -> list[str]:
    """Return groups that wait for each other, so that none could ever begin; empty when there are none."""
    left = dict(after)
    while left:
        free = [group for group, names in left.items() if not set(names) & left.keys()]
        if not free:
            return sorted(left)
        left = {group: names for group, names in left.items() if group not in free}
    return []


class Review(ReviewTerms):
    """Who decides. A template that leaves it out asks one maintainer."""

    policy: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9-]{0,63})?$")
    """Name of a policy in ``config.toml``. What is written beside it can only ask for more."""
    editable: list[str] = []
    """What a reviewer may change in the plan."""
    when_scheduled: WhenScheduled = WhenScheduled()


class Policy(ReviewTerms):
    """A named rule of the installation: ``[policies.NAME]`` of ``config.toml``."""

    @model_validator(mode="after")
    def _check_plain(self) -> Policy:
        for name in ("requester_may_approve", "authors_may_approve"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"`{name}` is an expression; a policy says true or false")
        return self
