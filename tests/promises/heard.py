"""A person is heard: no, cancel, withdrawal, the last word of each."""

from __future__ import annotations

from tests.promises.kept import Kept

PROMISE = "A person is heard."

_ARBITER = "perdure/store/arbiter.py"
_PERMITS = "perdure/store/permits.py"
_PLANS = "perdure/store/plans.py"
_GATES = "perdure/policy/gates.py"
_AGENTS = "perdure/store/agents.py"
_ON_AGENTS = "tests/store/test_agents.py"
_ON_ARBITER = "tests/store/test_arbiter.py"
_ON_DECISIONS = "tests/store/test_decisions.py"
_ON_GATES = "tests/policy/test_gates.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        PROMISE,
        _ARBITER,
        '    if permit.state == "withdrawn":\n',
        "    if False:\n",
        f"{_ON_ARBITER}::test_a_withdrawn_permit_starts_nothing",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        "    if job.cancelled_by:\n",
        "    if False:\n",
        f"{_ON_ARBITER}::test_a_cancelled_job_starts_nothing_more_and_is_taken_back",
    ),
    Kept(
        PROMISE,
        _PERMITS,
        '    if permit is not None and permit.state == "spent":\n',
        "    if False:\n",
        f"{_ON_ARBITER}::test_a_withdrawal_after_the_first_effect_is_too_late",
    ),
    Kept(
        PROMISE,
        _PLANS,
        "    if found != weighed:\n",
        "    if False:\n",
        f"{_ON_DECISIONS}::test_a_gate_cannot_close_over_a_decision_that_was_not_weighed",
    ),
    Kept(
        PROMISE,
        _GATES,
        '    for kind, outcome in (("reject", "denied"), ("request_changes", "changes_requested")):\n',
        '    for kind, outcome in (("request_changes", "changes_requested"),):\n',
        f"{_ON_GATES}::test_one_rejection_denies",
    ),
    Kept(
        PROMISE,
        _GATES,
        "            words[decision.by] = decision\n",
        "            words[decision.id] = decision\n",
        f"{_ON_GATES}::test_the_last_word_of_each_person_counts",
    ),
    Kept(
        PROMISE,
        "perdure/policy/counting.py",
        "    if name == envelope.requester and not rule.requester_may_approve:\n",
        "    if False:\n",
        f"{_ON_GATES}::test_who_asked_or_wrote_may_not_approve_when_the_rule_says_so",
    ),
    Kept(
        PROMISE,
        _GATES,
        "    if decision.at >= gate.deadline:\n",
        "    if False:\n",
        f"{_ON_GATES}::test_a_decision_on_something_else_is_ignored",
    ),
    Kept(
        PROMISE,
        _GATES,
        "    if now >= gate.deadline:\n",
        "    if False:\n",
        f"{_ON_GATES}::test_expiry_denies_what_is_not_satisfied",
    ),
    Kept(
        PROMISE,
        _ARBITER,
        "    if begin.irreversible and has_open_agent(connection, begin.job_id)",
        "    if False and has_open_agent(connection, begin.job_id)",
        f"{_ON_AGENTS}::test_nothing_irreversible_starts_while_a_message_is_undelivered",
    ),
    Kept(
        PROMISE,
        _AGENTS,
        '            if end.reason in ("done", "answered") and unheard(connection, row):\n',
        "            if False:\n",
        f"{_ON_AGENTS}::test_an_agent_that_is_done_is_not_closed_over_an_unheard_message",
    ),
    Kept(
        PROMISE,
        "perdure/store/decisions.py",
        "    if is_final(job) or not has_open_agent(connection, decision.job_id):\n",
        "    if is_final(job):\n",
        f"{_ON_AGENTS}::test_nobody_is_heard_where_no_agent_works",
    ),
)
