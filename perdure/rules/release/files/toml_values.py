"""Tables and places in TOML documents: what every TOML manifest here is read with."""

from __future__ import annotations

from typing import Any

from perdure.rules.release.files.base import Place
from perdure.rules.release.files.toml_text import find_string


def table_at(document: dict[str, Any], *path: str) -> dict[str, Any]:
    """Return the table at ``path``; an empty one when there is none."""
    found: Any = document
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def find_toml_place(text: str, table: dict[str, Any], path: tuple[str, ...], *, follows: bool = False) -> Place | None:
    """Return the place of the string at ``path``, of which ``table`` holds the last key; ``None`` when it is no string.

    Raises:
        ValueError: it is written in a way that cannot be replaced character by character.
    """
    version = table.get(path[-1])
    if not isinstance(version, str):
        return None
    span = find_string(text, path)
    where = ".".join(path)
    if span is None or text[span.start : span.end] != version:
        raise ValueError(f"{where} is written with escapes or over several lines; expected plain text in one line")
    return Place(where, version, span.start, span.end, follows)
