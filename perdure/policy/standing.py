"""Standing approvals: what a person lets go beforehand, as far as its scope and no further. Pure, like weighing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from pydantic import ValidationError

from perdure.contracts.agent import Permission
from perdure.contracts.decisions import Decision, Revocation, StandingScope, Weighing
from perdure.contracts.names import CALL_ROUNDS
from perdure.contracts.plan import Plan
from perdure.policy.gates import weigh
from perdure.policy.people import Today
from perdure.policy.permissions import matches_call
from perdure.policy.targets import hash_arguments

_NOBODY = Today()

STANDING_KINDS = ("standing", "revoke")


def scope_of(decision: Decision) -> StandingScope | None:
    """Return what a standing approval lets go; ``None`` when it is none, or says nothing that can be read."""
    if decision.kind != "standing":
        return None
    try:
        return StandingScope.model_validate_json(decision.comment)
    except ValidationError:
        return None


def revoked_by(decision: Decision) -> str:
    """Return the id of the standing approval that a decision takes back; empty when it takes none back."""
    if decision.kind != "revoke":
        return ""
    try:
        return Revocation.model_validate_json(decision.comment).approval
    except ValidationError:
        return ""


def approvals_by_standing(
    plan: Plan, digest: str, words: Sequence[Decision], uses: Mapping[str, int], *, now: datetime
) -> list[Decision]:
    """Return the standing approvals that cover a call's plan, each as an approval of exactly this plan.

    ``words``: verified standing approvals and revocations of the plan's thread, oldest first. ``uses``: how often each
    was used, by id. They are weighed like any approval: of a rule that wants two people, two have to stand.
    """
    if plan.envelope.round < CALL_ROUNDS:
        return []
    gone = {revoked_by(word) for word in words}
    return [
        word.model_copy(update={"kind": "approve", "digest": digest, "job_id": plan.envelope.job_id})
        for word, scope in _scopes(words)
        if word.id not in gone and now < scope.until and _has_uses(scope, uses.get(word.id, 0)) and covers(scope, plan)
    ]


def covers(scope: StandingScope, plan: Plan) -> bool:
    """Whether a plan is one call, and one that a scope lets go."""
    envelope = plan.envelope
    if len(plan.effects) != 1 or (scope.thread, scope.template_digest) != (envelope.thread, envelope.template_digest):
        return False
    body = plan.effects[0].body
    if (scope.tool, scope.tool_digest) != (body.get("tool"), body.get("tool_digest")):
        return False
    arguments = json.loads(body["arguments"])
    if scope.arguments_hash and scope.arguments_hash != hash_arguments(arguments):
        return False
    rule = Permission(id="standing", decision="allow", target=scope.target, arguments=scope.arguments)
    return matches_call(rule, scope.tool, body["targets"], arguments)


def _scopes(words: Sequence[Decision]) -> Iterator[tuple[Decision, StandingScope]]:
    for word in words:
        scope = scope_of(word)
        if scope is not None:
            yield word, scope


def _has_uses(scope: StandingScope, used: int) -> bool:
    return not scope.uses or used < scope.uses


def weigh_call(
    plan: Plan,
    digest: str,
    decisions: Sequence[Decision],
    words: Sequence[Decision],
    uses: Mapping[str, int],
    *,
    now: datetime,
    today: Today = _NOBODY,
) -> Weighing:
    """Return what decisions on a plan amount to, together with as many standing approvals as are needed.

    What people decide on the plan itself goes before: a "no", or an approval taken back, is not made up for by the
    same person's standing approval, and where their approvals are enough none is used.
    """
    alone = weigh(plan, digest, decisions, now=now, today=today)
    given: list[Decision] = []
    for approval in approvals_by_standing(plan, digest, words, uses, now=now):
        if alone.outcome not in ("pending", "withdrawn"):
            break
        given.append(approval)
        found = weigh(plan, digest, [*given, *decisions], now=now, today=today)
        if found.outcome == "satisfied":
            idle = {ignored.decision_id for ignored in found.ignored}
            used = [approval.id for approval in given if approval.id not in idle]
            return found.model_copy(update={"standing": used})
    return alone
