"""The draft step ``release.write_changelog``; its sister ``release.write_versions`` comes with the version files."""

from __future__ import annotations

from typing import Any

from perdure.contracts.base import JsonDict
from perdure.rules.base import DraftSpace, Rule, RuleContext, RuleResult
from perdure.rules.release.changelog_files import decode_changelog, encode_changelog
from perdure.rules.release.changelog_markup import WRITTEN_FORMATS
from perdure.rules.release.changelog_write import Release, write_release
from perdure.rules.release.entries import read_entries
from perdure.rules.release.evidence import waiting_entry
from perdure.rules.release.files.writing import VERSIONS_RULE
from perdure.rules.release.results import require_space

WRITE_CHANGELOG = "release.write_changelog"


def write_changelog(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Add the section of ``release`` (a ``release.propose`` value) to its changelog; create one when there is none.

    Change files that the release takes over go with it. Nothing is written and nothing removed for a release without
    entries, or where the changelog is of a kind that is not extended yet.
    """
    space, release = require_space(context), arguments["release"]
    entries, changelog = read_entries(release), release.get("changelog") or {}
    if not entries or changelog.get("format") not in WRITTEN_FORMATS:
        return RuleResult({"rule": WRITE_CHANGELOG, "path": ""}, "no changelog written")
    path, form = changelog["path"], changelog["format"]
    data = space.read(path) or b""
    facts: dict[str, Any] = {key: release[key] for key in ("version", "tag", "last_tag", "date")}
    left = [waiting_entry(item, f"{path} [Unreleased]") for item in release.get("left", [])]
    said = Release(**facts, entries=entries, left=left)
    written, finding = write_release(decode_changelog(data), said, path=path, form=form)
    space.write(path, encode_changelog(written, data, path))
    consumed = [name for name in release.get("consumed", []) if _remove(space, name)]
    plural = "entry" if len(entries) == 1 else "entries"
    summary = f"{len(entries)} {plural} in {path}" + (f", {len(consumed)} change files removed" if consumed else "")
    return RuleResult({"rule": WRITE_CHANGELOG, "path": path}, summary, findings=[finding] if finding else [])


def _remove(space: DraftSpace, path: str) -> bool:
    """Remove a regular file of the workspace; return whether it was there. ``read`` refuses links and ways out."""
    if space.read(path) is None:
        return False
    (space.root / path).unlink(missing_ok=True)
    return True


CHANGELOG_RULE = Rule(
    name=WRITE_CHANGELOG,
    rule_class="draft",
    run=write_changelog,
    needs=frozenset({"release"}),
    about="Adds the release's section to the changelog.",
)

__all__ = ["CHANGELOG_RULE", "VERSIONS_RULE", "write_changelog"]
