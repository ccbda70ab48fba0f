"""Projects of a Python monorepo: uv's workspaces, Poetry's and plain ones."""

from __future__ import annotations

from typing import Any

from perdure.rules.git_tree import join
from perdure.rules.release.files.base import find_places
from perdure.rules.release.files.toml_text import load_toml
from perdure.rules.release.files.toml_values import table_at
from perdure.rules.release.files.tree import CommitFiles
from perdure.rules.release.packages.documents import read_document
from perdure.rules.release.packages.globs import choose_folders
from perdure.rules.release.packages.model import Dependency, Need, Package
from perdure.rules.release.packages.range_files import FORMS, normalize

MANIFEST = "pyproject.toml"
_PRIVATE = "Private ::"


def read_members(files: CommitFiles, folders: list[str]) -> list[str]:
    """Return the folders of uv's workspace; empty when it is none. ``folders``: all that hold a manifest."""
    workspace = table_at(_read(files, MANIFEST), "tool", "uv", "workspace")
    if not workspace:
        return []
    members, excluded = ([*map(str, workspace.get(key) or [])] for key in ("members", "exclude"))
    return choose_folders(folders, [".", *members, *(f"!{pattern}" for pattern in excluded)])


def read_project(files: CommitFiles, folder: str) -> Package | str:
    """Return the project in ``folder``, or why there is none to release."""
    path = join(folder, MANIFEST)
    document = _read(files, path)
    project, poetry = table_at(document, "project"), table_at(document, "tool", "poetry")
    name = project.get("name") or poetry.get("name")
    if not isinstance(name, str):
        return f"{path} names no project"
    version = project.get("version") or poetry.get("version") or ""
    private = _is_private(document, [*(project.get("classifiers") or []), *(poetry.get("classifiers") or [])])
    needs = tuple(
        Dependency(place.key, _need(place.where), place.version, path, place.where, _style(place.where))
        for place in find_places(FORMS["python"], files.read(path), path).places
    )
    return Package(normalize(name), folder, "python", str(version), path, private, dependencies=needs)


def _is_private(document: dict[str, Any], classifiers: list[Any]) -> bool:
    return table_at(document, "tool", "uv").get("package") is False or any(
        str(classifier).startswith(_PRIVATE) for classifier in classifiers
    )


def _need(where: str) -> Need:
    is_dev = where.startswith(("dependency-groups.", "tool.poetry.group.", "tool.poetry.dev-dependencies."))
    return "dev" if is_dev else "runtime"


def _style(where: str) -> str:
    return "poetry" if where.startswith("tool.poetry") else "pep440"


def _read(files: CommitFiles, path: str) -> dict[str, Any]:
    return read_document(files, path, load_toml)
