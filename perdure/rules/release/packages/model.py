"""A workspace's packages: what each is called, where it lies, and what it asks of the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from perdure.contracts.base import JsonDict

Kind = Literal["npm", "cargo", "python", "go"]
Need = Literal["runtime", "peer", "dev"]
"""``runtime``: whoever installs the dependant gets it; ``peer``: they must have it; ``dev``: they never see it."""


@dataclass(frozen=True)
class Dependency:
    """What one package asks of another one of the workspace."""

    name: str
    """Of the package that is asked for."""
    need: Need
    range: str
    """As written."""
    path: str
    """The file where it is written: the package's manifest, or the workspace's for an inherited one."""
    where: str
    """The place in that file; empty where nothing is ever rewritten."""
    style: str
    """How ranges read there: npm, cargo, pep440, poetry."""


@dataclass(frozen=True)
class Package:
    """One package."""

    name: str
    path: str
    """Its folder from the repository's root; empty for the root itself."""
    kind: Kind
    version: str
    """What its manifest says, inherited included; empty where tags alone tell (Go)."""
    manifest: str
    """Path of its manifest."""
    private: bool = False
    """Its manifest forbids to publish it."""
    group: str = ""
    """Packages with the same group always have the same version; empty: a version of its own."""
    dependencies: tuple[Dependency, ...] = ()

    def to_json(self) -> JsonDict:
        """Return plain JSON; inverse of :func:`package_from_json`."""
        return {**vars(self), "dependencies": [{**vars(one)} for one in self.dependencies]}


def package_from_json(value: JsonDict) -> Package:
    """Return the package that :meth:`Package.to_json` wrote."""
    fields: dict[str, Any] = {key: inner for key, inner in value.items() if key in Package.__dataclass_fields__}
    return Package(**{**fields, "dependencies": tuple(Dependency(**one) for one in value["dependencies"])})


def make_ids(packages: Iterable[Package]) -> Mapping[str, str]:
    """Return a short id for each package by its path: ``@scope/core`` → ``core``; ``scope-core`` where two are so."""
    listed = sorted(packages, key=lambda package: package.path)
    bare = [_slug(package.name.rpartition("/")[2]) for package in listed]
    taken: set[str] = set()
    ids = {}
    for package, short in zip(listed, bare, strict=True):
        name = short if bare.count(short) == 1 else _slug(package.name)
        while name in taken:
            name += "-2"
        taken.add(name)
        ids[package.path] = name
    return ids


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:60] or "package"


def order_by_dependencies(packages: Sequence[Package]) -> list[Package]:
    """Return the packages, each after those that it needs; in a cycle, and else, by name."""
    by_name = {package.name: package for package in packages}
    ordered: list[Package] = []
    begun: set[str] = set()

    def visit(package: Package) -> None:
        if package.name in begun:
            return
        begun.add(package.name)
        for name in needed_names(package):
            if name in by_name:
                visit(by_name[name])
        ordered.append(package)

    for package in sorted(packages, key=lambda package: package.name):
        visit(package)
    return ordered


def needed_names(package: Package) -> list[str]:
    """Names of the packages that users of this one need too, sorted."""
    return sorted({one.name for one in package.dependencies if one.need != "dev"})


def find_cycles(packages: Sequence[Package]) -> list[list[str]]:
    """Return the groups of packages that need each other in a circle, each sorted by name."""
    by_name = {package.name: package for package in packages}
    reached = {name: _reach(by_name, name) for name in by_name}
    groups = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in by_name}
    return sorted([*group] for group in groups if len(group) > 1)


def _reach(by_name: Mapping[str, Package], start: str) -> set[str]:
    """What a package needs, directly or not; itself only when it is in a circle."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for name in needed_names(by_name[waiting.pop()]):
            if name in by_name and name not in seen:
                seen.add(name)
                waiting.append(name)
    return seen
