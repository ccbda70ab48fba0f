"""``package.json``, npm's lock files, and other JSON manifests that say ``version`` at the top."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perdure.rules.release.files.base import Found, Place, VersionFormat, is_version_like
from perdure.rules.release.files.json_text import find_members, find_value, load_object


def find_manifest(text: str) -> Found:
    """Find ``version`` at the top."""
    document = load_object(text)
    place = _find_place(text, document, ("version",))
    name = document.get("name")
    return Found((place,) if place else (), name if isinstance(name, str) else "")


def find_lerna(text: str) -> Found:
    """Find ``version`` of packages that move as one; ``independent`` ones have their own."""
    found = find_manifest(text)
    return replace(found, places=tuple(place for place in found.places if is_version_like(place.version)))


def find_lock(text: str) -> Found:
    """Find the versions of the repository's own packages; ``key`` is a package's folder, empty for the lock's own.

    The lock's own package is named at the top and, since version 2, under the empty path.
    """
    document = load_object(text)
    places = [_find_place(text, document, ("version",))]
    packages: dict[str, Any] = document["packages"] if isinstance(document.get("packages"), dict) else {}
    for path, begin in find_members(text, ("packages",)).items():
        if _is_own(path, packages[path]):
            place = _find_place(text, packages[path], ("version",), begin)
            places.append(replace(place, where=f"packages.{_quote(path)}.version", key=path) if place else None)
    return Found(tuple(place for place in places if place))


def _is_own(path: str, package: Any) -> bool:
    """Workspaces stand under their folder; what is installed, and links to them, under ``node_modules``."""
    return "node_modules" not in path.split("/") and isinstance(package, dict) and not package.get("link")


def _find_place(text: str, document: dict[str, Any], path: tuple[str, ...], begin: int = 0) -> Place | None:
    value: Any = document
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    span = find_value(text, path, begin)
    if not isinstance(value, str) or span is None:
        return None
    start, end = span[0] + 1, span[1] - 1
    where = ".".join(map(_quote, path))
    if text[start:end] != value:
        raise ValueError(f"{where} is written with escapes; expected plain text")
    return Place(where, value, start, end)


def _quote(step: str) -> str:
    return step if step.replace("-", "").isalnum() else f'"{step}"'


PACKAGE_JSON = VersionFormat("package-json", ("package.json",), find_manifest)
LERNA = VersionFormat("lerna", ("lerna.json",), find_lerna)
COMPOSER = VersionFormat("composer", ("composer.json",), find_manifest)
JSR = VersionFormat("jsr", ("jsr.json",), find_manifest)
PACKAGE_LOCK = VersionFormat(
    "package-lock", ("package-lock.json", "npm-shrinkwrap.json"), find_lock, names_own_package=False
)
