"""Packages of npm, pnpm, yarn and lerna workspaces."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from perdure.errors import UserError
from perdure.rules.git_tree import join
from perdure.rules.release.files.base import find_places
from perdure.rules.release.files.json_text import load_object
from perdure.rules.release.files.tree import CommitFiles
from perdure.rules.release.packages.documents import list_texts, read_document
from perdure.rules.release.packages.model import Dependency, Need, Package
from perdure.rules.release.packages.range_files import FORMS

MANIFEST = "package.json"
_PNPM = "pnpm-workspace.yaml"
_NEEDS: dict[str, Need] = {
    "dependencies": "runtime",
    "optionalDependencies": "runtime",
    "peerDependencies": "peer",
    "devDependencies": "dev",
}
_LIMIT_BYTES = 256 * 1024


def read_patterns(files: CommitFiles) -> list[str]:
    """Return the folders that the workspace's own files name; empty when it is no such workspace.

    Raises:
        UserError: one of them cannot be read.
    """
    if files.has(_PNPM):
        return list_texts(_read_yaml(files.read(_PNPM)).get("packages"))
    declared = _read_json(files, MANIFEST).get("workspaces")
    if isinstance(declared, dict):
        declared = declared.get("packages")
    lerna = _read_json(files, "lerna.json")
    return list_texts(declared) or list_texts(lerna.get("packages")) or (["packages/*"] if lerna else [])


def read_shared_version(files: CommitFiles) -> str:
    """Return the version that lerna gives to all packages; empty when each has its own."""
    version = str(_read_json(files, "lerna.json").get("version") or "")
    return version if version[:1].isdigit() else ""


def read_package(files: CommitFiles, folder: str) -> Package | str:
    """Return the package in ``folder``, or why there is none to release."""
    path = join(folder, MANIFEST)
    document = _read_json(files, path)
    name, version = document.get("name"), document.get("version")
    if not isinstance(name, str) or not name:
        return f"{path} names no package"
    private = document.get("private") is True
    if not isinstance(version, str) and not private:
        return f"{path} says no version"
    places = find_places(FORMS["npm"], files.read(path), path).places
    needs = tuple(
        Dependency(place.key, _NEEDS[place.where.partition(".")[0]], place.version, path, place.where, "npm")
        for place in places
    )
    return Package(name, folder, "npm", str(version or ""), path, private, dependencies=needs)


def _read_json(files: CommitFiles, path: str) -> dict[str, Any]:
    return read_document(files, path, load_object)


def _read_yaml(data: bytes) -> dict[str, Any]:
    try:
        value = YAML(typ="safe", pure=True).load(data[:_LIMIT_BYTES].decode("utf-8-sig"))
    except (YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{_PNPM} cannot be read: {error}. Repair the file and commit it.") from None
    return value if isinstance(value, dict) else {}
