"""cocogitto: ``cog.toml``. Source of the defaults: https://docs.cocogitto.io (bump, configuration)."""

from __future__ import annotations

from perdure.rules.release.settings.files import SettingsFiles, table
from perdure.rules.release.settings.model import BREAKING, Line, ToolSettings, fill_up, make_lines
from perdure.rules.release.settings.tag_text import prefixed

TOOL = "cocogitto"


def find_cocogitto(files: SettingsFiles) -> ToolSettings | None:
    """Return the settings; ``None`` when the project has none."""
    config, place = files.toml("cog.toml"), files.path("cog.toml")
    if not files.is_readable("cog.toml"):
        return None
    own = f"{place}, by {TOOL}'s own rule"
    lines = fill_up(make_lines(own, minor=["feat"], patch=["fix"]), TOOL, place)
    for name, options in table(config, "commit_types").items():
        where = f"{place}: commit_types.{name}"
        if table({"options": options}, "options").get("bump_minor") is True:
            lines[name.lower()] = Line("minor", f"{where}.bump_minor")
        elif table({"options": options}, "options").get("bump_patch") is True:
            lines[name.lower()] = Line("patch", f"{where}.bump_patch")
    zero = {BREAKING: Line("minor", f"{own} for 0.x")}
    return ToolSettings(TOOL, place, lines, zero, prefixed(config.get("tag_prefix", "")))
