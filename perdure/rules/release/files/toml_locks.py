"""``Cargo.lock`` and ``uv.lock``: the versions of the repository's own packages, which have no registry as source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perdure.rules.release.files.base import Found, Place, VersionFormat
from perdure.rules.release.files.toml_text import find_strings, load_toml

_LOCAL_SOURCES = ("editable", "virtual", "directory")


def find_cargo_lock(text: str) -> Found:
    """Find packages without a source; ``key`` is the package's name."""
    return _find_packages(text, lambda package: "" if package.get("source") else str(package.get("name") or ""))


def find_uv_lock(text: str) -> Found:
    """Find packages whose source is a folder; ``key`` is that folder, relative to the lock's (``.`` for its own)."""
    return _find_packages(text, _source_folder)


def _source_folder(package: dict[str, Any]) -> str:
    source = package.get("source")
    folders = [source.get(kind) for kind in _LOCAL_SOURCES] if isinstance(source, dict) else []
    return next((folder for folder in folders if isinstance(folder, str)), "")


def _find_packages(text: str, key_of: Callable[[dict[str, Any]], str]) -> Found:
    packages = load_toml(text).get("package")
    spans = {span.path: span for span in find_strings(text)}
    places = []
    for number, package in enumerate(packages if isinstance(packages, list) else []):
        span = spans.get(("package", f"[{number}]", "version"))
        if not isinstance(package, dict) or span is None or not key_of(package):
            continue
        if text[span.start : span.end] == package.get("version"):
            where = f"package {package.get('name')}"
            places.append(Place(where, text[span.start : span.end], span.start, span.end, key=key_of(package)))
    return Found(tuple(places))


CARGO_LOCK = VersionFormat("cargo-lock", ("Cargo.lock",), find_cargo_lock, names_own_package=False)
UV_LOCK = VersionFormat("uv-lock", ("uv.lock",), find_uv_lock, names_own_package=False)
