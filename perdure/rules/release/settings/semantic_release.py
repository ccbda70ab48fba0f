"""semantic-release: ``release`` in package.json, ``.releaserc`` and its kin; the commit analyzer's rules.

Source of the default rules: https://github.com/semantic-release/commit-analyzer (its README's table). Rules of the
project come before them; of several that fit a change the highest counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from perdure.rules.release.settings.files import SettingsFiles, items, table
from perdure.rules.release.settings.model import BREAKING, Line, ToolSettings, fill_up, make_lines, read_step
from perdure.rules.release.settings.npm_use import find_use
from perdure.rules.release.settings.tag_text import read_tag_text
from perdure.rules.release.versions import BUMPS

TOOL = "semantic-release"

_FILES = (".releaserc", ".releaserc.json", ".releaserc.yaml", ".releaserc.yml")
_PROGRAMS = tuple(f"{name}.{end}" for name in (".releaserc", "release.config") for end in ("js", "cjs", "mjs", "ts"))
_ANALYZER = "@semantic-release/commit-analyzer"
_PRESETS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "angular": {"minor": ("feat",), "patch": ("fix", "perf", "revert")},
    "conventionalcommits": {"minor": ("feat",), "patch": ("fix", "perf", "revert")},
    "eslint": {"minor": ("new", "update"), "patch": ("fix", "build", "upgrade", "chore"), "major": ("breaking",)},
}
_PLAIN = re.compile(r"[^\s*?\[\]{}()|/!]+")
_ORDER = ("none", *BUMPS)


@dataclass
class _Analyzer:
    """How commits are analyzed; ``rules_at`` is the key that its rules stand under."""

    options: dict[str, Any] = field(default_factory=dict)
    rules_at: str = "releaseRules"
    unread: str = ""
    """What analyzes commits in its place, or sets it up, and is not read."""


def find_semantic_release(files: SettingsFiles) -> ToolSettings | None:
    """Return the settings; ``None`` when the project does not use it, or sets it up by a program."""
    package = files.json("package.json")
    if isinstance(package.get("release"), dict):
        return _read(package["release"], files.path("package.json"), "release")
    if name := files.find_first(_FILES):
        config = files.document(name)
        return _read(config, files.path(name), "") if files.is_readable(name) else None
    if any(files.has(name) for name in _PROGRAMS):
        files.refuse_program(_PROGRAMS, TOOL)
        return None
    used = find_use(package, [TOOL])
    return _read({}, files.path("package.json"), used, is_explicit=False) if used else None


def _read(config: dict[str, Any], file: str, key: str, *, is_explicit: bool = True) -> ToolSettings:
    place = f"{file}: {key}" if key else file
    tag = read_tag_text(config.get("tagFormat", "v${version}"))
    analyzer = _find_analyzer(config)
    preset = str(analyzer.options.get("preset") or config.get("preset") or "angular").removeprefix(
        "conventional-changelog-"
    )
    rules = analyzer.options.get("releaseRules", config.get("releaseRules"))
    findings = [f"{place} extends {config['extends']!r}, which was not read."] if config.get("extends") else []
    unread = analyzer.unread or (f"preset {preset!r}" if preset not in _PRESETS else "")
    unread = unread or ("releaseRules of another file" if isinstance(rules, str) else "")
    if unread:
        findings.append(f"{place}: {unread} was not read, so that what {TOOL} makes of a commit is not known.")
        return ToolSettings(TOOL, file, {}, {}, tag, is_explicit, tuple(findings))
    known = make_lines(f"{place}, by {TOOL}'s own rule (preset {preset})", **_PRESETS[preset])
    own, more = _read_rules(rules, f"{file}: {key}.{analyzer.rules_at}" if key else f"{file}: {analyzer.rules_at}")
    lines = fill_up({**known, **own}, TOOL, place)
    return ToolSettings(TOOL, file, lines, {}, tag, is_explicit, (*findings, *more))


def _find_analyzer(config: dict[str, Any]) -> _Analyzer:
    """Find it among ``plugins``, or where it stood before there were any (``analyzeCommits``)."""
    plugins = config.get("plugins")
    if isinstance(plugins, list):
        for plugin in plugins:
            name, options = (plugin, {}) if isinstance(plugin, str) else _open_plugin(plugin)
            if name == _ANALYZER:
                return _Analyzer(options, f"plugins.{_ANALYZER}.releaseRules")
        return _Analyzer(unread=f"a commit analyzer other than {_ANALYZER} in plugins")
    old = config.get("analyzeCommits")
    if isinstance(old, dict) and old.get("path", _ANALYZER) == _ANALYZER:
        return _Analyzer(old, "analyzeCommits.releaseRules")
    return _Analyzer(unread="analyzeCommits") if old not in (None, _ANALYZER) else _Analyzer()


def _open_plugin(plugin: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(plugin, list) or not plugin:
        return "", {}
    return str(plugin[0]), table({"options": plugin[1]}, "options") if len(plugin) > 1 else {}


def _read_rules(rules: Any, where: str) -> tuple[dict[str, Line], list[str]]:
    lines: dict[str, Line] = {}
    findings: list[str] = []
    for place, rule in enumerate(items(rules)):
        key, step = _read_key(rule), read_step(rule.get("release"))
        if not key or step is None:
            findings.append(f"{where}[{place}] was not read: expected type, scope or breaking as plain words.")
            continue
        known = lines.get(key)
        if known is None or _ORDER.index(step) > _ORDER.index(known.step):
            lines[key] = Line(step, f"{where}[{place}]")
    return lines, findings


def _read_key(rule: dict[str, Any]) -> str:
    """The key of a rule's changes; empty when it looks at more than type and scope."""
    asked = {name: value for name, value in rule.items() if name != "release" and value not in (None, False)}
    if set(asked) == {"breaking"}:
        return BREAKING
    if set(asked) == {"revert"}:
        return "revert"
    words = [str(asked.get(name, "")) for name in ("type", "scope")]
    if not set(asked) <= {"type", "scope"} or not all(not word or _PLAIN.fullmatch(word) for word in words):
        return ""
    kind, scope = words[0].lower(), words[1]
    return f"{kind or '*'}({scope})" if scope else kind
