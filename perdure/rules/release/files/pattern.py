"""Places that a project declares itself, for files of no known format: ``README.md: orders=={version}``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perdure.errors import UserError
from perdure.rules.release.files.base import Found, Place, VersionFormat

_HOLE = "{version}"
_PREFIX = "pattern:"
# What follows may not go on with the version: `1.2.0` is not found in `1.2.0.1` or `1.2.0-rc.1`.
# Its parts are bounded: the files are anybody's, and the search may begin at every character.
_VERSION = r"(?P<version>\d[0-9A-Za-z]{0,40}(?:[-+.!_][0-9A-Za-z]{1,40}){0,12})(?![0-9A-Za-z])"


@dataclass(frozen=True)
class Declared:
    """One declaration."""

    path: str
    """Relative to the package's folder."""
    search: str
    """Text with one ``{version}``; everything else is meant as written."""


def read_declarations(given: object) -> list[Declared]:
    """Read ``path: text with {version}`` lines (or ``{path, search}`` mappings).

    Raises:
        UserError: one has another shape, leaves the folder, or does not hold ``{version}`` exactly once.
    """
    items = given if isinstance(given, list) else [given] if given else []
    return [_read(item) for item in items]


def _read(item: object) -> Declared:
    if isinstance(item, dict):
        path, search = str(item.get("path") or ""), str(item.get("search") or "")
    else:
        path, _, search = str(item).partition(":")
    declared = Declared(path.strip(), search.strip() if isinstance(item, str) else search)
    if not declared.path or declared.search.count(_HOLE) != 1 or declared.search == _HOLE:
        raise UserError(
            f"also={item!r} names no place. Expected a file and its text around the version, "
            "for example 'README.md: orders=={version}'."
        )
    if declared.path.startswith("/") or ".." in declared.path.split("/"):
        raise UserError(f"also={item!r} leaves the package. Give a path relative to the package's folder.")
    return declared


def pattern_format(search: str) -> VersionFormat:
    """Return a format that finds a version wherever this text stands around it."""
    before, _, after = search.partition(_HOLE)
    regex = re.compile(re.escape(before) + _VERSION + re.escape(after))

    def find(text: str) -> Found:
        return Found(tuple(Place(search, m["version"], *m.span("version"), follows=True) for m in regex.finditer(text)))

    return VersionFormat(_PREFIX + search, (), find, "text")


def read_pattern_name(name: str) -> VersionFormat | None:
    """Return the format that such a name stands for; ``None`` for the name of another format."""
    return pattern_format(name.removeprefix(_PREFIX)) if name.startswith(_PREFIX) else None
