"""git-cliff: ``[bump]`` and ``[git] commit_parsers`` in ``cliff.toml`` (https://git-cliff.org/docs/configuration)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perdure.rules.release.settings.files import SettingsFiles, items, table
from perdure.rules.release.settings.model import BREAKING, Line, ToolSettings, make_lines
from perdure.rules.release.settings.patterns import read_pattern
from perdure.rules.release.versions import Bump

TOOL = "git-cliff"


def find_git_cliff(files: SettingsFiles) -> ToolSettings | None:
    """Return what ``cliff.toml`` sets; without ``[bump]`` it is there for the changelog alone, and decides no step."""
    config = table(files.toml("cliff.toml"))
    if not config:
        return None
    file, bump = files.path("cliff.toml"), table(config, "bump")
    findings: list[str] = []
    skipped = dict(_read_skipped(config, f"{file}: git.commit_parsers"))
    steps: tuple[Bump, ...] = ("minor", "major")
    custom = {
        key: line
        for step in steps
        for key, line in _read_custom(bump, step, f"{file}: bump.custom_{step}_increment_regex", findings)
    }
    zero: dict[str, Line] = {}
    if bump.get("features_always_bump_minor") is False:
        zero |= make_lines(f"{file}: bump.features_always_bump_minor", patch=["feat"])
    if bump.get("breaking_always_bump_major") is False:
        zero[BREAKING] = Line("minor", f"{file}: bump.breaking_always_bump_major")
    return ToolSettings(TOOL, file, {**skipped, **custom}, zero, is_explicit=bool(bump), findings=tuple(findings))


def _read_skipped(config: dict[str, Any], where: str) -> Iterator[tuple[str, Line]]:
    """Types that are left out. Of several parsers that fit a commit the first counts."""
    seen: set[str] = set()
    for place, parser in enumerate(items(table(config, "git").get("commit_parsers"))):
        named = read_pattern(str(parser.get("message", "")))
        for key in named.keys if named else ():
            if parser.get("skip") is True and not {key, key.partition("(")[0]} & seen:
                yield key, Line("none", f"{where}[{place}]")
            seen.add(key)


def _read_custom(bump: dict[str, Any], step: Bump, where: str, findings: list[str]) -> Iterator[tuple[str, Line]]:
    pattern = bump.get(f"custom_{step}_increment_regex")
    named = read_pattern(pattern) if isinstance(pattern, str) else None
    if isinstance(pattern, str) and named is None:
        findings.append(f"{where} was not read: expected types such as '^(new|feat)'.")
    yield from ((key, Line(step, where)) for key in (named.keys if named else ()))
