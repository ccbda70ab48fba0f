"""Every format of version files that a release reads and writes, the most telling manifest first."""

from __future__ import annotations

from perdure.rules.release.files.base import VersionFormat
from perdure.rules.release.files.cargo import CARGO
from perdure.rules.release.files.cargo_requirements import CARGO_REQUIREMENTS
from perdure.rules.release.files.dotnet import MSBUILD, NUSPEC
from perdure.rules.release.files.mix import MIX
from perdure.rules.release.files.package_json import COMPOSER, JSR, LERNA, PACKAGE_JSON, PACKAGE_LOCK
from perdure.rules.release.files.pattern import read_pattern_name
from perdure.rules.release.files.pom import POM
from perdure.rules.release.files.pyproject import PYPROJECT
from perdure.rules.release.files.python_module import PYTHON_MODULE
from perdure.rules.release.files.ruby import GEMFILE_LOCK, GEMSPEC, VERSION_RB
from perdure.rules.release.files.setup_cfg import SETUP_CFG
from perdure.rules.release.files.setup_py import SETUP_PY
from perdure.rules.release.files.toml_locks import CARGO_LOCK, UV_LOCK
from perdure.rules.release.files.version_file import VERSION_FILE
from perdure.rules.release.files.yaml_files import CHART, CITATION, GALAXY, PUBSPEC

MANIFESTS: tuple[VersionFormat, ...] = (
    PYPROJECT,
    SETUP_CFG,
    SETUP_PY,
    LERNA,
    PACKAGE_JSON,
    CARGO,
    POM,
    MSBUILD,
    NUSPEC,
    COMPOSER,
    PUBSPEC,
    MIX,
    GEMSPEC,
    CHART,
    GALAXY,
    JSR,
    VERSION_FILE,
    PYTHON_MODULE,
    VERSION_RB,
    CITATION,
)
"""Files that a package has of its own. The first that says a version says the package's."""

LOCKS: tuple[VersionFormat, ...] = (PACKAGE_LOCK, CARGO_LOCK, UV_LOCK, GEMFILE_LOCK)
"""Files that repeat it, perhaps in a folder further up."""

FORMATS: tuple[VersionFormat, ...] = (*MANIFESTS, *LOCKS, CARGO_REQUIREMENTS)

LOCKS_WITHOUT_VERSION = {
    "yarn.lock": "package.json",
    "pnpm-lock.yaml": "package.json",
    "poetry.lock": "pyproject.toml",
    "pdm.lock": "pyproject.toml",
    "mix.lock": "mix.exs",
    "pubspec.lock": "pubspec.yaml",
}
"""Lock files that do not say their own package's version → the manifest that they belong to."""


def format_named(name: str) -> VersionFormat:
    """Return a format by its name. Raises ``KeyError``: values are written by the same code, so this is a bug."""
    return read_pattern_name(name) or {form.name: form for form in FORMATS}[name]


def formats_by_file() -> dict[str, VersionFormat]:
    """The format for each file name, in the order in which manifests count."""
    return {name: form for form in FORMATS for name in form.file_names}
