"""Which packages a repository holds, by what its workspace files say; everything is read from one commit's objects."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from perdure.errors import UserError
from perdure.rules.release.files.tree import CommitFiles
from perdure.rules.release.packages import cargo, go, npm, python
from perdure.rules.release.packages.globs import choose_folders
from perdure.rules.release.packages.model import Kind, Package

USUAL_FOLDERS = ("packages/*", "libs/*", "crates/*", "modules/*", "projects/*", "apps/*", "services/*")
"""Where packages are looked for when nothing names them."""

_CHANGESETS = ".changeset/config.json"
_READERS: Mapping[Kind, tuple[str, Callable[[CommitFiles, str], Package | str]]] = {
    "npm": (npm.MANIFEST, npm.read_package),
    "cargo": (cargo.MANIFEST, cargo.read_crate),
    "python": (python.MANIFEST, python.read_project),
    "go": (go.MANIFEST, go.read_module),
}
_USE = re.compile(r"^(?:use[ \t]+|[ \t]+)(?P<path>\.[^\s()]*)", re.MULTILINE)


@dataclass(frozen=True)
class Workspace:
    """What was found."""

    packages: list[Package] = field(default_factory=list)
    """By path."""
    left: list[str] = field(default_factory=list)
    """Why members are none: "packages/x/package.json says no version"."""
    linked: list[list[str]] = field(default_factory=list)
    """Names of packages that take the same version when they are released (changesets' ``linked``)."""
    ignored: list[str] = field(default_factory=list)
    """Names of packages that the workspace's own settings keep from being released."""
    uses_changesets: bool = False
    """Changes are told by changesets, and by nothing else."""
    follows_always: bool = False
    """Dependants are released with whatever they need (changesets' ``updateInternalDependents: always``)."""
    findings: list[str] = field(default_factory=list)


def discover(files: CommitFiles, named: Sequence[str]) -> Workspace:
    """Find the packages; ``named``: folders or globs instead of what the workspace says.

    Raises:
        UserError: there are none, or two have the same name.
    """
    findings: list[str] = []
    chosen = {kind: _choose(files, kind, named) for kind in _READERS}
    if not named and not any(chosen.values()):
        chosen = {kind: choose_folders(_folders(files, kind), USUAL_FOLDERS) for kind in _READERS}
        findings.append(f"No workspace file names packages: those in {', '.join(USUAL_FOLDERS)} were looked for.")
    packages, left = _read(files, chosen)
    if not packages:
        said = "; ".join(left) or "no workspace file, and no package in the usual folders"
        raise UserError(
            f"No packages were found ({said}). Name their folders: packages='[\"libs/*\"]', "
            "or release a repository with one package by `perdure run release`."
        )
    _refuse_same_names(packages)
    config = _changesets(files)
    grouped = _group(packages, npm.read_shared_version(files), _name_lists(config.get("fixed")))
    ignored = _match_names(packages, config.get("ignore"))
    linked = [_match_names(packages, patterns) for patterns in _name_lists(config.get("linked"))]
    always = _says_always(config)
    return Workspace(grouped, left, linked, ignored, bool(config), always, findings)


def _choose(files: CommitFiles, kind: Kind, named: Sequence[str]) -> list[str]:
    folders = _folders(files, kind)
    if named:
        return choose_folders(folders, named)
    if kind == "npm":
        patterns = npm.read_patterns(files)
        return choose_folders(folders, [".", *patterns]) if patterns else []
    if kind == "cargo":
        return cargo.read_members(files, folders)
    if kind == "python":
        return python.read_members(files, folders)
    return _choose_modules(files, folders)


def _choose_modules(files: CommitFiles, folders: list[str]) -> list[str]:
    """What ``go.work`` uses; without one every module, where there are several."""
    if not files.has("go.work"):
        return folders if len(folders) > 1 else []
    used = _USE.findall(files.read("go.work").decode("utf-8", "replace"))
    paths = {posixpath.normpath(path) for path in used}
    return [folder for folder in folders if (folder or ".") in paths]


def _folders(files: CommitFiles, kind: Kind) -> list[str]:
    """Every folder with a manifest of this kind."""
    return [posixpath.dirname(path) for path in files.match((_READERS[kind][0], f"**/{_READERS[kind][0]}"))]


def _read(files: CommitFiles, chosen: Mapping[Kind, list[str]]) -> tuple[list[Package], list[str]]:
    """Read the packages; a folder with manifests of two kinds is the first kind's."""
    files.load([posixpath.join(folder, _READERS[kind][0]) for kind, folders in chosen.items() for folder in folders])
    found: dict[str, Package] = {}
    left = []
    for kind, folders in chosen.items():
        for folder in folders:
            read = _READERS[kind][1](files, folder) if folder not in found else ""
            if isinstance(read, Package):
                found[folder] = _keep_known(read)
            elif read and folder:  # the root's manifest holds the workspace together, package or not
                left.append(read)
    names = {package.name for package in found.values()}
    return [_only_ours(found[path], names) for path in sorted(found)], left


def _keep_known(package: Package) -> Package:
    """A root manifest that says no version holds the workspace together and is no package."""
    return (
        replace(package, private=True) if not package.path and not package.version and package.kind != "go" else package
    )


def _only_ours(package: Package, names: set[str]) -> Package:
    needs = tuple(one for one in package.dependencies if one.name in names and one.name != package.name)
    return replace(package, dependencies=needs)


def _refuse_same_names(packages: Sequence[Package]) -> None:
    by_name: dict[str, str] = {}
    for package in packages:
        other = by_name.setdefault(package.name, package.path)
        if other != package.path:
            raise UserError(
                f"Two packages are called {package.name!r}: {other or '.'} and {package.path or '.'}. "
                "Rename one, or name the folders to release: packages='[\"packages/*\"]'."
            )


def _group(packages: Sequence[Package], shared: str, fixed: Sequence[Sequence[str]]) -> list[Package]:
    """Give packages that always have one version the same group."""
    grouped = []
    for package in packages:
        lists = [patterns for patterns in fixed if _is_named(package.name, patterns)]
        group = package.group or (f"fixed {' '.join(lists[0])}" if lists else "")
        if shared and package.kind == "npm" and (package.version == shared or package.private):
            group = "lerna.json"
        grouped.append(replace(package, group=group))
    return grouped


def _changesets(files: CommitFiles) -> dict[str, Any]:
    if not files.has(_CHANGESETS):
        return {}
    try:
        value = json.loads(files.read(_CHANGESETS).decode("utf-8-sig"))
    except ValueError as error:
        raise UserError(f"{_CHANGESETS} cannot be read: {error}. Repair the file and commit it.") from None
    return value if isinstance(value, dict) and value else {"there": True}


def _says_always(config: Mapping[str, Any]) -> bool:
    tables = [value for value in config.values() if isinstance(value, dict)]
    return any(table.get("updateInternalDependents") == "always" for table in [config, *tables])


def _name_lists(value: Any) -> list[list[str]]:
    lists = value if isinstance(value, list) else []
    return [[str(name) for name in one] for one in lists if isinstance(one, list)]


def _match_names(packages: Sequence[Package], patterns: Any) -> list[str]:
    wanted = patterns if isinstance(patterns, list) else []
    return [package.name for package in packages if _is_named(package.name, [str(one) for one in wanted])]


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
