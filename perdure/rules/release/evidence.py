"""What counts as evidence of a change, strongest first; the strongest kind that says something gives the entries.

Between what is written by hand and commits stand overrides that reviewers recorded (``overrides``): ``recalled``
applies them to the entries found here. To add a kind (a forge's pull requests, say): a function from what was gathered
to entries, and its place in ``EVIDENCE``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from perdure.contracts.base import JsonDict
from perdure.rules.git_commits import Commit
from perdure.rules.release.change_files import leave_pre_mode
from perdure.rules.release.commit_entries import read_commit_entries
from perdure.rules.release.commit_signals import Reading
from perdure.rules.release.entries import Entry, clean_text, find_section
from perdure.rules.release.habits import Habits
from perdure.rules.release.versions import Bump

_SECTION_BUMPS: Mapping[str, Bump] = {
    "Added": "minor",
    "Changed": "minor",
    "Deprecated": "minor",
    "Removed": "major",
    "Fixed": "patch",
    "Security": "patch",
    **dict.fromkeys(("Feature", "Features", "Feat", "New", "New Features"), "minor"),
    **dict.fromkeys(("Breaking", "Breaking Changes", "BREAKING CHANGES", "BREAKING CHANGE"), "major"),
}
_SHOWN = 5


@dataclass(frozen=True)
class Gathered:
    """What the evidence is read from."""

    commits: Sequence[Commit]
    """Of the range, newest first."""
    changelog: JsonDict
    """The ``changelog`` part of a ``release.change_files`` value; empty when it was not gathered."""
    change_files: Sequence[JsonDict] = ()
    """The ``files`` part of the same value."""
    package: str = ""
    """The package's name as its version files say it; empty when none does."""
    habits: Habits = field(default_factory=Habits)
    """What the project's earlier releases show."""
    reading: Reading = field(default_factory=Reading)
    """What the commits say, shared by packages that list the same ones."""


@dataclass(frozen=True)
class Collected:
    """Entries, and sentences that the reviewer should see."""

    entries: list[Entry] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


def from_unreleased(gathered: Gathered) -> Collected:
    """Entries that somebody wrote under ``[Unreleased]``. Their section says how far they move the version."""
    source = f"{gathered.changelog.get('path', '')} [Unreleased]"
    return Collected([waiting_entry(item, source) for item in gathered.changelog.get("unreleased", [])])


def from_change_files(gathered: Gathered) -> Collected:
    """Entries of change files: each says its own step. Changesets about other packages are passed over."""
    return Collected(
        [
            _write_change(change, file["path"])
            for file in gathered.change_files
            for change in file["changes"]
            if _is_ours(change, gathered.package)
        ]
    )


def from_commits(gathered: Gathered) -> Collected:
    """Entries that commit messages give."""
    return Collected(*read_commit_entries(gathered.commits, gathered.habits, gathered.reading))


def from_hand(gathered: Gathered) -> Collected:
    """What people wrote for this release, in change files and under ``[Unreleased]``: both are taken over whole."""
    return Collected(from_change_files(gathered).entries + from_unreleased(gathered).entries)


EVIDENCE: tuple[Callable[[Gathered], Collected], ...] = (from_hand, from_commits)


def collect_entries(gathered: Gathered) -> Collected:
    """Return one set of entries, which feeds the version and the changelog alike.

    The strongest kind of evidence that says anything gives the entries; of weaker kinds only breaking changes are added
    (a breaking change always shows), and what is left out is named as a finding.
    """
    entries: list[Entry] = []
    findings: list[str] = []
    for read in EVIDENCE:
        found = read(gathered)
        if not entries:
            entries = found.entries
        else:
            entries = entries + [entry for entry in found.entries if entry.breaking]
            findings += _name_left_out([entry for entry in found.entries if not entry.breaking], entries[0])
        findings += found.findings
    return Collected(entries, findings)


def find_consumed(gathered: Gathered) -> list[str]:
    """Return the paths of the change files that this release takes over, sorted."""
    consumed = (str(file["path"]) for file in gathered.change_files if _is_consumed(file, gathered.package))
    return leave_pre_mode(consumed, gathered.change_files)


def _is_consumed(file: JsonDict, package: str) -> bool:
    """A changeset about other packages waits for theirs; one about several is not taken from the others."""
    packages = {change["package"] for change in file["changes"]}
    return packages <= {"", package} or not package


def _is_ours(change: JsonDict, package: str) -> bool:
    return not package or change["package"] in ("", package)


def _write_change(change: JsonDict, path: str) -> Entry:
    text, breaking = _strip_breaking(clean_text(change["text"]))
    bump: Bump = "major" if breaking else change["bump"]
    return Entry(
        id=made_id("u", path, change["section"], text),
        section=change["section"],
        text=text,
        sources=(f"{path} (change file)",),
        bump=bump,
        breaking=bump == "major",
        reason=f"{change['bump']}: {text.splitlines()[0]}",
    )


def waiting_entry(item: JsonDict, source: str) -> Entry:
    """Return the entry of an item ({section, text}) that waits under ``[Unreleased]``."""
    text, breaking = _strip_breaking(clean_text(item["text"]))
    section = find_section(item["section"])
    bump: Bump = "major" if breaking else _SECTION_BUMPS.get(section, "patch")
    return Entry(
        id=made_id("u", section, text),
        section=section,
        text=text,
        sources=(source,),
        bump=bump,
        breaking=bump == "major",
        reason=f"{section}: {text.splitlines()[0]}" if text else section,
    )


def _strip_breaking(text: str) -> tuple[str, bool]:
    """Take a leading mark of a breaking change off; it is written again with the entry."""
    for mark in ("**Breaking:** ", "**BREAKING:** ", "**Breaking**: ", "**BREAKING**: ", "BREAKING: ", "Breaking: "):
        if text.startswith(mark):
            return text.removeprefix(mark), True
    return text, text.lower().startswith(("**breaking", "breaking change"))


def made_id(prefix: str, *parts: str) -> str:
    """Return an id for an entry that no commit names: the same text has the same id in every round."""
    return f"{prefix}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:6]}"


def _name_left_out(entries: Sequence[Entry], first: Entry) -> list[str]:
    if not entries:
        return []
    shown = "; ".join(f"{entry.sources[0]} {entry.reason}" for entry in entries[:_SHOWN])
    more = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
    where = "[Unreleased] is" if first.sources[0].endswith("[Unreleased]") else "change files are"
    return [f"Not listed, because {where} written by hand: {shown}{more}. Add what is missing there."]
