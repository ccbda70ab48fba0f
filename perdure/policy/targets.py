"""What a call touches: one target a line, compared by digest however long it is, shown short."""

from __future__ import annotations

import hashlib
import json

from perdure.contracts.base import JsonDict

SHOWN = 400
"""Characters of all targets of a call that its record and its plan show."""

_MARK = 16


def targets_of(text: str) -> set[str]:
    """Return the targets that a tool names, each on a line of its own."""
    return set(text.split("\n"))


def marks_of(text: str) -> tuple[str, ...]:
    """Return what tells each target from every other, sorted: 16 hex digits each, whatever its length."""
    return tuple(
        sorted({hashlib.sha256(target.encode("utf-8", "replace")).hexdigest()[:_MARK] for target in targets_of(text)})
    )


def shorten(text: str, most: int = SHOWN) -> str:
    """Return ``text`` when it is short; else its beginning and its digest, so that two that differ never look alike."""
    if len(text) <= most:
        return text
    digest = f"… sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
    return text[: most - len(digest)] + digest


def hash_arguments(arguments: JsonDict) -> str:
    """Return 32 hex digits that stand for exactly these arguments."""
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()[:32]
