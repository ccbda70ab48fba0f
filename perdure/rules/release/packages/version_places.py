"""Which files say the version of a package that is one of several, or of a group that shares one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perdure.contracts.base import JsonDict
from perdure.rules.release.files.base import Found, VersionFormat, find_places
from perdure.rules.release.files.cargo import CARGO
from perdure.rules.release.files.gather import describe_files
from perdure.rules.release.files.package_json import LERNA
from perdure.rules.release.files.toml_locks import CARGO_LOCK
from perdure.rules.release.files.tree import CommitFiles
from perdure.rules.release.packages.cargo import GROUP as CARGO_GROUP
from perdure.rules.release.packages.model import Package

_RANGE_LOCKS = {"package-lock.json": "npm-lock", "npm-shrinkwrap.json": "npm-lock", "pnpm-lock.yaml": "pnpm-lock"}
_RESOLVED_LOCKS = ("yarn.lock", "bun.lock", "bun.lockb")


def describe_package(files: CommitFiles, package: Package) -> JsonDict:
    """Return the ``release.version_files`` value of a package's own folder; what a group shares is left out."""
    value: JsonDict = describe_files(files, alone=True).value
    kept = []
    for file in value["files"]:
        if package.kind == "go" or (not package.path and file["format"] == "lerna"):
            continue
        places = [place for place in file["places"] if place["where"] != CARGO_GROUP]
        kept.append({**file, "places": places})
    return {**value, "files": kept, "version": package.version or value["version"]}


def describe_group(files: CommitFiles, group: str, packages: Sequence[JsonDict]) -> JsonDict:
    """Return the same kind of value for what the packages of a group share: the workspace's manifest, lock entries."""
    names = {one["name"] for one in packages if one["group"] == group}
    version = next((one["version"] for one in packages if one["group"] == group and one["version"]), "")
    found: list[JsonDict] = []
    if group == CARGO_GROUP:
        found += _place(files, "Cargo.toml", CARGO, lambda where, key: where == CARGO_GROUP)
        found += _place(files, "Cargo.lock", CARGO_LOCK, lambda where, key: key in names)
    elif group == "lerna.json":
        found += _place(files, "lerna.json", LERNA, lambda where, key: True)
    return {"files": found, "version": version, "path": "", "package": ""}


def _place(files: CommitFiles, path: str, form: VersionFormat, is_wanted: Callable[[str, str], bool]) -> list[JsonDict]:
    if not files.has(path):
        return []
    found: Found = find_places(form, files.read(path), path)
    places = [place for place in found.places if is_wanted(place.where, place.key)]
    listed = [{"where": place.where, "version": place.version} for place in places]
    return [{"path": path, "format": form.name, "package": "", "places": listed}] if listed else []


def find_range_locks(files: CommitFiles) -> JsonDict:
    """Return lock files at the root: those that repeat ranges (format by path), and those that a tool must renew."""
    repeating = {name: form for name, form in _RANGE_LOCKS.items() if files.has(name)}
    yarn = files.read("yarn.lock") if files.has("yarn.lock") else b""
    resolved = [name for name in _RESOLVED_LOCKS if files.has(name) and (name != "yarn.lock" or b"__metadata" in yarn)]
    return {"repeating": repeating, "resolved": resolved}
