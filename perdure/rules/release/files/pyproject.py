"""``pyproject.toml``: ``project.version`` (PEP 621) and ``tool.poetry.version``."""

from __future__ import annotations

from typing import Any

from perdure.rules.release.files.base import Found, Place
from perdure.rules.release.files.toml_text import find_string, load_toml

_TABLES = (("project",), ("tool", "poetry"))


class Pyproject:
    """Python's manifest."""

    name = "pyproject"
    file_names = ("pyproject.toml",)

    def find(self, text: str) -> Found:
        document = load_toml(text)
        tables = [(path, _table(document, path)) for path in _TABLES]
        places = [place for path, table in tables if (place := find_toml_place(text, table, (*path, "version")))]
        names = [str(table["name"]) for _, table in tables if table.get("name")]
        return Found(tuple(places), names[0] if names else "", _explain(document, bool(places)))


def find_toml_place(text: str, table: dict[str, Any], path: tuple[str, ...]) -> Place | None:
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
    return Place(where, version, span.start, span.end)


def _table(document: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    found: Any = document
    for key in path:
        found = found.get(key, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}


def _explain(document: dict[str, Any], has_places: bool) -> tuple[str, ...]:
    if "version" in (_table(document, ("project",)).get("dynamic") or ()):
        return ("its version is dynamic (the build computes it), so it is not written",)
    if not has_places and _table(document, ("project",)):
        return ("it names no version",)
    return ()
