"""The draft steps ``release.write_versions`` and ``release.write_changelog``."""

from __future__ import annotations

import re
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.errors import StageFailed
from perdure.rules.base import DraftSpace, Rule, RuleContext, RuleResult
from perdure.rules.release.changelog_files import decode_changelog
from perdure.rules.release.changelog_write import Release, write_release
from perdure.rules.release.entries import read_entries
from perdure.rules.release.files.base import find_places, replace_version
from perdure.rules.release.files.registry import format_named
from perdure.rules.release.propose import NAME as PROPOSE
from perdure.rules.release.results import find_value, require_value
from perdure.rules.release.sources import FILES

WRITE_VERSIONS = "release.write_versions"
WRITE_CHANGELOG = "release.write_changelog"

_PLACEHOLDER = re.compile(r"0\.0\.0(?:[-+.].*)?")


def write_versions(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Write ``version`` into the version files that were gathered; every other byte stays.

    After a first release a file that says ``0.0.0`` is a placeholder and stays as it is.
    """
    space, version = require_space(context), str(arguments["version"])
    files = require_value(context, "gather", FILES)["files"]
    release = find_value(context.results.get("analyze"), PROPOSE) or {}
    written, findings = [], []
    for file in files:
        old = [place["version"] for place in file["places"]]
        if release.get("last_version") and old and all(_PLACEHOLDER.fullmatch(said) for said in old):
            findings.append(f"{file['path']} says {old[0]}, a placeholder: it is left as it is.")
        elif old and _write_file(space, file, version):
            written.append({"path": file["path"], "places": file["places"], "version": version})
    summary = f"{version} in {', '.join(file['path'] for file in written)}" if written else "no version file to change"
    return RuleResult({"rule": WRITE_VERSIONS, "files": written}, summary, findings=findings)


def _write_file(space: DraftSpace, file: JsonDict, version: str) -> bool:
    """Write one file; return whether that changed it."""
    form, path = format_named(file["format"]), file["path"]
    data = space.read(path)
    if data is None:
        raise StageFailed(f"{path} was gathered but is not in the workspace. Run the job again.")
    found = find_places(form, data, path).places
    if [place.where for place in found] != [place["where"] for place in file["places"]]:
        raise StageFailed(f"{path} in the workspace is not what was gathered. Run the job again.")
    replaced = replace_version(form, data, version, path)
    if replaced != data:
        space.write(path, replaced)
    return replaced != data


def write_changelog(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Add the section of ``release`` (a ``release.propose`` value) to its changelog; create one when there is none.

    Nothing is written for a release without entries, or where the changelog is of a kind that is not extended yet.
    """
    space, release = require_space(context), arguments["release"]
    entries, changelog = read_entries(release), release.get("changelog") or {}
    if not entries or changelog.get("format") not in ("markdown", "absent"):
        return RuleResult({"rule": WRITE_CHANGELOG, "path": ""}, "no changelog written")
    path = changelog["path"]
    text = decode_changelog(space.read(path) or b"", path)
    facts: dict[str, Any] = {key: release[key] for key in ("version", "tag", "last_tag", "date")}
    written, finding = write_release(text, Release(**facts, entries=entries), path=path)
    space.write(path, written.encode("utf-8"))
    plural = "entry" if len(entries) == 1 else "entries"
    summary = f"{len(entries)} {plural} in {path}"
    return RuleResult({"rule": WRITE_CHANGELOG, "path": path}, summary, findings=[finding] if finding else [])


def require_space(context: RuleContext) -> DraftSpace:
    """Return the private workspace; a rule of this class always has one."""
    if context.space is None:
        raise StageFailed("This step needs a workspace. Use it in a draft or a verify stage.")
    return context.space


VERSIONS_RULE = Rule(
    name=WRITE_VERSIONS,
    rule_class="draft",
    run=write_versions,
    needs=frozenset({"version"}),
    about="Writes the version into the gathered version files.",
)
CHANGELOG_RULE = Rule(
    name=WRITE_CHANGELOG,
    rule_class="draft",
    run=write_changelog,
    needs=frozenset({"release"}),
    about="Adds the release's section to the changelog.",
)
