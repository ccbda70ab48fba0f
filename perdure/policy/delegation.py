"""What an agent may pass on to an agent that it starts: never more than it has, and less at every step down."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.contracts.agent import Limits, Spent

DELEGATE = "agents.delegate"
"""The tool that starts an agent."""
MOST_DEPTH = 2
"""So many agents stand above one another beneath the one that a job started."""
_SIGNS = frozenset("*?[]{}")


@dataclass(frozen=True)
class Grant:
    """What an agent may do, as far as it can be passed on."""

    tools: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Globs of what may be changed; empty: everything."""
    depth: int = 0
    """How many agents stand above it."""


def narrow(has: Grant, tools: tuple[str, ...], paths: tuple[str, ...]) -> tuple[Grant, list[str]]:
    """Return (what a child gets, what was wanted and cannot be had: one sentence each).

    Without ``tools`` it gets all but that of starting agents; without ``paths`` its parent's.
    """
    depth = has.depth + 1
    problems = []
    if depth > MOST_DEPTH:
        problems.append(f"There are {has.depth} agents above you already; agents that deep start none.")
    missing = [tool for tool in tools if tool not in has.tools]
    if missing:
        problems.append(f"You cannot pass on what you have not: {', '.join(missing)}. You have {', '.join(has.tools)}.")
    if DELEGATE in tools and depth >= MOST_DEPTH:
        problems.append(f"An agent at depth {depth} cannot have {DELEGATE}: it would start agents too deep.")
    outside = [path for path in paths if not is_within(path, has.paths)]
    if outside:
        problems.append(f"Outside of what you may change: {', '.join(outside)}. You may change {', '.join(has.paths)}.")
    given = tools or tuple(tool for tool in has.tools if tool != DELEGATE)
    return Grant(given, paths or has.paths, depth), problems


def is_within(pattern: str, allowed: tuple[str, ...]) -> bool:
    """Whether all that a glob matches is certainly matched by one of ``allowed``; empty: everything is.

    Certainly: the very same glob, or anything beneath the folder of one that ends in ``/**``. What cannot be told by
    that counts as outside.
    """
    if not allowed or pattern in allowed:
        return True
    parts = pattern.split("/")
    if pattern.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return False
    folders = [one.removesuffix("/**") for one in allowed if one == "**" or one.endswith("/**")]
    return any(
        folder == "**" or (not _SIGNS & set(folder) and pattern.startswith(f"{folder}/") and pattern != f"{folder}/")
        for folder in folders
    )


def wish(spent: Spent, limits: Limits, leases: list[Limits], turns: int) -> Limits:
    """Return what a child asks for: so many turns, and half of what is free of everything else.

    So the first one cannot starve those after it, and what it leaves comes back when it has ended.
    """
    halves = {}
    for name in ("calls", "tokens", "cost_microdollars"):
        taken = getattr(spent, name) + sum(getattr(one, name) for one in leases)
        limit = getattr(limits, name)
        halves[name] = max((limit - taken) // 2, 1) if limit else 0
    return Limits(turns=turns, wall_seconds=0, idle_seconds=limits.idle_seconds, **halves)
