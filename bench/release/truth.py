"""What really was in a release: the items of its changelog section, and how many of them a plan has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.errors import UserError
from perdure.rules.git_tree import CommitTree
from perdure.rules.release.changelog_files import decode_changelog, describe_changelog
from perdure.rules.release.changelog_items import BULLET
from perdure.rules.release.changelog_markup import MARKUPS
from perdure.rules.release.changelog_write import section_items
from perdure.rules.release.entries import Entry
from perdure.workspace.git import Repository

_WORD = re.compile(r"[a-z0-9]{3,}")
_NUMBER = re.compile(r"#(\d+)\b")
_COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b")
_NO_CHANGE = re.compile(
    r"(?:resolves|closes|fixes|refs?|implements|co-authored-by|signed-off-by):? .*"
    r"|.*\b(?:full changelog|made their first contribution|all notable changes)\b.*",
    re.IGNORECASE | re.DOTALL,
)
"""Lines of a section that tell of no change: footers that came along from a commit, thanks, links to comparisons."""
_ALIKE = 0.6
"""Share of the smaller text's words that must be common for the two to tell the same."""


@dataclass(frozen=True)
class Recall:
    """How many of a changelog's items a plan has."""

    found: int
    items: int


def read_truth(repository: Repository, commit: str, folder: str, version: str) -> list[str]:
    """Return the items of the changelog section that the release's own commit holds; empty when there is none."""
    try:
        tree = CommitTree(repository, commit, folder)
        changelog, _ = describe_changelog(tree)
        path = str(changelog["path"])
        text = decode_changelog(tree.read(path.rpartition("/")[2]) or b"")
    except UserError:
        return []
    items = section_items(text, version, changelog["format"]) if changelog["format"] in MARKUPS else []
    told = [item for _, item in items or []]
    bullets = {match[3].rstrip() for line in text.splitlines() if (match := BULLET.fullmatch(line))}
    # Beneath bullets, paragraphs are the rest of a commit's message and no entries.
    listed = [item for item in told if item.split("\n", 1)[0] in bullets] or told
    return [item for item in listed if _WORD.search(item.lower()) and not _NO_CHANGE.match(item.strip("*_ "))]


def count_recall(items: Sequence[str], entries: Sequence[Entry]) -> Recall:
    """Count the items that some entry tells: by a commit both name, by a request both name, or by their words."""
    return Recall(sum(any(_tells(item, entry) for entry in entries) for item in items), len(items))


def _tells(item: str, entry: Entry) -> bool:
    commits = _COMMIT.findall(item)
    if any(name.startswith(source) or source.startswith(name) for name in commits for source in entry.sources):
        return True
    said = f"{entry.scope} {entry.text} {entry.reason}"
    if set(_NUMBER.findall(item)) & set(_NUMBER.findall(said)):
        return True
    ours, theirs = set(_WORD.findall(said.lower())), set(_WORD.findall(item.lower()))
    return bool(ours and theirs) and len(ours & theirs) >= _ALIKE * min(len(ours), len(theirs))
