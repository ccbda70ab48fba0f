"""``Cargo.toml``: ``package.version`` and ``workspace.package.version``."""

from __future__ import annotations

from typing import Any

from perdure.rules.release.files.base import Found
from perdure.rules.release.files.pyproject import find_toml_place
from perdure.rules.release.files.toml_text import load_toml


class CargoManifest:
    """Rust's manifest."""

    name = "cargo"
    file_names = ("Cargo.toml",)

    def find(self, text: str) -> Found:
        document = load_toml(text)
        package = _table(document, "package")
        shared = _table(_table(document, "workspace"), "package")
        places = [
            find_toml_place(text, package, ("package", "version")),
            find_toml_place(text, shared, ("workspace", "package", "version")),
        ]
        inherited = isinstance(package.get("version"), dict) and not shared
        notes = ("its version is the workspace's, so it is not written here",) if inherited else ()
        return Found(tuple(place for place in places if place), str(package.get("name") or ""), notes)


def _table(document: dict[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}
