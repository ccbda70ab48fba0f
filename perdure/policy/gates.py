"""What people's decisions on one plan amount to. Pure: the caller verified every signature before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from perdure.contracts.decisions import Decision, Ignored, Weighing
from perdure.contracts.plan import Envelope, Plan, ReviewRule
from perdure.policy.counting import count_approvals, groups_that_decide, voices_of, why_own
from perdure.policy.people import Today, groups_of, is_in, why_nobody
from perdure.policy.review_rules import deadline_of, rule_today, say_tightened

GATE_KINDS = ("approve", "reject", "request_changes", "withdraw", "break_glass")
"""Decisions that a gate weighs; cancel, resolve and trust are none of its business."""

_NOBODY = Today()


def weigh(plan: Plan, digest: str, decisions: Sequence[Decision], *, now: datetime, today: Today = _NOBODY) -> Weighing:
    """Return what ``decisions`` (verified, in the ledger's order) amount to under the plan's pinned rule.

    The last word of each person counts. One rejection denies; else one request for changes sends back, also beside
    enough approvals (nobody's wish is passed over); else somebody broke the glass, or the rule is satisfied, or more
    people are needed. A decision made before the plan expired still counts after it, one made later does not; a gate
    that is not satisfied by then is denied. ``withdrawn`` says that nothing stands because somebody took an approval
    back: like ``pending``, more people may decide.

    ``today``: people and policies as they are now. They only take away: who was removed counts no more, and of a
    policy that differs from the pinned rule the stricter of both counts.
    """
    envelope = plan.envelope
    rule, gone = rule_today(envelope, today)
    gate = _Gate(envelope, digest, rule, gone, deadline_of(envelope, rule), today)
    ignored: list[Ignored] = []
    words = _last_words(gate, decisions, ignored)
    found = _weigh_no(words, ignored) or _weigh_glass(gate, words, ignored) or _weigh_yes(gate, words, ignored, now)
    return found.model_copy(update={"notes": say_tightened(envelope.rule, rule)})


def may_decide(envelope: Envelope, decision: Decision, today: Today = _NOBODY) -> str:
    """Return why this person's decision does not count under the rule; empty when it does.

    Somebody who may not approve (who asked for the job, or wrote a part of the plan) may still reject or ask for
    changes; everybody may withdraw what they said.
    """
    return _why_not(envelope, decision, rule_today(envelope, today)[0], today)


@dataclass(frozen=True)
class _Gate:
    """What decisions are held against."""

    envelope: Envelope
    digest: str
    rule: ReviewRule
    gone: str
    """Why nothing can satisfy it; empty: something can."""
    deadline: datetime
    today: Today


def _weigh_no(words: Sequence[Decision], ignored: list[Ignored]) -> Weighing | None:
    for kind, outcome in (("reject", "denied"), ("request_changes", "changes_requested")):
        if against := [word for word in words if word.kind == kind]:
            return _outcome(outcome, against, ignored)
    return None


def _weigh_glass(gate: _Gate, words: Sequence[Decision], ignored: list[Ignored]) -> Weighing | None:
    broken = [word for word in words if word.kind == "break_glass"]
    if not broken or gate.gone:
        return None
    said = f"{broken[-1].by}: {broken[-1].comment}"
    return _outcome("satisfied", broken, ignored).model_copy(update={"broken_glass": said})


def _weigh_yes(gate: _Gate, words: Sequence[Decision], ignored: list[Ignored], now: datetime) -> Weighing:
    approvals = {word.id: word for word in words if word.kind == "approve"}
    count = count_approvals(gate.rule, list(approvals.values()), gate.envelope, gate.today)
    idle = [Ignored(decision_id=id, by=approvals[id].by, why=why) for id, why in count.idle.items()]
    counting = [word for id, word in approvals.items() if id not in count.idle]
    if not count.missing and not gate.gone:
        own = _is_self_approved(gate.envelope, counting)
        return _outcome("satisfied", counting, ignored + idle).model_copy(update={"self_approved": own})
    about = {"missing": [*count.missing, *filter(None, [gate.gone])], "ignored": ignored + idle}
    if now >= gate.deadline:
        return Weighing.model_validate({"outcome": "denied", "comment": _say_expired(gate), **about})
    withdrawn = [word.by for word in words if word.kind == "withdraw"]
    if withdrawn and not approvals:
        return Weighing.model_validate({"outcome": "withdrawn", "by": withdrawn, **about})
    return Weighing.model_validate({"outcome": "pending", "by": [word.by for word in counting], **about})


def _say_expired(gate: _Gate) -> str:
    how = "Left out" if gate.rule.on_expiry == "skip" else "Expired"
    return f"{how} {gate.deadline.isoformat()} without enough approvals."


def _why_not(envelope: Envelope, decision: Decision, rule: ReviewRule, today: Today) -> str:
    if decision.kind == "withdraw":
        return ""
    if why := why_nobody(decision.by, today):
        return why
    if decision.kind == "break_glass":
        return _why_no_glass(decision, rule, today)
    groups = groups_that_decide(rule, envelope, decision.at)
    speaks_for = [name for voice in voices_of(decision, rule, envelope, today) for name in voice.groups]
    if rule.approvals and not any(is_in(speaks_for, group) for group in groups):
        return f"{decision.by} is in none of the groups that decide: {', '.join(groups)}{_say_later(rule, envelope)}"
    return why_own(decision.by, rule, envelope) if decision.kind == "approve" else ""


def _why_no_glass(decision: Decision, rule: ReviewRule, today: Today) -> str:
    """Nobody breaks the glass in somebody else's place, and nobody without a word."""
    if not any(is_in(groups_of(decision, today), group) for group in rule.break_glass):
        allowed = ", ".join(rule.break_glass) or "nobody"
        return f"{decision.by} may not break the glass of this plan; its rule lets: {allowed}"
    return "" if decision.comment.strip() else f"{decision.by} gave no reason for breaking the glass"


def _say_later(rule: ReviewRule, envelope: Envelope) -> str:
    due = [(one.group, envelope.created_at + timedelta(seconds=one.after_seconds)) for one in rule.escalations]
    return "".join(f"; {group} from {at:%Y-%m-%d %H:%M} UTC on" for group, at in due)


def _last_words(gate: _Gate, decisions: Sequence[Decision], ignored: list[Ignored]) -> list[Decision]:
    """Each person's last word that counts, oldest first; what does not count goes to ``ignored``."""
    words: dict[str, Decision] = {}
    for decision in _once(decisions):
        void = _why_void(gate, decision)
        why = void or _why_not(gate.envelope, decision, gate.rule, gate.today) or _why_empty(decision, words)
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
    is_yes = earlier is not None and earlier.kind in ("approve", "break_glass")
    return is_yes and decision.kind in ("reject", "request_changes")


def _once(decisions: Sequence[Decision]) -> list[Decision]:
    by_id: dict[str, Decision] = {}
    for decision in decisions:
        if decision.kind in GATE_KINDS:
            by_id.setdefault(decision.id, decision)
    return list(by_id.values())


def _why_void(gate: _Gate, decision: Decision) -> str:
    if decision.digest != gate.digest:
        return f"it decides on plan {decision.digest[:8] or '(none)'}, not on {gate.digest[:8]}"
    if decision.job_id != gate.envelope.job_id:
        return f"it names job {decision.job_id}, and the plan belongs to {gate.envelope.job_id}"
    if decision.at >= gate.deadline:
        return f"it came after the plan had expired ({gate.deadline.isoformat()})"
    return ""


def _is_self_approved(envelope: Envelope, approvals: Sequence[Decision]) -> bool:
    own = {envelope.requester, *envelope.authors}
    return any(decision.by in own for decision in approvals)


def _outcome(outcome: str, words: Sequence[Decision], ignored: list[Ignored]) -> Weighing:
    last = words[-1] if words else None
    return Weighing.model_validate(
        {
            "outcome": outcome,
            "ignored": ignored,
            "by": [word.by for word in words],
            "edits": last.edits if last and last.kind == "request_changes" else None,
            "comment": last.comment if last else "",
        }
    )
