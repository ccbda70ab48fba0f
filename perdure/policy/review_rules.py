"""Rules of a review put together: a template's with its policy's, a pinned one with today's. The stricter counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from perdure.contracts.plan import ApprovalRule, Envelope, EscalationRule, ReviewRule
from perdure.contracts.template_review import Policy, Review, ReviewTerms, find_circle
from perdure.errors import UserError
from perdure.policy.names import suggest
from perdure.policy.people import Today

FLOOR = "default"
"""The policy that holds for every template that names none."""

NO_DEADLINE = 100 * 366 * 24 * 3600
"""Seconds that a parked plan may wait: nobody will see its end."""

_ENDS: Sequence[str] = ("park", "skip", "deny")
"""What expiry does, strictest last."""

_FIELDS = {
    "approvals": ("approvals",),
    "requester_may_approve": ("requester_may_approve",),
    "authors_may_approve": ("authors_may_approve",),
    "expires": ("expires_after_seconds", "on_expiry"),
    "remind": ("remind_after_seconds",),
    "escalate": ("escalations",),
    "break_glass": ("break_glass",),
}
"""What a review's words become in a rule."""


def rule_of(terms: ReviewTerms, *, policy: str = "") -> ReviewRule:
    """Return a review's or a policy's words as a rule. Conditions are booleans by now."""
    parks = terms.expires.then == "park"
    return ReviewRule(
        approvals=[ApprovalRule(group=one.group, count=one.count, after=one.after) for one in terms.approvals],
        policy=policy,
        requester_may_approve=bool(terms.requester_may_approve),
        authors_may_approve=bool(terms.authors_may_approve),
        expires_after_seconds=NO_DEADLINE if parks else _seconds(terms.expires.after),
        on_expiry=terms.expires.then,
        remind_after_seconds=[_seconds(after) for after in terms.remind],
        escalations=[
            EscalationRule(group=one.group, after_seconds=_seconds(one.after), stands_for=one.stands_for)
            for one in terms.escalate
        ],
        break_glass=terms.break_glass,
        editable=terms.editable if isinstance(terms, Review) else [],
    )


def find_policy(name: str, policies: Mapping[str, ReviewRule]) -> ReviewRule | None:
    """Return the policy that a template goes by: the named one, else the floor; ``None`` when there is neither.

    Raises:
        UserError: there is no policy of that name.
    """
    if not name:
        return policies.get(FLOOR)
    if name not in policies:
        raise UserError(
            f"There is no policy {name!r}: config.toml has no [policies.{name}].{suggest(name, policies, 'policies')}"
        )
    return policies[name]


def pinned_rule(review: Review, policies: Mapping[str, ReviewRule]) -> ReviewRule:
    """Return the rule that a plan is frozen with: the review's own words, tightened by its policy.

    What the review does not say is the policy's to say. Raises ``UserError`` for a policy that is not there.
    """
    own, policy = rule_of(review), find_policy(review.policy, policies)
    if policy is None:
        return own
    unsaid = [field for word, fields in _FIELDS.items() if word not in review.model_fields_set for field in fields]
    merged = stricter(own.model_copy(update={field: getattr(policy, field) for field in unsaid}), policy)
    if circle := find_circle({rule.group: rule.after for rule in merged.approvals}):
        raise UserError(f"With policy {policy.policy!r} the groups {', '.join(circle)} would wait for each other.")
    return merged


def stricter(one: ReviewRule, other: ReviewRule) -> ReviewRule:
    """Return the rule that satisfies both: whatever counts under it counts under each of them."""
    return ReviewRule(
        approvals=_both_approvals(one, other),
        policy=one.policy or other.policy,
        requester_may_approve=one.requester_may_approve and other.requester_may_approve,
        authors_may_approve=one.authors_may_approve and other.authors_may_approve,
        expires_after_seconds=min(one.expires_after_seconds, other.expires_after_seconds),
        on_expiry=max(one.on_expiry, other.on_expiry, key=_ENDS.index),
        remind_after_seconds=sorted({*one.remind_after_seconds, *other.remind_after_seconds}),
        escalations=_both_escalations(one, other),
        break_glass=[group for group in one.break_glass if group in other.break_glass],
        editable=one.editable,
    )


def rule_today(envelope: Envelope, today: Today) -> tuple[ReviewRule, str]:
    """Return (the rule that counts now, why nothing can satisfy it): the pinned one, or stricter where today's is.

    A policy that is gone is no pass: until it is there again, nothing counts as approved.
    """
    pinned = envelope.rule
    if today.policies is None:
        return pinned, ""
    if pinned.policy and pinned.policy not in today.policies:
        return pinned, f"policy {pinned.policy!r}, which config.toml does not have any more"
    policy = today.policies.get(pinned.policy or FLOOR)
    return (pinned if policy is None else stricter(pinned, policy)), ""


def deadline_of(envelope: Envelope, rule: ReviewRule) -> datetime:
    """Return until when decisions count: as pinned, or sooner where today's policy says so."""
    return min(envelope.expires_at, envelope.created_at + timedelta(seconds=rule.expires_after_seconds))


def say_tightened(pinned: ReviewRule, rule: ReviewRule) -> list[str]:
    """Say what today's policy asks for beyond the pinned rule, one sentence; nothing when it asks for no more."""
    if rule == pinned:
        return []
    wanted = [f"{one.count} from {one.group}" for one in rule.approvals if one not in pinned.approvals]
    if pinned.requester_may_approve and not rule.requester_may_approve:
        wanted.append("not whoever asked for it")
    if pinned.authors_may_approve and not rule.authors_may_approve:
        wanted.append("no author")
    if rule.expires_after_seconds < pinned.expires_after_seconds:
        wanted.append("an earlier deadline")
    what = f" ({', '.join(wanted)})" if wanted else ""
    return [f"Policy {rule.policy!r} is stricter today than when this plan was frozen{what}."]


def describe_rule(rule: ReviewRule) -> list[str]:
    """Return what a rule wants, one item each: "2 from sre, after dba", "not whoever asked for it"."""
    said = [
        f"{one.count} from {one.group}" + (f", after {' and '.join(one.after)}" if one.after else "")
        for one in rule.approvals
    ]
    if not rule.requester_may_approve:
        said.append("not whoever asked for it")
    if not (rule.authors_may_approve and rule.requester_may_approve):
        said.append("no author")
    return said


def _both_approvals(one: ReviewRule, other: ReviewRule) -> list[ApprovalRule]:
    wanted = {rule.group: rule for rule in one.approvals}
    for rule in other.approvals:
        known = wanted.get(rule.group, rule)
        after = [*known.after, *(name for name in rule.after if name not in known.after)]
        wanted[rule.group] = ApprovalRule(group=rule.group, count=max(known.count, rule.count), after=after)
    return list(wanted.values())


def _both_escalations(one: ReviewRule, other: ReviewRule) -> list[EscalationRule]:
    """Escalations that both know, at the later time and for the groups that both name."""
    found = []
    for mine in one.escalations:
        for theirs in other.escalations:
            places = _common(mine.stands_for, theirs.stands_for)
            if mine.group == theirs.group and places is not None:
                after = max(mine.after_seconds, theirs.after_seconds)
                found.append(EscalationRule(group=mine.group, after_seconds=after, stands_for=places))
    return found


def _common(mine: Sequence[str], theirs: Sequence[str]) -> list[str] | None:
    """Groups that both lists name, where an empty one names all; ``None``: nothing in common."""
    if not mine or not theirs:
        return list(mine or theirs)
    return [group for group in mine if group in theirs] or None


def read_policy(name: str, policy: Policy) -> ReviewRule:
    """Return a policy as the rule that a plan pins."""
    return rule_of(policy, policy=name)


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
