"""Rules of a gate beyond a count: order, escalation, the broken glass, and the stricter of two rules."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from perdure.contracts.plan import ReviewRule
from perdure.contracts.template_review import Policy, Review
from perdure.errors import UserError
from perdure.policy.people import Today
from perdure.policy.review_rules import FLOOR, pinned_rule, read_policy, stricter
from tests.policy.deciding_kit import EXPIRES, hours, outcome, people, rule, say

ORDERED = rule({"group": "dba"}, {"group": "sre", "after": ["dba"]})
ESCALATED = rule({"group": "dba"}, escalations=[{"group": "managers", "after_seconds": 8 * 3600}])
GLASS = rule({"group": "dba", "count": 2}, break_glass=["oncall"], requester_may_approve=False)


def policies(**texts) -> dict[str, ReviewRule]:
    return {name: read_policy(name, Policy.model_validate(text)) for name, text in texts.items()}


def review(**said) -> Review:
    return Review.model_validate(said)


def test_a_group_decides_before_another():
    """An approval of the later group counts only once the earlier one's stands; else it says who is waited for."""
    early = outcome(ORDERED, say("approve", "cy", "sre"), say("approve", "bo", "dba", at=hours(1)))
    assert (early.outcome, early.missing, early.by) == ("pending", ["1 from sre (after dba)"], ["bo"])
    assert early.ignored[0].why == "sre decides after dba: cy approves again once theirs stand"
    again = say("approve", "cy", "sre", at=hours(2))
    assert outcome(ORDERED, say("approve", "cy", "sre"), say("approve", "bo", "dba", at=hours(1)), again).outcome == (
        "satisfied"
    )


def test_an_earlier_groups_withdrawal_takes_the_later_ones_turn_back():
    """Whoever came after an approval that was withdrawn and given again approves again."""
    words = [
        say("approve", "bo", "dba"),
        say("approve", "cy", "sre", at=hours(1)),
        say("withdraw", "bo", at=hours(2)),
        say("approve", "bo", "dba", at=hours(3)),
    ]
    assert outcome(ORDERED, *words[:2]).outcome == "satisfied"
    assert outcome(ORDERED, *words[:3]).missing == ["1 from dba", "1 from sre (after dba)"]
    assert outcome(ORDERED, *words).missing == ["1 from sre (after dba)"]


def test_one_person_of_both_groups_decides_for_both_at_once():
    """Somebody who is in the earlier and the later group needs no two approvals."""
    assert outcome(ORDERED, say("approve", "bo", "dba", "sre")).outcome == "satisfied"
    assert outcome(ORDERED, say("approve", "bo", "*")).outcome == "satisfied"


def test_the_later_group_may_reject_before_its_turn():
    """The order is one of approvals: a no counts at any time."""
    assert outcome(ORDERED, say("reject", "cy", "sre")).outcome == "denied"


def test_another_group_may_decide_once_the_plan_has_waited():
    """From its time on, not before, the escalation's group stands for the one that is missing; the gate says when."""
    assert outcome(ESCALATED).missing == ["1 from dba (or managers from 2026-11-30 18:12 UTC on)"]
    early = outcome(ESCALATED, say("approve", "mo", "managers", at=hours(7.9)))
    assert early.outcome == "pending"
    assert early.ignored[0].why.endswith(
        "in none of the groups that decide: dba; managers from 2026-11-30 18:12 UTC on"
    )
    assert outcome(ESCALATED, say("approve", "mo", "managers", at=hours(8))).outcome == "satisfied"


def test_nobody_stands_for_a_group_before_the_escalation_is_due():
    """Somebody who may decide for a group of their own counts for that one alone until then."""
    wanted = rule({"group": "dba"}, {"group": "sre"}, escalations=[{"group": "managers", "after_seconds": 8 * 3600}])
    for when, missing in ((7.9, 1), (8, 0)):
        assert len(outcome(wanted, say("approve", "mo", "managers", "sre", at=hours(when))).missing) == missing


def test_an_escalation_stands_for_the_groups_that_it_names():
    """What it does not name still has to be approved by its own people."""
    wanted = rule(
        {"group": "dba"},
        {"group": "sre"},
        escalations=[{"group": "managers", "after_seconds": 60, "stands_for": ["dba"]}],
    )
    assert outcome(wanted, say("approve", "mo", "managers", at=hours(1))).missing == ["1 from sre"]


def test_the_glass_is_broken_by_one_person_with_a_reason():
    """Whoever may lets the plan go alone, also as the requester, and what was said stands in the weighing."""
    weighing = outcome(GLASS, say("break_glass", "ada", "oncall", comment="site is down"))
    assert (weighing.outcome, weighing.by, weighing.missing) == ("satisfied", ["ada"], [])
    assert weighing.broken_glass == "ada: site is down"


@pytest.mark.parametrize(
    ("word", "why"),
    [
        (say("break_glass", "bo", "dba", comment="quick"), "may not break the glass"),
        (say("break_glass", "bo", "oncall"), "gave no reason"),
        (say("break_glass", "bo", "oncall", comment="  "), "gave no reason"),
        (say("break_glass", "bo", "oncall", comment="late", at=EXPIRES), "expired"),
    ],
)
def test_a_glass_that_is_broken_wrongly_is_not_broken(word, why):
    """Without the group, without a reason or too late it counts for nothing, and says why."""
    weighing = outcome(GLASS, word)
    assert (weighing.outcome, weighing.broken_glass) == ("pending", "")
    assert why in weighing.ignored[0].why


def test_nobody_breaks_the_glass_where_the_rule_lets_nobody():
    """A rule that says nothing of it lets nobody, not even who stands for every group."""
    weighing = outcome(rule({"group": "dba"}), say("break_glass", "bo", "*", comment="now"))
    assert weighing.outcome == "pending"
    assert weighing.ignored[0].why.endswith("its rule lets: nobody")


def test_a_rejection_goes_before_a_broken_glass():
    """Breaking the glass makes up for people who are away, not for one who said no; and it can be withdrawn."""
    broken = say("break_glass", "bo", "oncall", comment="now")
    assert outcome(GLASS, broken, say("reject", "cy", "dba")).outcome == "denied"
    assert outcome(GLASS, broken, say("withdraw", "bo", at=hours(1))).outcome == "withdrawn"


def test_a_template_goes_by_the_policy_that_it_names():
    """What the review does not say is the policy's to say, and the rule names the policy."""
    known = policies(production={"approvals": [{"from": "dba", "count": 2}], "requester_may_approve": False})
    pinned = pinned_rule(review(policy="production", editable=["version"]), known)
    assert [(one.group, one.count) for one in pinned.approvals] == [("dba", 2)]
    assert (pinned.policy, pinned.requester_may_approve, pinned.editable) == ("production", False, ["version"])


def test_what_stands_beside_a_policy_only_asks_for_more():
    """A template can neither lower a count, nor let the requester approve, nor wait longer, nor escalate or break."""
    known = policies(
        production={
            "approvals": [{"from": "dba", "count": 2}],
            "requester_may_approve": False,
            "expires": {"after": "1d"},
        }
    )
    asked = review(
        policy="production",
        approvals=[{"from": "dba"}, {"from": "sre"}],
        requester_may_approve=True,
        expires={"after": "7d"},
        escalate=[{"after": "1m", "from": "friends"}],
        break_glass=["friends"],
    )
    pinned = pinned_rule(asked, known)
    assert [(one.group, one.count) for one in pinned.approvals] == [("dba", 2), ("sre", 1)]
    assert pinned.expires_after_seconds == 86400
    assert (pinned.requester_may_approve, pinned.escalations, pinned.break_glass) == (False, [], [])


def test_an_unknown_policy_is_a_refusal_not_a_pass():
    """The error names the nearest one."""
    with pytest.raises(UserError, match=r"no policy 'prodution'.*Did you mean 'production'"):
        pinned_rule(review(policy="prodution"), policies(production={}))


def test_a_policy_called_default_holds_for_templates_that_name_none():
    """It is the floor: also a template that wants nobody's approval gets it."""
    known = policies(**{FLOOR: {"approvals": [{"from": "ops"}]}})
    assert [one.group for one in pinned_rule(review(), known).approvals] == ["ops"]
    assert [one.group for one in pinned_rule(review(approvals=[]), known).approvals] == ["ops"]


def test_a_policy_that_was_tightened_meanwhile_counts_at_once():
    """A plan that waits is weighed by the stricter of its own rule and today's, and the reviewer is told."""
    pinned = rule({"group": "dba"}, policy="production")
    today = Today(policies=policies(production={"approvals": [{"from": "dba", "count": 2}, {"from": "sre"}]}))
    weighing = outcome(pinned, say("approve", "bo", "dba"), today=today)
    assert weighing.missing == ["1 from dba", "1 from sre"]
    assert weighing.notes == [
        "Policy 'production' is stricter today than when this plan was frozen (2 from dba, 1 from sre)."
    ]


def test_a_policy_that_was_loosened_meanwhile_changes_nothing():
    """The pinned rule stands."""
    pinned = rule({"group": "dba", "count": 2}, policy="production", requester_may_approve=False)
    today = Today(policies=policies(production={"approvals": []}))
    weighing = outcome(pinned, say("approve", "bo", "dba"), today=today)
    assert (weighing.outcome, weighing.missing, weighing.notes) == ("pending", ["1 from dba"], [])


def test_a_policy_that_is_gone_satisfies_nothing():
    """Neither approvals nor a broken glass let a plan go whose policy is not there any more; a no still counts."""
    pinned = rule({"group": "dba"}, policy="production", break_glass=["oncall"])
    today = Today(policies={})
    for word in (say("approve", "bo", "dba"), say("break_glass", "bo", "oncall", comment="now")):
        weighing = outcome(pinned, word, today=today)
        assert weighing.outcome == "pending"
        assert "policy 'production', which config.toml does not have any more" in weighing.missing
    assert outcome(pinned, say("reject", "bo", "dba"), today=today).outcome == "denied"


def test_a_deadline_that_was_shortened_meanwhile_holds():
    """Decisions after today's deadline do not count, and nothing is approved by it."""
    pinned = rule({"group": "dba"}, policy="production")
    today = Today(policies=policies(production={"expires": {"after": "1h"}, "approvals": [{"from": "dba"}]}))
    weighing = outcome(pinned, say("approve", "bo", "dba", at=hours(1)), today=today, now=hours(1))
    assert (weighing.outcome, weighing.by) == ("denied", [])


def test_a_parked_plan_has_no_deadline():
    """``then: park`` waits for as long as it takes; with a rule that denies, the deadline holds."""
    parked = read_policy("parked", Policy.model_validate({"expires": {"after": "7d", "then": "park"}}))
    assert timedelta(seconds=parked.expires_after_seconds) > timedelta(days=36000)
    assert stricter(parked, rule({"group": "dba"})).on_expiry == "deny"
    assert stricter(parked, rule({"group": "dba"})).expires_after_seconds == 7 * 86400


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"approvals": [{"from": "a", "after": ["b"]}]}, "`after` names b"),
        ({"approvals": [{"from": "a", "after": ["b"]}, {"from": "b", "after": ["a"]}]}, "circle: a, b"),
        ({"escalate": [{"after": "1h", "from": "x", "for": ["nobody"]}]}, "`escalate` names nobody"),
        ({"requester_may_approve": "{{ inputs.x }}"}, "is an expression"),
        ({"approvals": [{"from": "a"}, {"from": "a"}]}, "stands twice"),
    ],
)
def test_a_policy_that_could_never_be_satisfied_is_refused(said, why):
    """Groups that nobody asks, circles and expressions are said when the policy is read."""
    with pytest.raises(ValidationError, match=why):
        Policy.model_validate(said)


def test_policies_that_make_a_circle_together_are_refused():
    """A template whose order contradicts its policy's has no plan."""
    known = policies(production={"approvals": [{"from": "a"}, {"from": "b", "after": ["a"]}]})
    asked = review(policy="production", approvals=[{"from": "a", "after": ["b"]}, {"from": "b"}])
    with pytest.raises(UserError, match="a, b would wait for each other"):
        pinned_rule(asked, known)


def test_people_and_policies_of_today_count_together():
    """Somebody who was removed does not make up for a policy that asks for one more."""
    pinned = rule({"group": "dba"}, policy="production")
    today = Today(people=people(cy=["dba"]), policies=policies(production={"approvals": [{"from": "dba", "count": 2}]}))
    words = [say("approve", "bo", "dba"), say("approve", "cy", "dba")]
    assert outcome(pinned, *words, today=today).missing == ["1 from dba"]
