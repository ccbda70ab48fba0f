"""Crates of a Cargo workspace."""

from __future__ import annotations

import posixpath
from typing import Any

from perdure.rules.git_tree import join
from perdure.rules.release.files.base import find_places
from perdure.rules.release.files.toml_text import load_toml
from perdure.rules.release.files.toml_values import table_at
from perdure.rules.release.files.tree import CommitFiles
from perdure.rules.release.packages.documents import list_texts, read_document
from perdure.rules.release.packages.globs import choose_folders
from perdure.rules.release.packages.model import Dependency, Need, Package
from perdure.rules.release.packages.range_files import CARGO_SECTIONS, FORMS

MANIFEST = "Cargo.toml"
GROUP = "workspace.package.version"
"""Of crates that inherit their version."""


def read_members(files: CommitFiles, folders: list[str]) -> list[str]:
    """Return the folders of a workspace's members; empty when it is none. ``folders``: all that hold a manifest.

    Crates inside the workspace that members name by path belong to it, as in Cargo.
    """
    workspace = table_at(_read(files, MANIFEST), "workspace")
    if not workspace:
        return []
    found = choose_folders(folders, list_texts(workspace.get("members")))
    excluded = {folder.rstrip("/") for folder in list_texts(workspace.get("exclude"))}
    waiting = ["", *found] if "package" in _read(files, MANIFEST) else [*found]
    members: list[str] = []
    while waiting:
        folder = waiting.pop(0)
        if folder in members or any(folder == out or folder.startswith(f"{out}/") for out in excluded):
            continue
        members.append(folder)
        waiting += [path for path in _paths(files, folder) if path in folders]
    return sorted(members)


def read_crate(files: CommitFiles, folder: str) -> Package | str:
    """Return the crate in ``folder``, or why there is none to release."""
    path = join(folder, MANIFEST)
    package, shared = table_at(_read(files, path), "package"), table_at(_read(files, MANIFEST), "workspace", "package")
    if not isinstance(package.get("name"), str):
        return f"{path} names no crate"
    inherits = table_at(package, "version").get("workspace") is True
    version = shared.get("version") if inherits else package.get("version")
    publish = shared.get("publish") if table_at(package, "publish").get("workspace") else package.get("publish")
    private = publish is False or publish == [] or not isinstance(version, str)
    needs = tuple(_needs(files, folder))
    group = GROUP if inherits else ""
    return Package(package["name"], folder, "cargo", str(version or ""), path, private, group, needs)


def _needs(files: CommitFiles, folder: str) -> list[Dependency]:
    path = join(folder, MANIFEST)
    document, patched = _read(files, path), _patched(files)
    own = _ranges(files, path)
    inherited = _ranges(files, MANIFEST) if files.has(MANIFEST) else {}
    shared = table_at(_read(files, MANIFEST), "workspace", "dependencies")
    needs = []
    for section, place, name, facts in _sections(document):
        need: Need = "dev" if section == "dev-dependencies" else "runtime"
        if isinstance(facts, dict) and facts.get("workspace") is True:
            where, source, facts = f"workspace.dependencies.{name}", MANIFEST, shared.get(name)
        else:
            where, source = place, path
        called = str(facts.get("package") or name) if isinstance(facts, dict) else name
        is_local = (isinstance(facts, dict) and isinstance(facts.get("path"), str)) or called in patched
        written = (inherited if source == MANIFEST else own).get(where, "")
        if is_local:
            needs.append(Dependency(called, need, written, source, where if written else "", "cargo"))
    return needs


def _ranges(files: CommitFiles, path: str) -> dict[str, str]:
    return {place.where: place.version for place in find_places(FORMS["cargo"], files.read(path), path).places}


def _sections(document: dict[str, Any]) -> list[tuple[str, str, str, Any]]:
    """(section, place, name, what is written) of every dependency, those of single targets included."""
    tables = [("", document)]
    targets = table_at(document, "target")
    tables += [(f"target.{name}.", table) for name, table in targets.items() if isinstance(table, dict)]
    return [
        (section, f"{prefix}{section}.{name}", name, facts)
        for prefix, table in tables
        for section in CARGO_SECTIONS
        for name, facts in table_at(table, section).items()
    ]


def _paths(files: CommitFiles, folder: str) -> list[str]:
    """Folders inside the repository that a crate names by path."""
    document = _read(files, join(folder, MANIFEST))
    named = [facts.get("path") for _, _, _, facts in _sections(document) if isinstance(facts, dict)]
    return [
        "" if path == "." else path
        for name in named
        if isinstance(name, str) and not (path := posixpath.normpath(join(folder, name))).startswith("..")
    ]


def _patched(files: CommitFiles) -> set[str]:
    """Crates that the workspace takes from its own folders instead of a registry."""
    tables = table_at(_read(files, MANIFEST), "patch").values()
    return {
        str(facts.get("package") or name)
        for table in tables
        if isinstance(table, dict)
        for name, facts in table.items()
        if isinstance(facts, dict) and isinstance(facts.get("path"), str)
    }


def _read(files: CommitFiles, path: str) -> dict[str, Any]:
    return read_document(files, path, load_toml)
