"""A plan, people and what they say: short ways to a weighing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from perdure.contracts.decisions import Decision, Weighing
from perdure.contracts.people import Person
from perdure.contracts.plan import Envelope, Plan, ReviewRule, content_digest
from perdure.policy.gates import weigh
from perdure.policy.people import Today

AT = datetime(2026, 11, 30, 10, 12, tzinfo=UTC)
EXPIRES = AT + timedelta(days=7)
DIGEST = "ab" * 32
JOB = "job/ops/one"


def rule(*approvals: Mapping[str, Any], **more: Any) -> ReviewRule:
    """A rule from groups: ``rule({"group": "dba"}, {"group": "sre", "after": ["dba"]})``."""
    return ReviewRule.model_validate({"approvals": list(approvals), **more})


def hours(count: float) -> datetime:
    """So many hours after the plan was frozen."""
    return AT + timedelta(hours=count)


def say(kind: str, by: str, *groups: str, at: datetime = AT, **more: Any) -> Decision:
    """One person's word on the plan; its id is made of what it says."""
    about = {"id": f"{by}-{kind}-{at.isoformat()}", "job_id": JOB, "digest": DIGEST, "head": "0" * 64}
    return Decision.model_validate(about | {"kind": kind, "by": by, "groups": groups, "at": at} | more)


def delegate(by: str, to: str, *groups: str, at: datetime = AT, until: datetime = EXPIRES, **more: Any) -> Decision:
    """A delegation of groups of ``by``."""
    comment = json.dumps({"to": to, "groups": groups, "until": until.isoformat()})
    own = more.pop("own", groups)
    return say("delegate", by, *own, at=at, comment=comment, job_id="", digest="", **more)


def undelegate(word: Decision, at: datetime) -> Decision:
    """The end of a delegation."""
    return say("undelegate", word.by, at=at, comment=word.id, job_id="", digest="")


def people(**groups: Sequence[str] | str) -> dict[str, Person]:
    """Today's people: a list of groups each; a text is the person behind an agent."""
    return {
        name: Person.model_validate({"for": given} if isinstance(given, str) else {"groups": given})
        for name, given in groups.items()
    }


def outcome(
    wanted: ReviewRule,
    *words: Decision,
    now: datetime = AT,
    today: Today | None = None,
    authors: Sequence[str] = (),
) -> Weighing:
    """What words on a plan that ada asked for amount to."""
    envelope = Envelope(
        job_id=JOB,
        thread="ops",
        round=1,
        requester="ada",
        authors=list(authors),
        template="rotate",
        template_digest="cd" * 32,
        rule=wanted,
        created_at=AT,
        expires_at=AT + timedelta(seconds=wanted.expires_after_seconds),
    )
    plan = Plan(content=content_digest([]), envelope=envelope, effects=[])
    return weigh(plan, DIGEST, words, now=now, today=today or Today())
