"""What a release tool's settings say, in one form for all tools: which kind of change takes which step, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from perdure.contracts.base import JsonDict
from perdure.rules.release.commit_types import LISTED
from perdure.rules.release.versions import BUMPS, Bump

BREAKING = "breaking"
"""The key of breaking changes."""

Step = Bump | Literal["none"]
"""``none``: no release is made of such changes, and they are not listed."""


@dataclass(frozen=True)
class Line:
    """What the settings say of changes of one kind."""

    step: Step
    where: str
    """File and key: ``.releaserc: releaseRules[0]``."""


@dataclass(frozen=True)
class ToolSettings:
    """The settings of one tool; without a tool none were found."""

    tool: str = ""
    file: str = ""
    lines: Mapping[str, Line] = field(default_factory=dict)
    """By key: a type (``feat``), a type with a scope (``feat(api)``), a scope alone (``*(api)``), ``breaking``."""
    zero: Mapping[str, Line] = field(default_factory=dict)
    """What counts instead in initial development (0.x)."""
    tag: str = ""
    """The form of its tags, ``v{version}``; empty where the settings do not tell."""
    is_explicit: bool = True
    """Whether the project wrote settings; else it only uses the tool."""
    findings: tuple[str, ...] = ()

    @property
    def types(self) -> frozenset[str]:
        """Types that have a line."""
        return frozenset(key.partition("(")[0] for key in {**self.lines, **self.zero})

    def lines_at(self, *, is_zero: bool) -> dict[str, Line]:
        """What counts for a release: in 0.x, or after it."""
        return {**self.lines, **(self.zero if is_zero else {})}

    def to_json(self) -> JsonDict:
        """Return plain JSON; inverse of :func:`settings_from_json`."""
        lines = {key: vars(line) for key, line in self.lines.items()}
        zero = {key: vars(line) for key, line in self.zero.items()}
        told: JsonDict = {"tool": self.tool, "file": self.file, "lines": lines, "zero": zero, "tag": self.tag}
        return told


def settings_from_json(value: JsonDict) -> ToolSettings:
    """Return the settings that :meth:`ToolSettings.to_json` wrote; none of an empty value."""
    lines = {key: Line(**line) for key, line in value.get("lines", {}).items()}
    zero = {key: Line(**line) for key, line in value.get("zero", {}).items()}
    return ToolSettings(value.get("tool", ""), value.get("file", ""), lines, zero, value.get("tag", ""))


def make_lines(where: str, **types: Iterable[str]) -> dict[str, Line]:
    """Return a line for each type, by step: ``make_lines("cog.toml", minor=["feat"], patch=["fix"])``."""
    return {name: Line(_step(step), where) for step, names in types.items() for name in names}


def fill_up(lines: Mapping[str, Line], tool: str, where: str) -> dict[str, Line]:
    """Add breaking changes, and the types that are listed here although the tool makes no more than a patch of them."""
    said = f"{where}; {tool} makes no minor version of it"
    rest = {name: Line("patch", said) for name, (_, step) in LISTED.items() if step != "patch" and name not in lines}
    return {BREAKING: Line("major", f"{where}, by {tool}'s own rule"), **rest, **lines}


def read_step(value: Any) -> Step | None:
    """Return the step that a setting names (``"MINOR"``, ``false``); ``None`` when it names none."""
    if value is False or value is None:
        return "none"
    word = str(value).lower()
    return _step(word) if word in BUMPS else None


def with_findings(settings: ToolSettings, findings: Iterable[str]) -> ToolSettings:
    """The same with more findings."""
    return replace(settings, findings=(*settings.findings, *findings))


def _step(word: str) -> Bump:
    return "major" if word == "major" else "minor" if word == "minor" else "patch"
