"""standard-version and commit-and-tag-version (``.versionrc``, package.json), and lerna's conventional commits.

Source of the defaults: https://github.com/absolute-version/commit-and-tag-version and conventional-changelog's preset
``conventionalcommits``: below 1.0.0 a feature is a patch there, and something breaking a minor version.
"""

from __future__ import annotations

from typing import Any

from perdure.rules.release.settings.files import SettingsFiles, items, table
from perdure.rules.release.settings.model import BREAKING, Line, ToolSettings, fill_up, make_lines
from perdure.rules.release.settings.npm_use import find_use
from perdure.rules.release.settings.tag_text import prefixed

TOOL = "standard-version"
LERNA = "lerna"

_NAMES = ("standard-version", "commit-and-tag-version")
_FILES = (".versionrc", ".versionrc.json")
_PROGRAMS = (".versionrc.js", ".versionrc.cjs", ".versionrc.mjs")


def find_standard_version(files: SettingsFiles) -> ToolSettings | None:
    """Return the settings; ``None`` when the project does not use it, or sets it up by a program."""
    if name := files.find_first(_FILES):
        config = files.document(name)
        return _read(config, files.path(name), "") if files.is_readable(name) else None
    package = files.json("package.json")
    for name in _NAMES:
        if isinstance(package.get(name), dict):
            return _read(package[name], files.path("package.json"), name)
    if any(files.has(name) for name in _PROGRAMS):
        files.refuse_program(_PROGRAMS, TOOL)
        return None
    used = find_use(package, _NAMES)
    return _read({}, files.path("package.json"), used, is_explicit=False) if used else None


def _read(config: dict[str, Any], file: str, key: str, *, is_explicit: bool = True) -> ToolSettings:
    place = f"{file}: {key}" if key else file
    own = f"{place}, by {TOOL}'s own rule"
    shown = [one["type"] for one in items(config.get("types")) if isinstance(one.get("type"), str)]
    hidden = {one["type"] for one in items(config.get("types")) if one.get("hidden") is True and "type" in one}
    types_at = f"{file}: {key}.types" if key else f"{file}: types"
    listed = make_lines(types_at, patch=[name.lower() for name in shown if name not in hidden])
    lines = fill_up({**listed, **make_lines(own, minor=["feat", "feature"])}, TOOL, place)
    where = f"{place}: preMajor" if config.get("preMajor") is True else f"{own} for 0.x"
    zero = {BREAKING: Line("minor", where), **make_lines(where, patch=["feat", "feature"])}
    return ToolSettings(TOOL, file, lines, zero, prefixed(config.get("tagPrefix", "v")), is_explicit)


def find_lerna(files: SettingsFiles) -> ToolSettings | None:
    """Return lerna's settings where it decides by commits and gives all packages one version; else ``None``."""
    config = files.json("lerna.json")
    commands = [config, table(config, "command", "version"), table(config, "command", "publish")]
    if config.get("version") == "independent" or not any(one.get("conventionalCommits") is True for one in commands):
        return None
    file = files.path("lerna.json")
    own = f"{file}: conventionalCommits, by {LERNA}'s own rule"
    zero = {BREAKING: Line("minor", f"{own} for 0.x")}
    prefix = next((one["tagVersionPrefix"] for one in commands if "tagVersionPrefix" in one), "v")
    return ToolSettings(LERNA, file, fill_up(make_lines(own, minor=["feat"]), LERNA, file), zero, prefixed(prefix))
