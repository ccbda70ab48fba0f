"""``pyproject.toml``: ``project.version`` (PEP 621) and ``tool.poetry.version``; where a dynamic version comes from."""

from __future__ import annotations

from typing import Any

from perdure.rules.release.files.base import Found, VersionFormat
from perdure.rules.release.files.python_module import attribute_paths, module_paths
from perdure.rules.release.files.toml_text import load_toml
from perdure.rules.release.files.toml_values import find_toml_place, table_at

_TABLES = (("project",), ("tool", "poetry"))
# Other release tools keep the version here too; it follows the project's.
_REPEATED = (("tool", "commitizen", "version"), ("tool", "bumpversion", "current_version"))
_FROM_TAGS = ("setuptools_scm", "versioningit", "setuptools-git-versioning", "poetry-dynamic-versioning")


def find_pyproject(text: str) -> Found:
    """Find the version in both tables that may say it, and where other tools repeat it."""
    document = load_toml(text)
    tables = [(path, table_at(document, *path)) for path in _TABLES]
    places = [find_toml_place(text, table, (*path, "version")) for path, table in tables]
    is_said = any(places)
    places += [find_toml_place(text, table_at(document, *path[:-1]), path, follows=True) for path in _REPEATED]
    names = [str(table["name"]) for _, table in tables if table.get("name")]
    package = names[0] if names else ""
    pointers, notes = _explain(document, package, is_said=is_said)
    return Found(tuple(place for place in places if place), package, notes, pointers)


def _explain(document: dict[str, Any], package: str, *, is_said: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    project = table_at(document, "project")
    if "version" in (project.get("dynamic") or ()):
        pointers = _find_pointers(document, package)
        if _is_from_tags(document):
            return (), ("its version is dynamic (the build takes it from the tag), so it is not written",)
        return pointers, () if pointers else ("its version is dynamic (the build computes it), so it is not written",)
    if not is_said and project:
        return (), ("it names no version",)
    return (), ()


def _find_pointers(document: dict[str, Any], package: str) -> tuple[str, ...]:
    """Paths that the build backend reads the version from, as its own settings say."""
    tool = table_at(document, "tool")
    told = [table_at(tool, "hatch", "version").get("path"), table_at(tool, "pdm", "version").get("path")]
    setuptools = table_at(tool, "setuptools", "dynamic", "version")
    files = setuptools.get("file")
    told += files if isinstance(files, list) else [files]
    found = [path for path in told if isinstance(path, str)]
    if isinstance(setuptools.get("attr"), str):
        found += attribute_paths(setuptools["attr"])
    backend = table_at(document, "build-system").get("build-backend")
    if isinstance(backend, str) and backend.startswith("flit"):
        module = table_at(tool, "flit", "module").get("name")
        found += module_paths(str(module or package).replace("-", "_"))
    return tuple(found)


def _is_from_tags(document: dict[str, Any]) -> bool:
    tool = table_at(document, "tool")
    sources = [table_at(tool, builder, "version").get("source") for builder in ("hatch", "pdm")]
    return any(name in tool for name in _FROM_TAGS) or any(source in ("vcs", "scm") for source in sources)


PYPROJECT = VersionFormat("pyproject", ("pyproject.toml",), find_pyproject)
