"""Where ranges stand in manifests and lock files, and the one way they are replaced: their characters alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from perdure.errors import StageFailed
from perdure.rules.release.files.base import Found, Place, VersionFormat, find_places
from perdure.rules.release.files.decoding import decode
from perdure.rules.release.files.json_text import find_members, find_value, load_object
from perdure.rules.release.files.toml_text import find_strings, load_toml
from perdure.rules.release.files.toml_values import table_at

NPM_SECTIONS = ("dependencies", "optionalDependencies", "peerDependencies", "devDependencies")
CARGO_SECTIONS = ("dependencies", "build-dependencies", "dev-dependencies")

_PROJECT_TABLES = (("project", "dependencies"), ("project", "optional-dependencies"))
_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?(?P<range>[^;@()]*?)\s*(?:[;)].*)?"
)
_PNPM_LINE = re.compile(r"(?P<indent> *)(?P<key>'[^']*'|[^:#'\"]+):(?: (?P<value>.*))?")


def find_npm_ranges(text: str) -> Found:
    """Find what a ``package.json`` asks for; ``key`` is the package's name."""
    document = load_object(text)
    places: list[Place] = []
    for section in NPM_SECTIONS:
        begins = find_members(text, (section,))
        places += _json_places(text, document.get(section), begins, section)
    return Found(tuple(places))


def find_npm_lock_ranges(text: str) -> Found:
    """Find what the workspace's packages ask for in npm's lock file."""
    packages = load_object(text).get("packages")
    places: list[Place] = []
    if not isinstance(packages, dict):
        return Found()
    for folder, begin in find_members(text, ("packages",)).items():
        facts = packages[folder]
        if "node_modules" in folder.split("/") or not isinstance(facts, dict):
            continue
        for section in NPM_SECTIONS:
            table = facts.get(section)
            spans = (
                {name: find_value(text, (section, name), begin) for name in table} if isinstance(table, dict) else {}
            )
            begins = {name: span[0] for name, span in spans.items() if span}
            places += _json_places(text, table, begins, f"packages.{folder}.{section}")
    return Found(tuple(places))


def _json_places(text: str, table: Any, begins: Mapping[str, int], section: str) -> Iterator[Place]:
    for name, begin in begins.items() if isinstance(table, dict) else ():
        value, start = table[name], begin + 1
        if isinstance(value, str) and text[start : start + len(value) + 1] == f'{value}"':
            yield Place(f"{section}.{name}", value, start, start + len(value), key=name)


def find_pnpm_lock_ranges(text: str) -> Found:
    """Find the specifiers of a ``pnpm-lock.yaml``: ``importers`` → folder → section → package → ``specifier``."""
    places: list[Place] = []
    path, at = [""] * 5, 0
    for line in text.split("\n"):
        match = _PNPM_LINE.fullmatch(line.rstrip("\r"))
        depth = len(match["indent"]) // 2 if match else 5
        if match and depth < 5:
            path[depth:] = [match["key"].strip("'"), *[""] * (4 - depth)]
            value = (match["value"] or "").strip()
            bare = value.strip("'")
            if path[0] == "importers" and path[4] == "specifier" and bare:
                start = at + match.start("value") + value.index(bare)
                places.append(Place(".".join(path[1:4]), bare, start, start + len(bare), key=path[3]))
        at += len(line) + 1
    return Found(tuple(places))


def find_cargo_ranges(text: str) -> Found:
    """Find what a ``Cargo.toml`` asks for; ``key`` is the crate's name. ``where`` is the dependency's path."""
    document = load_toml(text)
    places = []
    for span in find_strings(text):
        path = span.path[:-1] if span.path[-1:] == ("version",) else span.path
        if path[-2:-1] not in [(section,) for section in CARGO_SECTIONS]:
            continue
        facts = table_at(document, *path)
        name = str(facts.get("package") or path[-1])
        places.append(Place(".".join(path), text[span.start : span.end], span.start, span.end, key=name))
    return Found(tuple(places))


def find_python_ranges(text: str) -> Found:
    """Find the specifiers of a ``pyproject.toml``; ``key`` is the normalized name."""
    load_toml(text)
    places: list[Place] = []
    for span in find_strings(text):
        if span.path[:2] == ("tool", "poetry"):
            places += _poetry_place(text, span.path, span.start, span.end)
        elif (
            span.path[:2] == ("project", "dependencies")
            or span.path[0] == "dependency-groups"
            or span.path[:2] == ("project", "optional-dependencies")
        ):
            places += _requirement_place(text, ".".join(span.path[:-1]), span.start, span.end)
    return Found(tuple(places))


def _requirement_place(text: str, section: str, start: int, end: int) -> Iterator[Place]:
    match = _REQUIREMENT.fullmatch(text, start, end)
    if match and match["range"].strip():
        name = normalize(match["name"])
        yield Place(f"{section}.{name}", match["range"], *match.span("range"), key=name)


def _poetry_place(text: str, path: tuple[str, ...], start: int, end: int) -> Iterator[Place]:
    bare = path[:-1] if path[-1] == "version" else path
    if len(bare) >= 4 and bare[-2] in ("dependencies", "dev-dependencies"):
        yield Place(".".join(bare), text[start:end], start, end, key=normalize(bare[-1]))


def normalize(name: str) -> str:
    """A Python project's name as it is compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _form(name: str, find: Any) -> VersionFormat:
    return VersionFormat(name, (), find, names_own_package=False)


FORMS = {
    form.name: form
    for form in (
        _form("npm", find_npm_ranges),
        _form("npm-lock", find_npm_lock_ranges),
        _form("pnpm-lock", find_pnpm_lock_ranges),
        _form("cargo", find_cargo_ranges),
        _form("python", find_python_ranges),
    )
}
"""The files with ranges that are read, by name."""


def replace_ranges(form: VersionFormat, data: bytes, ranges: Mapping[str, tuple[str, str]], path: str) -> bytes:
    """Return the file's bytes with (old, new) ranges by place; every other byte stays.

    A place that says the new range already (another package's step wrote it) is fine.

    Raises:
        StageFailed: a place says something else than the old range, or would not read as the new one afterwards.
    """
    text, encoding = decode(data, form.encoding, path)
    places = {place.where: place for place in find_places(form, data, path).places}
    for where, (old, new) in ranges.items():
        found = places[where].version if where in places else "nothing"
        if found not in (old, new):
            raise StageFailed(f"{path} asks for {found} ({where}); expected {old}. Run the job again.")
    for where in sorted(ranges, key=lambda where: places[where].start, reverse=True):
        place = places[where]
        text = text[: place.start] + ranges[where][1] + text[place.end :]
    written = text.encode(encoding)
    after = {place.where: place.version for place in find_places(form, written, path).places}
    expected = {where: ranges[where][1] if where in ranges else place.version for where, place in places.items()}
    if after != expected:
        raise StageFailed(f"{path} would not read as wanted after its ranges were written; nothing was.")
    return written
