"""Where an agent stops: budgets are reserved before a call, over children too. Whole numbers only, money too.

What is unknown (a price, the usage of a call) counts as a stop wherever cost is limited: nobody can say what is left.
"""

from __future__ import annotations

from collections.abc import Iterable

from perdure.contracts.agent import AgentEnd, EndReason, Limits, ModelFacts, Spent

_COUNTED: tuple[tuple[EndReason, str, str], ...] = (
    ("turns", "turns", "turns"),
    ("calls", "calls", "tool calls"),
    ("tokens", "tokens", "tokens"),
    ("cost", "cost_microdollars", "microdollars"),
)
"""Reason, field of ``Spent`` and ``Limits``, and the words for it; asked in this order."""


def find_stop(spent: Spent, limits: Limits, *, wall_seconds: int, idle_seconds: int) -> AgentEnd | None:
    """Return why an agent may not begin another turn; ``None`` when it may.

    ``wall_seconds``: since its start without the time parked for people; ``idle_seconds``: of the wait for an answer
    that lasts now, 0 when nobody is asked.
    """
    if spent.unknown_cost and limits.cost_microdollars:
        return _unknown("The price or the usage of a call is not known")
    for reason, field, words in _COUNTED:
        used, limit = getattr(spent, field), getattr(limits, field)
        if limit and used >= limit:
            return _end(reason, used, limit, words)
    if limits.wall_seconds and wall_seconds >= limits.wall_seconds:
        return _end("wall", wall_seconds, limits.wall_seconds, "seconds")
    if limits.idle_seconds and idle_seconds >= limits.idle_seconds:
        return _end("idle", idle_seconds, limits.idle_seconds, "seconds of waiting for an answer")
    return None


def may_ask(spent: Spent, limits: Limits, facts: ModelFacts, input_tokens: int) -> AgentEnd | None:
    """Return why a model may not be asked now; ``None`` when the dearest answer still fits.

    The dearest one: ``input_tokens`` none of which came from a cache, and the longest answer the model can give.
    """
    reserved = reserve(facts, input_tokens)
    if reserved.unknown_cost and limits.cost_microdollars:
        return _unknown(f"The price of {facts.name} is not known")
    after = add(spent, reserved)
    for reason, field, words in _COUNTED:
        used, limit = getattr(spent, field), getattr(limits, field)
        if limit and getattr(after, field) > limit:
            return _end(reason, used, limit, words, f", and the next turn could need {getattr(reserved, field)}")
    return None


def reserve(facts: ModelFacts, input_tokens: int) -> Spent:
    """Return the most that one question of ``input_tokens`` to a model can come to."""
    cost = facts.cost(input_tokens, facts.max_output_tokens)
    return Spent(
        turns=1,
        tokens=input_tokens + facts.max_output_tokens,
        cost_microdollars=cost or 0,
        unknown_cost=cost is None,
    )


def may_call(spent: Spent, limits: Limits, calls: int) -> AgentEnd | None:
    """Return why ``calls`` tool calls may not run beside each other; ``None`` when all of them fit."""
    if limits.calls and spent.calls + calls > limits.calls:
        return _end("calls", spent.calls, limits.calls, "tool calls", f", and {calls} more were wanted")
    return None


def add(*amounts: Spent) -> Spent:
    """Return the sum; unknown once one of them is."""
    return Spent(
        **{field: sum(getattr(amount, field) for amount in amounts) for _, field, _ in _COUNTED},
        unknown_cost=any(amount.unknown_cost for amount in amounts),
    )


def lease(spent: Spent, limits: Limits, wanted: Limits, leases: Iterable[Limits] = ()) -> Limits | AgentEnd:
    """Return what a child may use: of each amount what it wants, but no more than is free at its parent.

    ``leases`` are those of children that have not ended: all of each is taken, whatever they used. A wanted 0 (no
    limit of its own) becomes what is free. An end instead when nothing is free: a lease of 0 would be no limit.
    """
    outstanding = list(leases)
    granted: dict[str, int] = {}
    for reason, field, words in _COUNTED:
        limit, asked = getattr(limits, field), getattr(wanted, field)
        taken = getattr(spent, field) + sum(getattr(one, field) for one in outstanding)
        if limit and taken >= limit:
            return _end(reason, taken, limit, words, " (children included)")
        granted[field] = min(asked or limit - taken, limit - taken) if limit else asked
    if spent.unknown_cost and limits.cost_microdollars:
        return _unknown("The price or the usage of a call is not known")
    return wanted.model_copy(update={**granted, "wall_seconds": _tighter(limits.wall_seconds, wanted.wall_seconds)})


def taken_with(spent: Spent, leases: Iterable[Limits]) -> Spent:
    """Return what a parent has to count as used while its children run: what it spent and all that it leased out."""
    leased = [Spent(**{field: getattr(one, field) for _, field, _ in _COUNTED}) for one in leases]
    return add(spent, *leased)


def raise_limits(limits: Limits, more: Limits) -> Limits:
    """Return limits after a person gave more: each amount grows by what ``more`` says; what is unlimited stays so."""
    names = Limits.model_fields
    return Limits(
        **{name: getattr(limits, name) + getattr(more, name) if getattr(limits, name) else 0 for name in names}
    )


def _tighter(one: int, other: int) -> int:
    return min(one, other) if one and other else one or other


def _end(reason: EndReason, used: int, limit: int, words: str, rest: str = "") -> AgentEnd:
    return AgentEnd(reason=reason, sentence=f"Stopped after {used} of {limit} {words}{rest}.")


def _unknown(what: str) -> AgentEnd:
    sentence = f"{what}, so nobody can tell what is left of the cost limit. Set prices for the model, or no cost limit."
    return AgentEnd(reason="cost", sentence=sentence)
