"""``Cargo.toml``: ``package.version`` and ``workspace.package.version``; the members of a workspace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from perdure.rules.release.files.base import Found, VersionFormat
from perdure.rules.release.files.toml_text import load_toml
from perdure.rules.release.files.toml_values import find_toml_place, table_at


def find_cargo(text: str) -> Found:
    """Find the package's own version and the one that members of the workspace inherit."""
    document = load_toml(text)
    package, shared = table_at(document, "package"), table_at(document, "workspace", "package")
    places = [
        find_toml_place(text, package, ("package", "version")),
        find_toml_place(text, shared, ("workspace", "package", "version")),
    ]
    notes = ("its version is the workspace's, so it is not written here",) if _inherits(package) and not shared else ()
    return Found(tuple(place for place in places if place), str(package.get("name") or ""), notes)


def inherits_version(text: str) -> bool:
    """Whether a manifest takes its version from the workspace."""
    return _inherits(table_at(load_toml(text), "package"))


def _inherits(package: dict[str, Any]) -> bool:
    return table_at(package, "version").get("workspace") is True


def find_members(text: str, folders: Iterable[str]) -> list[str]:
    """Return those of ``folders`` (relative to the manifest's) that its ``workspace`` table lists, sorted."""
    workspace = table_at(load_toml(text), "workspace")
    members, excluded = _texts(workspace.get("members")), _texts(workspace.get("exclude"))
    return sorted(
        folder
        for folder in folders
        if any(_matches(folder, member) for member in members)
        and not any(_matches(folder, path) or folder.startswith(f"{path}/") for path in excluded)
    )


def _texts(value: Any) -> Sequence[str]:
    found = value if isinstance(value, list) else []
    return [item.removeprefix("./").rstrip("/") for item in found if isinstance(item, str)]


def _matches(folder: str, pattern: str) -> bool:
    """Globs stay inside a name, as in Cargo."""
    names, wanted = folder.split("/"), pattern.split("/")
    return len(names) == len(wanted) and all(map(fnmatchcase, names, wanted))


CARGO = VersionFormat("cargo", ("Cargo.toml",), find_cargo)
