"""What an agent passes on is never more than it has."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.contracts.agent import Limits, Spent
from perdure.policy.budgets import lease
from perdure.policy.delegation import DELEGATE, MOST_DEPTH, Grant, is_within, narrow, wish
from perdure.policy.patterns import matches

PARTS = st.sampled_from(["src", "a", "b.py", "*", "**", "?", "..", "", "*.py"])
GLOBS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
FILES = st.lists(st.sampled_from(["src", "a", "b", "b.py", ".hidden"]), min_size=1, max_size=4).map("/".join)
AMOUNTS = st.integers(min_value=0, max_value=50)


@settings(deadline=None)
@given(GLOBS, st.lists(GLOBS, min_size=1, max_size=3), FILES)
def test_what_is_within_matches_nothing_outside(pattern: str, allowed: list[str], file: str) -> None:
    """No file that a child's glob matches is one that none of its parent's does."""
    if is_within(pattern, tuple(allowed)) and matches(pattern, file):
        assert any(matches(one, file) for one in allowed)


@pytest.mark.parametrize(
    ("pattern", "allowed", "expected"),
    [
        ("src/a.py", ["src/**"], True),
        ("src/*/x", ["src/**"], True),
        ("src/**", ["src/**"], True),
        ("docs/a.md", ["**"], True),
        ("anything", [], True),
        ("src/../docs", ["src/**"], False),
        ("/src/a", ["src/**"], False),
        ("srcx/a", ["src/**"], False),
        ("src", ["src/**"], False),
        ("**", ["src/**"], False),
        ("*/a", ["src/**"], False),
        ("src/a", ["src/*"], False),
    ],
)
def test_folders_hold_what_is_beneath_them(pattern: str, allowed: list[str], expected: bool) -> None:
    """Only what is certainly beneath a parent's folder counts; what cannot be told is outside."""
    assert is_within(pattern, tuple(allowed)) is expected


def test_a_grant_only_shrinks() -> None:
    """Left out, a child gets its parent's tools but that of starting agents, and its parent's paths."""
    has = Grant(("files.read", DELEGATE), ("src/**",))
    child, problems = narrow(has, (), ())
    assert (child, problems) == (Grant(("files.read",), ("src/**",), 1), [])
    child, problems = narrow(has, (DELEGATE,), ("src/a",))
    assert (child, problems) == (Grant((DELEGATE,), ("src/a",), 1), [])
    _, problems = narrow(child, (DELEGATE,), ())
    assert "too deep" in problems[0]
    _, problems = narrow(Grant(has.tools, (), MOST_DEPTH), (), ())
    assert "start none" in problems[0]
    _, problems = narrow(has, ("shell.run",), ("docs/**",))
    assert [problem.split(":")[0] for problem in problems] == [
        "You cannot pass on what you have not",
        "Outside of what you may change",
    ]


@settings(deadline=None)
@given(AMOUNTS, AMOUNTS, st.lists(AMOUNTS, max_size=3), AMOUNTS)
def test_leases_never_exceed_what_their_parent_has(limit: int, used: int, out: list[int], turns: int) -> None:
    """Whatever was given out, one more child with what it wishes for still fits, or there is none."""
    limits = Limits(turns=limit, calls=limit, tokens=limit, cost_microdollars=limit)
    spent = Spent(turns=used, calls=used, tokens=used, cost_microdollars=used)
    leases = [Limits(turns=one, calls=one, tokens=one, cost_microdollars=one) for one in out]
    granted = lease(spent, limits, wish(spent, limits, leases, turns), leases)
    if isinstance(granted, Limits) and limit:
        for name in ("turns", "calls", "tokens", "cost_microdollars"):
            assert 0 < getattr(granted, name) <= limit - used - sum(out)
