"""What counts as evidence of a change, strongest first; the strongest kind that says something gives the entries.

To add a kind (change files, gitmoji, squash bodies, a project's own types): a function from what was gathered to
entries, and its place in ``EVIDENCE``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from perdure.contracts.base import JsonDict
from perdure.rules.git_commits import Commit
from perdure.rules.release.commit_entries import read_commit_entries
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
}
_SHOWN = 5


@dataclass(frozen=True)
class Gathered:
    """What the evidence is read from."""

    commits: Sequence[Commit]
    """Of the range, newest first."""
    changelog: JsonDict
    """The ``changelog`` part of a ``release.change_files`` value; empty when it was not gathered."""
    habits: Habits = field(default_factory=Habits)
    """What the project's earlier releases show."""


@dataclass(frozen=True)
class Collected:
    """Entries, and sentences that the reviewer should see."""

    entries: list[Entry] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


def from_unreleased(gathered: Gathered) -> Collected:
    """Entries that somebody wrote under ``[Unreleased]``. Their section says how far they move the version."""
    source = f"{gathered.changelog.get('path', '')} [Unreleased]"
    return Collected([_write_unreleased(item, source) for item in gathered.changelog.get("unreleased", [])])


def from_commits(gathered: Gathered) -> Collected:
    """Entries that commit messages give."""
    return Collected(*read_commit_entries(gathered.commits, gathered.habits))


EVIDENCE: tuple[Callable[[Gathered], Collected], ...] = (from_unreleased, from_commits)


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
            findings += _name_left_out([entry for entry in found.entries if not entry.breaking])
        findings += found.findings
    return Collected(entries, findings)


def _write_unreleased(item: JsonDict, source: str) -> Entry:
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


def _name_left_out(entries: Sequence[Entry]) -> list[str]:
    if not entries:
        return []
    shown = "; ".join(f"{entry.sources[0]} {entry.reason}" for entry in entries[:_SHOWN])
    more = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
    return [f"Not listed, because [Unreleased] is written by hand: {shown}{more}. Add what is missing there."]
