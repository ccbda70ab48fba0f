"""release-please: ``release-please-config.json``, and ``.github/release-please.yml`` of its GitHub app.

Source of the defaults: https://github.com/googleapis/release-please (docs/manifest-releaser.md, docs/customizing.md):
every type whose section is not hidden is released.
"""

from __future__ import annotations

import re
from typing import Any

from perdure.rules.release.commit_types import LISTED
from perdure.rules.release.settings.files import SettingsFiles, items, table
from perdure.rules.release.settings.model import BREAKING, Line, ToolSettings, fill_up, make_lines, read_step
from perdure.rules.release.settings.tag_text import prefixed

TOOL = "release-please"

_CONFIG = "release-please-config.json"
_APP = "release-please.yml"
_SHOWN = ("fix", "perf", "revert", "deps")
_SHOWN_MORE = {"python": ("docs",), "java": ("docs",)}
_CAPITAL = re.compile(r"[A-Z]")


def find_release_please(files: SettingsFiles, folder: str = "") -> ToolSettings | None:
    """Return the settings of the package in ``folder``; ``None`` when the project has none. ``files``: the root's."""
    if files.has(_CONFIG):
        config = files.json(_CONFIG)
        if not files.is_readable(_CONFIG):
            return None
        own = table(config, "packages", folder or ".")
        is_alone = len(table(config, "packages")) < 2
        return _read({**config, **own}, files.path(_CONFIG), is_alone=is_alone)
    github = files.open_folder(".github") if files.has(".github") else None
    if github is None or not github.has(_APP):
        return None
    said = github.yaml(_APP)
    files.findings += github.findings
    if not github.is_readable(_APP):
        return None
    # The app writes the same options in camel case.
    config = {_CAPITAL.sub(lambda match: f"-{match[0].lower()}", key): value for key, value in said.items()}
    return _read(config, github.path(_APP), is_alone=True)


def _read(config: dict[str, Any], file: str, *, is_alone: bool) -> ToolSettings:
    own = f"{file}, by {TOOL}'s own rule"
    lines = fill_up({**_read_sections(config, file), **make_lines(own, minor=["feat", "feature"])}, TOOL, file)
    versioning = str(config.get("versioning") or "default")
    findings: tuple[str, ...] = ()
    always = read_step(versioning.removeprefix("always-bump-")) if versioning.startswith("always-bump-") else None
    if always:
        lines = {key: Line(always, f"{file}: versioning") for key in [*lines, *LISTED, BREAKING]}
    elif versioning != "default":
        findings = (f"{file}: versioning {versioning!r} was not read; the version follows from the changes.",)
    zero = {} if always else _read_zero(config, file)
    with_v = prefixed("v" if config.get("include-v-in-tag", True) else "")
    is_plain = is_alone and not (config.get("component") or config.get("package-name"))
    tag = with_v if config.get("include-component-in-tag") is False or is_plain else ""
    return ToolSettings(TOOL, file, lines, zero, tag, findings=findings)


def _read_sections(config: dict[str, Any], file: str) -> dict[str, Line]:
    """Types whose section is shown, as a patch."""
    kind = str(config.get("release-type") or "")
    sections = items(config.get("changelog-sections"))
    if not sections:
        return make_lines(f"{file}, by {TOOL}'s own rule", patch=[*_SHOWN, *_SHOWN_MORE.get(kind, ())])
    shown = [one["type"] for one in sections if isinstance(one.get("type"), str) and one.get("hidden") is not True]
    return make_lines(f"{file}: changelog-sections", patch=[name.lower() for name in shown])


def _read_zero(config: dict[str, Any], file: str) -> dict[str, Line]:
    zero = {}
    if config.get("bump-minor-pre-major") is True:
        zero[BREAKING] = Line("minor", f"{file}: bump-minor-pre-major")
    if config.get("bump-patch-for-minor-pre-major") is True:
        zero |= make_lines(f"{file}: bump-patch-for-minor-pre-major", patch=["feat", "feature"])
    return zero
