"""python-semantic-release: ``[tool.semantic_release]`` in pyproject.toml, ``[semantic_release]`` in setup.cfg.

Source of the defaults: https://python-semantic-release.readthedocs.io (commit parsing, configuration); names of
``parser_angular_*`` are those of version 7.
"""

from __future__ import annotations

from typing import Any

from perdure.rules.release.gitmoji import split_gitmoji
from perdure.rules.release.settings.files import SettingsFiles, table, texts
from perdure.rules.release.settings.model import BREAKING, Line, ToolSettings, fill_up, make_lines
from perdure.rules.release.settings.tag_text import read_tag_text
from perdure.rules.release.versions import Bump

TOOL = "python-semantic-release"

_TYPED = ("angular", "conventional")
_ALLOWED = "build chore ci docs feat fix perf style refactor test".split()  # noqa: SIM905
_OWN: dict[Bump, tuple[str, ...]] = {"patch": ("fix", "perf"), "minor": ("feat",)}
_LEVELS: dict[str, Bump] = {"2": "patch", "3": "minor", "4": "major", "patch": "patch", "minor": "minor"}


def find_python_semantic_release(files: SettingsFiles) -> ToolSettings | None:
    """Return the settings; ``None`` when the project has none."""
    config = table(files.toml("pyproject.toml"), "tool", "semantic_release")
    if config:
        return _read(config, files.path("pyproject.toml"), "tool.semantic_release")
    config = files.ini("setup.cfg", "semantic_release")
    if not config:
        return None
    return _read({key: _split(key, text) for key, text in config.items()}, files.path("setup.cfg"), "semantic_release")


def _split(key: str, text: Any) -> Any:
    """Lists are one text in an INI file."""
    return [word.strip() for word in str(text).split(",")] if key.endswith("_types") else text


def _read(config: dict[str, Any], file: str, key: str) -> ToolSettings:
    place = f"{file}: {key}"
    parser = str(config.get("commit_parser") or "angular").rpartition(".")[2].rpartition(":")[2]
    name = parser.removesuffix("_parser").removesuffix("-monorepo").removeprefix("parse_")
    tag = read_tag_text(config.get("tag_format", "v{version}"))
    if name in _TYPED:
        lines = fill_up(_read_types(config, place), TOOL, place)
    elif name == "emoji":
        lines = _read_emoji(table(config, "commit_parser_options"), f"{place}.commit_parser_options")
    else:
        told = f"{place}.commit_parser {parser!r} was not read, so that what {TOOL} makes of a commit is not known."
        return ToolSettings(TOOL, file, tag=tag, findings=(told,))
    zero = {}
    if str(config.get("major_on_zero")).lower() == "false":
        zero = {BREAKING: Line("minor", f"{place}.major_on_zero")}
    return ToolSettings(TOOL, file, lines, zero, tag)


def _read_types(config: dict[str, Any], place: str) -> dict[str, Line]:
    """The default level is of every type that is allowed; the lists of types come before it."""
    options = table(config, "commit_parser_options")
    level = _LEVELS.get(str(options.get("default_bump_level", config.get("parser_angular_default_level_bump"))).lower())
    allowed = texts(options.get("allowed_tags", config.get("parser_angular_allowed_types"))) or _ALLOWED
    allowed = [*allowed, *texts(options.get("other_allowed_tags"))]
    lines = make_lines(f"{place}.commit_parser_options.default_bump_level", **{level: allowed}) if level else {}
    for step, names in _OWN.items():
        where, listed = f"{place}, by {TOOL}'s own rule", list(names)
        for found, key in ((config, f"parser_angular_{step}_types"), (options, f"{step}_tags")):
            if texts(found.get(key)):
                where = f"{place}.commit_parser_options.{key}" if found is options else f"{place}.{key}"
                listed = texts(found.get(key))
        lines |= make_lines(where, **{step: [name.lower() for name in listed]})
    return lines


def _read_emoji(options: dict[str, Any], where: str) -> dict[str, Line]:
    """Emojis that are understood as a type set that type's step."""
    lines: dict[str, Line] = {}
    steps: dict[str, Bump] = {"patch": "patch", "minor": "minor", "major": "major"}
    for word, step in steps.items():
        for emoji in texts(options.get(f"{word}_tags")):
            kind, _ = split_gitmoji(f"{emoji} x")
            if kind:
                lines[kind] = Line(step, f"{where}.{word}_tags")
    return lines
