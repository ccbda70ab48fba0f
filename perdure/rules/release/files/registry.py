"""Every format of version files that a release reads and writes, the most telling manifest first."""

from __future__ import annotations

from perdure.rules.release.files.base import VersionFormat
from perdure.rules.release.files.cargo import CargoManifest
from perdure.rules.release.files.package_json import PackageJson, PackageLock
from perdure.rules.release.files.pyproject import Pyproject
from perdure.rules.release.files.version_file import VersionFile

FORMATS: tuple[VersionFormat, ...] = (Pyproject(), PackageJson(), CargoManifest(), VersionFile(), PackageLock())


def format_named(name: str) -> VersionFormat:
    """Return a format by its name. Raises ``KeyError``: values are written by the same code, so this is a bug."""
    return {form.name: form for form in FORMATS}[name]


def formats_by_file() -> dict[str, VersionFormat]:
    """The format for each file name, in the order in which manifests count."""
    return {name: form for form in FORMATS for name in form.file_names}
