"""Where strings of a JSON document stand in its text, found by its structure."""

from __future__ import annotations

import json
import re
from typing import Any

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def load_object(text: str) -> dict[str, Any]:
    """Parse a document that is an object. Raises ``ValueError`` saying where it is wrong."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError(f"it is no object but {type(document).__name__}")
    return document


def find_value(text: str, path: tuple[str, ...], begin: int = 0) -> tuple[int, int] | None:
    """Return (start, end) of the value at ``path`` in a valid document; ``None`` when it is absent.

    Of a key given twice the last counts, as every parser here reads it. ``begin``: where the object stands that the
    path begins in.
    """
    start = _skip(text, begin)
    for key in path:
        if not text.startswith("{", start):
            return None
        members = {name: (first, last) for name, first, last in _walk_members(text, start)}
        if key not in members:
            return None
        start, end = members[key]
    return (start, end) if path else None


def find_members(text: str, path: tuple[str, ...]) -> dict[str, int]:
    """Return where the values of the object at ``path`` begin, by key, in one walk; empty when it is no object."""
    span = find_value(text, path)
    if span is None or not text.startswith("{", span[0]):
        return {}
    return {name: first for name, first, _ in _walk_members(text, span[0])}


def _walk_members(text: str, start: int) -> list[tuple[str, int, int]]:
    """(key, start of value, end of value) of the object that begins at ``start``."""
    members: list[tuple[str, int, int]] = []
    position = _skip(text, start + 1)
    while not text.startswith("}", position):
        key, position = _DECODER.raw_decode(text, position)
        first = _skip(text, _skip(text, position) + 1)
        _, last = _DECODER.raw_decode(text, first)
        members.append((key, first, last))
        position = _skip(text, last)
        if text.startswith(",", position):
            position = _skip(text, position + 1)
    return members


def _skip(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position
