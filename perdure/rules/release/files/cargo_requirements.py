"""Requirements between the crates of one repository: ``core = { path = "../core", version = "1.2.0" }``.

Cargo refuses to build when a crate's version no longer meets what its neighbour asks for, so they move with it.
"""

from __future__ import annotations

import re
from typing import Any

from perdure.rules.release.files.base import Found, Place, VersionFormat
from perdure.rules.release.files.toml_text import find_strings, load_toml

_KINDS = ("dependencies", "dev-dependencies", "build-dependencies")
# `1.2.0`, `=1.2.0`, `^1.2.0`; ranges are a decision of the project's.
_ONE_VERSION = re.compile(r"(?P<sign>[=^~]?\s*)(?P<version>\d+\.\d+\.\d[0-9A-Za-z.+-]*)")


def find_requirements(text: str) -> Found:
    """Find the single versions that are asked of crates with a ``path``; ``key`` is the crate's name."""
    document = load_toml(text)
    places = []
    for span in find_strings(text):
        table = _table_at(document, span.path[:-1])
        match = _ONE_VERSION.fullmatch(text, span.start, span.end)
        if span.path[-1] != "version" or span.path[-3:-2] not in [(kind,) for kind in _KINDS] or match is None:
            continue
        if isinstance(table.get("path"), str) and table.get("version") == match[0]:
            name = str(table.get("package") or span.path[-2])
            places.append(Place(".".join(span.path), match["version"], *match.span("version"), True, name))
    return Found(tuple(places))


def _table_at(document: Any, path: tuple[str, ...]) -> dict[str, Any]:
    found = document
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


CARGO_REQUIREMENTS = VersionFormat("cargo-requirements", (), find_requirements, names_own_package=False)
