"""Budgets under any spending: a tree of agents never uses more than its root was given."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.contracts.agent import Limits, ModelFacts, Spent
from perdure.policy.budgets import add, find_stop, lease, may_ask, may_call, reserve, taken_with

calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
amounts = st.integers(0, 40)
limits = st.builds(
    Limits, turns=amounts, calls=amounts, tokens=amounts, cost_microdollars=amounts, wall_seconds=st.just(0)
)
spent = st.builds(Spent, turns=amounts, calls=amounts, tokens=amounts, cost_microdollars=amounts)
prices = st.one_of(st.none(), st.integers(0, 5_000_000))
facts = st.builds(
    ModelFacts,
    name=st.just("m"),
    window_tokens=st.just(100),
    max_output_tokens=st.integers(1, 10),
    input_price=prices,
    output_price=prices,
)
FIELDS = ("turns", "calls", "tokens", "cost_microdollars")


def is_within(used: Spent, allowed: Limits) -> bool:
    """Whether no limit is passed."""
    return all(not getattr(allowed, name) or getattr(used, name) <= getattr(allowed, name) for name in FIELDS)


@calm
@given(spent, limits, facts, st.integers(0, 30), st.data())
def test_no_answer_passes_what_was_reserved(used, allowed, model, input_tokens, data):
    """A question that may be asked stays within every limit, however long its answer is and whatever was cached."""
    if is_within(used, allowed) and may_ask(used, allowed, model, input_tokens) is None:
        output = data.draw(st.integers(0, model.max_output_tokens))
        cost = model.cost(input_tokens, output)
        assert cost is not None or not allowed.cost_microdollars
        came = Spent(turns=1, tokens=input_tokens + output, cost_microdollars=cost or 0)
        assert is_within(add(used, came), allowed)
        assert all(getattr(came, name) <= getattr(reserve(model, input_tokens), name) for name in FIELDS)


@calm
@given(spent, limits, st.integers(1, 10))
def test_calls_beside_each_other_stay_within_the_limit(used, allowed, count):
    """However many run at once, the limit of calls holds after all of them."""
    if is_within(used, allowed) and may_call(used, allowed, count) is None:
        assert is_within(add(used, Spent(calls=count)), allowed)


@calm
@given(spent, limits, st.lists(limits, max_size=5))
def test_children_together_never_get_more_than_their_parent_has(used, allowed, wishes):
    """Whatever children ask for one after the other, all leases and what was spent fit the parent's limits."""
    if not is_within(used, allowed):
        return
    leases: list[Limits] = []
    for wanted in wishes:
        granted = lease(used, allowed, wanted, leases)
        if isinstance(granted, Limits):
            leases.append(granted)
            for name in FIELDS:
                asked, got = getattr(wanted, name), getattr(granted, name)
                assert got <= asked or not asked
                assert got > 0 or not (asked or getattr(allowed, name))
    assert is_within(taken_with(used, leases), allowed)


@calm
@given(spent, spent, limits)
def test_what_stopped_stays_stopped(used, more, allowed):
    """Spending grows only: an agent over its limits never goes on because it used more."""
    if find_stop(used, allowed, wall_seconds=0, idle_seconds=0) is not None:
        assert find_stop(add(used, more), allowed, wall_seconds=0, idle_seconds=0) is not None
