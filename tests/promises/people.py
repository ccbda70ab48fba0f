"""Least authority among people: who counts today, by which rule, and that no agent decides."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "Least authority: people decide by the rule and as who they are today; agents decide nothing."

_GATES = "perdure/policy/gates.py"
_COUNTING = "perdure/policy/counting.py"
_PEOPLE = "perdure/policy/people.py"
_RULES = "perdure/policy/review_rules.py"
_ON_PEOPLE = "tests/policy/test_people.py"
_ON_RULES = "tests/policy/test_review_rules.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        "perdure/policy/authorize.py",
        "        return known & AGENT_RIGHTS if self.acts_for else known\n",
        "        return known\n",
        "tests/policy/test_authorize.py::test_an_agent_never_has_a_right_to_decide",
    ),
    Kept(
        PROMISE,
        "perdure/deciding.py",
        "        refuse_agent(who)\n",
        "",
        "tests/api/test_people_routes.py::test_an_agent_signs_nothing_through_any_door",
    ),
    Kept(
        PROMISE,
        "perdure/store/access.py",
        "    if groups or not AGENT_RIGHTS.issuperset(may):\n",
        "    if False:\n",
        "tests/store/test_access.py::test_no_token_lets_an_agent_decide",
    ),
    Kept(
        PROMISE,
        _GATES,
        "    if why := why_nobody(decision.by, today):\n",
        '    if why := "":\n',
        f"{_ON_PEOPLE}::test_a_principal_that_was_removed_counts_no_more",
    ),
    Kept(
        PROMISE,
        _PEOPLE,
        "    return [group for group in groups if is_in(person.groups, group)]\n",
        "    return list(groups)\n",
        f"{_ON_PEOPLE}::test_a_group_that_was_taken_away_counts_no_more_and_a_new_one_not_yet",
    ),
    Kept(
        PROMISE,
        _COUNTING,
        "if not why_own(name, rule, envelope)]\n",
        "]\n",
        f"{_ON_PEOPLE}::test_what_somebody_may_not_approve_nobody_approves_in_their_place",
    ),
    Kept(
        PROMISE,
        _PEOPLE,
        "        if word.at <= decision.at < min(given.until, ended.get((word.by, word.id), given.until)):\n",
        "        if True:\n",
        f"{_ON_PEOPLE}::test_somebody_decides_in_anothers_place_until_the_end",
    ),
    Kept(
        PROMISE,
        _COUNTING,
        "    return [offers[index][0] for index in sorted(holder.values())]\n",
        "    return [decision for decision, _ in offers]\n",
        f"{_ON_PEOPLE}::test_an_authority_counts_once_whoever_speaks_with_it",
    ),
    Kept(
        PROMISE,
        _COUNTING,
        "    return None if len(known) < len(ends) else max(known, default=0)\n",
        "    return 0\n",
        f"{_ON_RULES}::test_a_group_decides_before_another",
    ),
    Kept(
        PROMISE,
        _COUNTING,
        "for one, due in _escalations(need, rule, envelope) if at >= due)]\n",
        "for one, due in _escalations(need, rule, envelope))]\n",
        f"{_ON_RULES}::test_nobody_stands_for_a_group_before_the_escalation_is_due",
    ),
    Kept(
        PROMISE,
        _GATES,
        '    return "" if decision.comment.strip() else f"{decision.by} gave no reason',
        '    return "" if True else f"{decision.by} gave no reason',
        f"{_ON_RULES}::test_a_glass_that_is_broken_wrongly_is_not_broken",
    ),
    Kept(
        PROMISE,
        _RULES,
        '    return (pinned if policy is None else stricter(pinned, policy)), ""\n',
        '    return pinned, ""\n',
        f"{_ON_RULES}::test_a_policy_that_was_tightened_meanwhile_counts_at_once",
    ),
    Kept(
        PROMISE,
        _RULES,
        "    if pinned.policy and pinned.policy not in today.policies:\n",
        "    if False:\n",
        f"{_ON_RULES}::test_a_policy_that_is_gone_satisfies_nothing",
    ),
    Kept(
        PROMISE,
        _RULES,
        "    if name not in policies:\n        raise UserError(\n",
        "    if False:\n        raise UserError(\n",
        f"{_ON_RULES}::test_an_unknown_policy_is_a_refusal_not_a_pass",
    ),
)
