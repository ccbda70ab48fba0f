"""commitizen: ``[tool.commitizen]`` in pyproject.toml, ``.cz.toml``, ``cz.json``, ``.cz.yaml`` and their kin.

Source of the defaults: https://commitizen-tools.github.io/commitizen (bump, customization).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perdure.rules.release.settings.files import SettingsFiles, table
from perdure.rules.release.settings.model import BREAKING, Line, ToolSettings, fill_up, make_lines, read_step
from perdure.rules.release.settings.patterns import read_pattern
from perdure.rules.release.settings.tag_text import read_tag_text

TOOL = "commitizen"

_CONVENTIONAL = "cz_conventional_commits"
_FILES = (".cz.toml", "cz.toml", ".cz.json", "cz.json", ".cz.yaml", "cz.yaml")


def find_commitizen(files: SettingsFiles) -> ToolSettings | None:
    """Return the settings; ``None`` when the project has none."""
    if config := table(files.toml("pyproject.toml"), "tool", "commitizen"):
        return _read(config, files.path("pyproject.toml"), "tool.commitizen")
    for name in _FILES:
        keys = ("tool", "commitizen") if name.endswith(".toml") else ("commitizen",)
        if config := table(files.document(name) if files.has(name) else {}, *keys):
            return _read(config, files.path(name), ".".join(keys))
    return None


def _read(config: dict[str, Any], file: str, key: str) -> ToolSettings:
    place = f"{file}: {key}"
    name = str(config.get("name") or _CONVENTIONAL)
    # Without a version of its own it only checks messages: tags are somebody else's.
    is_releasing = "version" in config or "version_provider" in config
    tag = read_tag_text(config.get("tag_format", "$version")) if is_releasing else ""
    findings: list[str] = []
    if name == _CONVENTIONAL:
        own = f"{place}, by {TOOL}'s own rule"
        lines = fill_up(
            make_lines(own, minor=["feat", "feature"], patch=["fix", "refactor", "perf"]),
            TOOL,
            place,
        )
    else:
        bumps = table(config, "customize", "bump_map")
        lines = dict(_read_map(bumps, f"{place}.customize.bump_map", findings))
        if not bumps:
            findings.append(f"{place}.name {name!r} was not read, so that what {TOOL} makes of a commit is not known.")
    zero = dict(_read_zero(config, place, findings))
    return ToolSettings(TOOL, file, lines, zero, tag, is_releasing, tuple(findings))


def _read_zero(config: dict[str, Any], place: str, findings: list[str]) -> Iterator[tuple[str, Line]]:
    if config.get("major_version_zero") is True:
        yield BREAKING, Line("minor", f"{place}.major_version_zero")
        bumps = table(config, "customize", "bump_map_major_version_zero")
        yield from _read_map(bumps, f"{place}.customize.bump_map_major_version_zero", findings)


def _read_map(bumps: dict[str, Any], where: str, findings: list[str]) -> Iterator[tuple[str, Line]]:
    for pattern, word in bumps.items():
        named, step = read_pattern(pattern), read_step(word)
        if named is None or step is None:
            findings.append(f"{where}: {pattern!r} was not read: expected types such as '^(new|feat)'.")
        elif named.is_breaking:
            yield BREAKING, Line(step, f"{where}.{pattern}")
        else:
            yield from ((name, Line(step, f"{where}.{pattern}")) for name in named.keys)
