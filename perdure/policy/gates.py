"""What people's decisions on one plan amount to. Pure: the caller verified every signature before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from perdure.contracts.decisions import Decision, Ignored, Weighing
from perdure.contracts.plan import Envelope, Plan, ReviewRule

EVERY_GROUP = "*"
"""In a principal's groups: the local owner, who stands for every group."""

GATE_KINDS = ("approve", "reject", "request_changes", "withdraw")
"""Decisions that a gate weighs; cancel, resolve and trust are none of its business."""


def weigh(plan: Plan, digest: str, decisions: Sequence[Decision], *, now: datetime) -> Weighing:
    """Return what ``decisions`` (verified, in the ledger's order) amount to under the plan's pinned rule.

    The last word of each person counts. One rejection denies; else one request for changes sends back, also beside
    enough approvals (nobody's wish is passed over); else the rule is satisfied, or more people are needed. A decision
    made before the plan expired still counts after it, one made later does not; a gate that is not satisfied by then
    is denied. ``withdrawn`` says that nothing stands because somebody took an approval back: like ``pending``, more
    people may decide.
    """
    ignored: list[Ignored] = []
    words = _last_words(plan.envelope, digest, decisions, ignored)
    approvals = [word for word in words if word.kind == "approve"]
    rejections = [word for word in words if word.kind == "reject"]
    changes = [word for word in words if word.kind == "request_changes"]
    if rejections:
        return _outcome("denied", rejections, ignored)
    if changes:
        return _outcome("changes_requested", changes, ignored)
    missing = missing_approvals(plan.envelope.rule, approvals)
    if not missing:
        return _outcome("satisfied", approvals, ignored, self_approved=_is_self_approved(plan.envelope, approvals))
    if now >= plan.envelope.expires_at:
        comment = f"Expired {plan.envelope.expires_at.isoformat()} without enough approvals."
        return Weighing(outcome="denied", missing=missing, ignored=ignored, comment=comment)
    withdrawn = [word.by for word in words if word.kind == "withdraw"]
    if withdrawn and not approvals:
        return Weighing(outcome="withdrawn", missing=missing, ignored=ignored, by=withdrawn)
    return Weighing(outcome="pending", missing=missing, ignored=ignored, by=[word.by for word in approvals])


def missing_approvals(rule: ReviewRule, approvals: Iterable[Decision]) -> list[str]:
    """Return who is still needed ("1 from maintainers"), empty when the rule is satisfied.

    Distinct people count, once for each group they belong to.
    """
    given = list(approvals)
    missing = []
    for needed in rule.approvals:
        people = {decision.by for decision in given if _belongs(decision, needed.group)}
        if len(people) < needed.count:
            missing.append(f"{needed.count - len(people)} from {needed.group}")
    return missing


def may_decide(envelope: Envelope, decision: Decision) -> str:
    """Return why this person's decision does not count under the pinned rule; empty when it does.

    Somebody who may not approve (who asked for the job, or wrote a part of the plan) may still reject or ask for
    changes; everybody may withdraw what they said.
    """
    if decision.kind == "withdraw":
        return ""
    groups = [needed.group for needed in envelope.rule.approvals]
    if groups and not any(_belongs(decision, group) for group in groups):
        return f"{decision.by} is in none of the groups that decide: {', '.join(groups)}"
    if decision.kind != "approve" or envelope.rule.requester_may_approve:
        return ""
    if decision.by == envelope.requester:
        return f"{decision.by} asked for this job, and its rule wants somebody else to approve"
    if decision.by in envelope.authors:
        return f"{decision.by} wrote a part of this plan, and its rule wants somebody else to approve"
    return ""


def _last_words(
    envelope: Envelope, digest: str, decisions: Sequence[Decision], ignored: list[Ignored]
) -> list[Decision]:
    """Each person's last word that counts, oldest first; what does not count goes to ``ignored``."""
    words: dict[str, Decision] = {}
    for decision in _once(decisions):
        void = _why_void(envelope, digest, decision)
        why = void or may_decide(envelope, decision) or _why_empty(decision, words)
        if why:
            ignored.append(Ignored(decision_id=decision.id, by=decision.by, why=why))
        if void or (why and not _unsays(decision, words)):
            continue
        replaced = words.pop(decision.by, None)
        if replaced is not None:
            why_replaced = f"{decision.by} decided again later"
            ignored.append(Ignored(decision_id=replaced.id, by=replaced.by, why=why_replaced))
        if not why:
            words[decision.by] = decision
    return list(words.values())


def _why_empty(decision: Decision, words: dict[str, Decision]) -> str:
    if decision.kind == "withdraw" and decision.by not in words:
        return f"{decision.by} had decided nothing that could be withdrawn"
    return ""


def _unsays(decision: Decision, words: dict[str, Decision]) -> bool:
    """A "no" that does not count by itself still takes back the same person's "yes"."""
    earlier = words.get(decision.by)
    return earlier is not None and earlier.kind == "approve" and decision.kind in ("reject", "request_changes")


def _once(decisions: Sequence[Decision]) -> list[Decision]:
    by_id: dict[str, Decision] = {}
    for decision in decisions:
        if decision.kind in GATE_KINDS:
            by_id.setdefault(decision.id, decision)
    return list(by_id.values())


def _why_void(envelope: Envelope, digest: str, decision: Decision) -> str:
    if decision.digest != digest:
        return f"it decides on plan {decision.digest[:8] or '(none)'}, not on {digest[:8]}"
    if decision.job_id != envelope.job_id:
        return f"it names job {decision.job_id}, and the plan belongs to {envelope.job_id}"
    if decision.at >= envelope.expires_at:
        return f"it came after the plan had expired ({envelope.expires_at.isoformat()})"
    return ""


def _belongs(decision: Decision, group: str) -> bool:
    return group in decision.groups or EVERY_GROUP in decision.groups


def _is_self_approved(envelope: Envelope, approvals: Sequence[Decision]) -> bool:
    own = {envelope.requester, *envelope.authors}
    return any(decision.by in own for decision in approvals)


def _outcome(
    outcome: str, words: Sequence[Decision], ignored: list[Ignored], *, self_approved: bool = False
) -> Weighing:
    last = words[-1] if words else None
    return Weighing.model_validate(
        {
            "outcome": outcome,
            "ignored": ignored,
            "by": [word.by for word in words],
            "edits": last.edits if last and last.kind == "request_changes" else None,
            "comment": last.comment if last else "",
            "self_approved": self_approved,
        }
    )
