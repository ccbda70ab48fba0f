"""The nearest name: what a message offers when somebody mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHOWN = 12


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that looks most like ``name``; empty when none does."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)), "")


def suggest(name: str, known: Iterable[str], kind: str = "names") -> str:
    """Return `` Did you mean 'x'? Known names: …`` (it begins with a blank), or that there are none."""
    names = sorted(known)
    best = nearest(name, names)
    listed = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    question = f" Did you mean {best!r}?" if best else ""
    return f"{question} Known {kind}: {listed or 'none'}."
