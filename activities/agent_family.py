"""Agents that stand above one another: what the lower ones use counts above, and more than is free nobody gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from perdure.contracts.agent import Limits, Spent
from perdure.policy.budgets import add, taken_with
from perdure.store.agent_rows import AgentRow

LeaseOf = Callable[[str], Limits]
"""Gives an agent's limits by its id."""


def children(of: str, rows: Sequence[AgentRow]) -> Iterator[AgentRow]:
    """The agents right below one."""
    yield from (row for row in rows if row.agent_id.rpartition("/")[0] == of)


def used(agent_id: str, spent: Spent, below: Sequence[AgentRow]) -> Spent:
    """What an agent used, and all that have ended below it."""
    ended = [used(row.agent_id, row.spent, below) for row in children(agent_id, below) if row.end is not None]
    return add(spent, *ended)


def leases(agent_id: str, below: Sequence[AgentRow], lease_of: LeaseOf) -> list[Limits]:
    """What is out to agents below that have not ended, also to those of ended ones."""
    found = []
    for row in children(agent_id, below):
        found += [lease_of(row.agent_id)] if row.end is None else leases(row.agent_id, below, lease_of)
    return found


def taken(row: AgentRow, below: Sequence[AgentRow], lease_of: LeaseOf) -> Spent:
    """What an agent has to count as used by now."""
    return (
        taken_with(used(row.agent_id, row.spent, below), leases(row.agent_id, below, lease_of)) if below else row.spent
    )


def parked_seconds(agent_id: str, below: Sequence[AgentRow]) -> int:
    """How long an agent waited for agents that waited for people. Those of one turn waited beside each other."""
    longest: dict[str, int] = {}
    for row in children(agent_id, below):
        turn = row.agent_id.rpartition("/")[2].partition(".")[0]
        waited = row.parked_seconds + parked_seconds(row.agent_id, below)
        longest[turn] = max(longest.get(turn, 0), waited)
    return sum(longest.values())
