"""``package.json`` and the root's version in npm's lock files."""

from __future__ import annotations

from typing import Any

from perdure.rules.release.files.base import Found, Place
from perdure.rules.release.files.json_text import find_value, load_object


class PackageJson:
    """npm's manifest."""

    name = "package-json"
    file_names = ("package.json",)

    def find(self, text: str) -> Found:
        document = load_object(text)
        place = _find_place(text, document, ("version",))
        name = document.get("name")
        return Found((place,) if place else (), name if isinstance(name, str) else "")


class PackageLock:
    """npm's lock files: the package itself is named at the top and, since version 2, under the empty path."""

    name = "package-lock"
    file_names = ("package-lock.json", "npm-shrinkwrap.json")

    def find(self, text: str) -> Found:
        document = load_object(text)
        places = [_find_place(text, document, path) for path in (("version",), ("packages", "", "version"))]
        return Found(tuple(place for place in places if place))


def _find_place(text: str, document: dict[str, Any], path: tuple[str, ...]) -> Place | None:
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    span = find_value(text, path)
    if not isinstance(value, str) or span is None:
        return None
    start, end = span[0] + 1, span[1] - 1
    where = ".".join(key or '""' for key in path)
    if text[start:end] != value:
        raise ValueError(f"{where} is written with escapes; expected plain text")
    return Place(where, value, start, end)
