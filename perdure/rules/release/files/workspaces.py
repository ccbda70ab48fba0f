"""Files of a release that lie outside of the package's own folder: members of a workspace, modules, lock files."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from perdure.rules.git_tree import join
from perdure.rules.release.files.base import Found, VersionFormat, find_places
from perdure.rules.release.files.cargo import CARGO, find_members, inherits_version
from perdure.rules.release.files.cargo_requirements import CARGO_REQUIREMENTS
from perdure.rules.release.files.pom import POM, coordinates, find_modules
from perdure.rules.release.files.registry import LOCKS
from perdure.rules.release.files.tree import CommitFiles

_MODULE_LIMIT = 500


@dataclass(frozen=True)
class FoundFile:
    """A file with what its format finds in it."""

    path: str
    form: VersionFormat
    found: Found
    only_last: bool = False
    """Only those places are written that say the last release's version: which that is, tags tell."""


def find_cargo_members(files: CommitFiles, root: FoundFile) -> list[FoundFile]:
    """Return the manifests of a Cargo workspace's members."""
    text = files.read(root.path).decode("utf-8-sig")
    members = find_members(text, files.folders())
    paths = [path for member in members if files.has(path := join(join(files.folder, member), "Cargo.toml"))]
    files.load(paths)
    return [FoundFile(path, CARGO, find_places(CARGO, files.read(path), path)) for path in paths]


def names_in_workspace(files: CommitFiles, members: Sequence[FoundFile]) -> set[str]:
    """Names of the members that take the workspace's version."""
    return {
        member.found.package
        for member in members
        if inherits_version(files.read(member.path).decode("utf-8-sig")) and member.found.package
    }


def find_cargo_requirements(
    files: CommitFiles, manifests: Sequence[FoundFile], crates: Set[str], current: str
) -> list[FoundFile]:
    """Return the manifests' requirements of those crates that are released, where they ask for this version."""
    found = []
    for manifest in manifests:
        places = find_places(CARGO_REQUIREMENTS, files.read(manifest.path), manifest.path).places
        ours = tuple(place for place in places if place.key in crates and place.version == current)
        found.append(FoundFile(manifest.path, CARGO_REQUIREMENTS, Found(ours)))
    return found


def find_maven_modules(files: CommitFiles, root: FoundFile) -> list[FoundFile]:
    """Return the poms of all modules beneath a pom, each with those places that name this release's projects."""
    found: list[FoundFile] = []
    own = {coordinates(_read_text(files, root.path))}
    waiting = [root.path]
    while waiting and len(found) < _MODULE_LIMIT:
        path = waiting.pop(0)
        for module in find_modules(_read_text(files, path)):
            child = posixpath.normpath(join(posixpath.dirname(path), module))
            if files.has(child) and child not in {file.path for file in found} | {root.path}:
                text = _read_text(files, child)
                is_ours = coordinates(text, "parent") in own
                places = find_places(POM, files.read(child), child).places
                kept = tuple(place for place in places if is_ours or place.key != "parent")
                found.append(FoundFile(child, POM, Found(kept)))
                own.add(coordinates(text))
                waiting.append(child)
    return found


def _read_text(files: CommitFiles, path: str) -> str:
    return files.read(path).decode("utf-8-sig", "replace")


def find_locks(files: CommitFiles, names: Mapping[str, Set[str]]) -> list[FoundFile]:
    """Return the nearest lock files, in the package's folder or above, with the places of this package only.

    ``names``: the packages that this release names, by lock format; locks of other formats name them by folder.
    """
    found = []
    for form in LOCKS:
        for name in form.file_names:
            folder = next((folder for folder in files.above() if files.has(join(folder, name))), None)
            if folder is None:
                continue
            path = join(folder, name)
            file = FoundFile(path, form, find_places(form, files.read(path), path))
            beneath = posixpath.relpath(files.folder or ".", folder or ".")
            # npm's lock names its own package by an empty key; that is not this one when the lock lies further up.
            keys = names.get(form.name, {beneath, "" if beneath == "." else beneath})
            places = tuple(place for place in file.found.places if place.key in keys)
            found.append(replace(file, found=Found(places)))
    return found
