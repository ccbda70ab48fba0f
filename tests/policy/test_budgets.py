"""Where an agent stops: limits met, reservations that do not fit, unknown prices, leases of children."""

from __future__ import annotations

import pytest

from perdure.contracts.agent import AgentEnd, Limits, ModelFacts, Spent
from perdure.policy.budgets import add, find_stop, lease, may_ask, may_call, raise_limits, taken_with

FACTS = ModelFacts(
    name="m", window_tokens=100_000, max_output_tokens=1000, input_price=1_000_000, output_price=2_000_000
)
NONE = Limits(turns=0, calls=0, tokens=0, cost_microdollars=0, wall_seconds=0, idle_seconds=0)


def limits(**fields: int) -> Limits:
    """Only these limits."""
    return NONE.model_copy(update=fields)


def stop(spent: Spent, allowed: Limits, wall: int = 0, idle: int = 0) -> str:
    """The reason to stop; empty when there is none."""
    found = find_stop(spent, allowed, wall_seconds=wall, idle_seconds=idle)
    return found.reason if found else ""


@pytest.mark.parametrize(
    ("field", "reason"), [("turns", "turns"), ("calls", "calls"), ("tokens", "tokens"), ("cost_microdollars", "cost")]
)
def test_each_limit_stops_when_it_is_met(field: str, reason: str) -> None:
    """One less than the limit goes on, the limit itself stops with its own reason, 0 is no limit."""
    assert stop(Spent(**{field: 4}), limits(**{field: 5})) == ""
    assert stop(Spent(**{field: 5}), limits(**{field: 5})) == reason
    assert stop(Spent(**{field: 5}), NONE) == ""


def test_time_stops_too() -> None:
    """Wall time and the wait for an answer have limits of their own."""
    assert stop(Spent(), limits(wall_seconds=60), wall=60) == "wall"
    assert stop(Spent(), limits(idle_seconds=60), idle=60) == "idle"
    assert stop(Spent(), limits(idle_seconds=60, wall_seconds=60), wall=59, idle=59) == ""


def test_the_end_says_how_much_of_what() -> None:
    """A person reads what was used of which limit."""
    found = find_stop(Spent(turns=12), limits(turns=12), wall_seconds=0, idle_seconds=0)
    assert found == AgentEnd(reason="turns", sentence="Stopped after 12 of 12 turns.")


def test_a_question_is_asked_only_when_its_dearest_answer_fits() -> None:
    """The whole input and the longest answer are reserved before the call: one microdollar too little refuses it."""
    dearest = 500 * 1 + 1000 * 2
    assert may_ask(Spent(), limits(cost_microdollars=dearest), FACTS, 500) is None
    refused = may_ask(Spent(cost_microdollars=1), limits(cost_microdollars=dearest), FACTS, 500)
    assert refused is not None and refused.reason == "cost"
    refused = may_ask(Spent(), limits(tokens=1499), FACTS, 500)
    assert refused is not None and refused.reason == "tokens"
    assert may_ask(Spent(), limits(tokens=1500), FACTS, 500) is None


def test_an_unknown_price_is_a_stop_where_cost_is_limited() -> None:
    """Nobody asks a model of unknown price within a cost limit; without one the price does not matter."""
    unpriced = FACTS.model_copy(update={"output_price": None})
    refused = may_ask(Spent(), limits(cost_microdollars=10**9), unpriced, 1)
    assert refused is not None and refused.reason == "cost" and "price of m" in refused.sentence
    assert may_ask(Spent(), limits(tokens=10**9), unpriced, 1) is None


def test_unknown_usage_is_a_stop_where_cost_is_limited() -> None:
    """Once a call's usage is not known, an agent with a cost limit stops, whatever was counted."""
    assert stop(Spent(unknown_cost=True), limits(cost_microdollars=10**9)) == "cost"
    assert stop(Spent(unknown_cost=True), limits(turns=5)) == ""
    assert add(Spent(), Spent(unknown_cost=True)).unknown_cost


def test_parallel_calls_run_when_all_of_them_fit() -> None:
    """Three calls beside each other need room for three."""
    assert may_call(Spent(calls=7), limits(calls=10), 3) is None
    refused = may_call(Spent(calls=8), limits(calls=10), 3)
    assert refused is not None and refused.reason == "calls"


def test_a_child_gets_what_is_free_at_its_parent() -> None:
    """A lease is no more than what is left when all other leases are used up; what it does not name is bounded too."""
    allowed = limits(turns=10, cost_microdollars=1000, wall_seconds=60)
    first = lease(Spent(turns=1), allowed, limits(turns=5), [])
    assert isinstance(first, Limits)
    assert (first.turns, first.cost_microdollars, first.wall_seconds) == (5, 1000, 60)
    second = lease(Spent(turns=1), limits(turns=10), limits(turns=50), [first])
    assert isinstance(second, Limits) and second.turns == 4
    none_left = lease(Spent(turns=1), limits(turns=10), limits(turns=1), [first, second])
    assert isinstance(none_left, AgentEnd) and none_left.reason == "turns"


def test_a_parent_counts_what_it_leased_out() -> None:
    """While a child runs, its whole lease is used as far as its parent is concerned."""
    leased = limits(turns=5)
    assert stop(taken_with(Spent(turns=5), [leased]), limits(turns=10)) == "turns"
    assert stop(taken_with(Spent(turns=4), [leased]), limits(turns=10)) == ""


def test_more_can_be_given() -> None:
    """A person adds to a limit and the agent goes on; what was unlimited stays unlimited."""
    raised = raise_limits(limits(turns=10), limits(turns=5, calls=3))
    assert (raised.turns, raised.calls) == (15, 0)
    assert stop(Spent(turns=10), raised) == ""
