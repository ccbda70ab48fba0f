"""Regular expressions in settings, as far as they only list types; none of a project's own is ever run.

A pattern from a repository may take for ever, and each tool has its own dialect. What lists words is read as words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORDS = r"[A-Za-z][\w-]*(?:\|[A-Za-z][\w-]*)*"
_LISTED = re.compile(
    rf"\^?(?:\((?:\?:)?(?P<group>{_WORDS})\)|(?P<bare>{_WORDS}))(?:\\?\((?P<scope>[\w-]+)\\?\))?(?P<mark>!?)(?:\\b|:|\$)?"
)
_BREAKING = re.compile(r"(?i)\^?\(?(?:\.[+*]\??!|.*breaking[^a-z]*change).*")


@dataclass(frozen=True)
class Named:
    """The kinds of change that a pattern names."""

    keys: tuple[str, ...]
    """Types, each with the scope where the pattern has one; empty for breaking changes."""
    is_breaking: bool = False


def read_pattern(text: str) -> Named | None:
    """Return what a pattern lists: ``^(new|feat)``, ``^chore\\(deps\\)``; ``None`` when it is more than a list."""
    if _BREAKING.fullmatch(text):
        return Named((), is_breaking=True)
    found = _LISTED.fullmatch(text)
    if found is None or found["mark"]:
        return None
    scope = f"({found['scope']})" if found["scope"] else ""
    words = (found["group"] or found["bare"]).split("|")
    return Named(tuple(f"{word.lower()}{scope}" for word in words))
