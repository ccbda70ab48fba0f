"""What people's decisions amount to: the rules of a gate, one at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import Decision
from perdure.contracts.plan import ApprovalRule, Envelope, Plan, ReviewRule, content_digest
from perdure.policy.gates import weigh

AT = datetime(2026, 11, 30, 10, 12, tzinfo=UTC)
EXPIRES = AT + timedelta(days=7)
DIGEST = "ab" * 32
JOB = "job/releases/one"
ONE_MAINTAINER = ReviewRule(approvals=[ApprovalRule(group="maintainers")])


def make_plan(rule: ReviewRule = ONE_MAINTAINER, authors: list[str] | None = None) -> Plan:
    envelope = Envelope(
        job_id=JOB,
        thread="releases",
        round=1,
        requester="ada",
        authors=authors or [],
        template="release",
        template_digest="cd" * 32,
        rule=rule,
        created_at=AT,
        expires_at=EXPIRES,
    )
    return Plan(content=content_digest([]), envelope=envelope, effects=[])


def say(kind: str, by: str = "bo", groups: tuple[str, ...] = ("maintainers",), **more) -> Decision:
    values = {"id": f"{by}-{kind}-{more.get('at', AT).isoformat()}", "job_id": JOB, "digest": DIGEST, "at": AT}
    return Decision.model_validate(values | {"kind": kind, "by": by, "groups": list(groups), "head": "0" * 64} | more)


def outcome(*decisions: Decision, rule: ReviewRule = ONE_MAINTAINER, now: datetime = AT, authors=None):
    return weigh(make_plan(rule, authors), DIGEST, decisions, now=now)


def test_nobody_has_decided():
    """Without decisions the gate waits, and says for whom."""
    weighing = outcome()
    assert (weighing.outcome, weighing.missing, weighing.by) == ("pending", ["1 from maintainers"], [])


def test_enough_approvals_satisfy():
    """The last approval that the rule needs satisfies it."""
    weighing = outcome(say("approve"))
    assert (weighing.outcome, weighing.missing, weighing.by) == ("satisfied", [], ["bo"])
    assert weighing.self_approved is False


def test_a_rule_without_approvals_is_satisfied():
    """A plan that nobody has to approve needs nobody."""
    assert outcome(rule=ReviewRule(approvals=[])).outcome == "satisfied"


def test_people_count_once_per_group():
    """Two approvals by one person are one; the rule of each group counts on its own."""
    rule = ReviewRule(approvals=[ApprovalRule(group="maintainers", count=2), ApprovalRule(group="security")])
    twice = [say("approve"), say("approve", at=AT + timedelta(minutes=1))]
    assert outcome(*twice, rule=rule).missing == ["1 from maintainers", "1 from security"]
    both = say("approve", "cy", ("maintainers", "security"))
    assert outcome(*twice, both, rule=rule).outcome == "satisfied"


def test_the_local_owner_stands_for_every_group():
    """``*`` among the groups counts as each of them, for one person."""
    rule = ReviewRule(approvals=[ApprovalRule(group="maintainers"), ApprovalRule(group="security")])
    assert outcome(say("approve", "ada", ("*",)), rule=rule).outcome == "satisfied"
    rule = ReviewRule(approvals=[ApprovalRule(group="maintainers", count=2)])
    assert outcome(say("approve", "ada", ("*",)), rule=rule).missing == ["1 from maintainers"]


def test_somebody_of_no_group_is_ignored_with_the_reason():
    """A decision by who does not decide counts for nothing and says why."""
    weighing = outcome(say("approve", groups=("guests",)), say("reject", "cy", groups=()))
    assert weighing.outcome == "pending"
    assert [ignored.by for ignored in weighing.ignored] == ["bo", "cy"]
    assert "none of the groups" in weighing.ignored[0].why


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"digest": "cd" * 32}, "decides on plan cdcdcdcd"),
        ({"digest": ""}, r"\(none\)"),
        ({"job_id": "job/releases/two"}, "names job"),
        ({"at": EXPIRES}, "expired"),
    ],
)
def test_a_decision_on_something_else_is_ignored(wrong, why):
    """Another digest, another job, a time after the expiry: each is ignored with its reason, also a rejection."""
    for kind in ("approve", "reject", "request_changes", "withdraw"):
        weighing = outcome(say(kind, **wrong))
        assert weighing.outcome == "pending"
        with pytest.raises(AssertionError, match=why):
            raise AssertionError(weighing.ignored[0].why)


@pytest.mark.parametrize("kind", ["cancel", "resolve", "trust"])
def test_other_kinds_of_decisions_are_none_of_a_gates_business(kind):
    """A cancel or a resolve of the same person replaces no approval."""
    weighing = outcome(say("approve"), say(kind))
    assert (weighing.outcome, weighing.ignored) == ("satisfied", [])


def test_one_rejection_denies():
    """However many approve, one person of a deciding group who rejects denies."""
    rule = ReviewRule(approvals=[ApprovalRule(group="maintainers"), ApprovalRule(group="security")])
    weighing = outcome(say("approve", "ada", ("*",)), say("reject", "cy", ("security",), comment="no"), rule=rule)
    assert (weighing.outcome, weighing.by, weighing.comment) == ("denied", ["cy"], "no")


def test_a_request_for_changes_goes_before_approvals():
    """Who asks for changes is heard, also beside enough approvals; the edits are the newest ones."""
    edits = [BlobRef(sha256=digit * 64, size_bytes=1) for digit in "12"]
    asks = [say("request_changes", by, edits=ref, comment=by) for by, ref in zip(("bo", "cy"), edits, strict=True)]
    weighing = outcome(say("approve", "di"), *asks)
    assert (weighing.outcome, weighing.by) == ("changes_requested", ["bo", "cy"])
    assert (weighing.edits, weighing.comment) == (edits[1], "cy")
    assert outcome(*asks, say("reject", "di")).outcome == "denied"


def test_the_last_word_of_each_person_counts():
    """Who decides again replaces what was said before, and the weighing says so."""
    later = AT + timedelta(minutes=1)
    weighing = outcome(say("reject"), say("approve", at=later))
    assert weighing.outcome == "satisfied"
    assert "decided again" in weighing.ignored[0].why
    assert outcome(say("approve"), say("reject", at=later)).outcome == "denied"


def test_an_approval_taken_back_counts_for_nothing():
    """After a withdrawal the gate waits as before; others may still decide, and the same person again."""
    weighing = outcome(say("approve"), say("withdraw"))
    assert (weighing.outcome, weighing.missing, weighing.by) == ("withdrawn", ["1 from maintainers"], ["bo"])
    assert outcome(say("approve"), say("withdraw"), say("approve", "cy")).outcome == "satisfied"
    again = say("approve", at=AT + timedelta(minutes=1))
    assert outcome(say("approve"), say("withdraw"), again).outcome == "satisfied"


def test_a_withdrawal_counts_whoever_makes_it():
    """Who left the group can still take an approval back; who said nothing cannot withdraw."""
    assert outcome(say("approve"), say("withdraw", groups=())).outcome == "withdrawn"
    weighing = outcome(say("withdraw"))
    assert weighing.outcome == "pending"
    assert "nothing that could be withdrawn" in weighing.ignored[0].why


def test_a_no_that_does_not_count_takes_back_the_same_persons_yes():
    """Who left the group and rejects does not deny, but approves no longer either."""
    weighing = outcome(say("approve"), say("reject", groups=()))
    assert (weighing.outcome, weighing.by) == ("pending", [])
    weighing = outcome(say("approve"), say("reject", groups=(), digest="cd" * 32))
    assert weighing.outcome == "satisfied"


@pytest.mark.parametrize(("by", "authors"), [("ada", []), ("bo", ["bo"])])
def test_who_asked_or_wrote_may_not_approve_when_the_rule_says_so(by, authors):
    """Requester and authors are ignored as approvers, and may still reject."""
    rule = ReviewRule(approvals=[ApprovalRule(group="maintainers")], requester_may_approve=False)
    weighing = outcome(say("approve", by), rule=rule, authors=authors)
    assert weighing.outcome == "pending"
    assert "somebody else" in weighing.ignored[0].why
    assert outcome(say("reject", by), rule=rule, authors=authors).outcome == "denied"
    assert outcome(say("approve", "cy"), rule=rule, authors=authors).outcome == "satisfied"


@pytest.mark.parametrize(("by", "authors"), [("ada", []), ("bo", ["bo"])])
def test_self_approval_is_said(by, authors):
    """Where requester or author may approve, the weighing shows that they did."""
    assert outcome(say("approve", by), authors=authors).self_approved is True


def test_expiry_denies_what_is_not_satisfied():
    """At the expiry a gate that waits is denied; one that was satisfied before stays so."""
    assert outcome(now=EXPIRES - timedelta(microseconds=1)).outcome == "pending"
    expired = outcome(now=EXPIRES)
    assert (expired.outcome, expired.missing) == ("denied", ["1 from maintainers"])
    assert "Expired" in expired.comment
    assert outcome(say("approve"), now=EXPIRES + timedelta(days=1)).outcome == "satisfied"


def test_the_same_decision_twice_is_one():
    """A decision told again by a retry changes nothing."""
    approve = say("approve")
    assert outcome(approve, approve, say("withdraw"), approve).outcome == "withdrawn"
