"""Reverts: nothing undone is listed, and what was undone after it was released is an entry of its own."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perdure.rules.git_commits import Commit
from perdure.rules.release.conventional import ConventionalCommit, parse_conventional

_GIT_REVERT = re.compile(r"(?P<verb>Revert|Reapply) [\"“](?P<subject>.*)[\"”](?: \(#\d+\))?")
_HASH = re.compile(r"\b[0-9a-f]{7,64}\b")
_REVERTS_LINE = re.compile(r"(?im)^[ \t]*(?:this )?reverts? commits? (?P<rest>.*(?:\n[^\n]+)*)")
_REFS_LINE = re.compile(r"(?im)^refs?(?:: *| #)(?P<rest>[0-9a-f, ]+)$")
_MERGE_SIDE = re.compile(r"reversing\s+changes\s+made\s+to\s+[0-9a-f]{7,64}", re.IGNORECASE)


@dataclass(frozen=True)
class Revert:
    """What a message says it reverts."""

    hashes: tuple[str, ...]
    subject: str
    """The reverted subject as quoted; empty when only hashes are given."""


@dataclass
class Cancelled:
    """What is left out of a range of commits because it was undone in it."""

    ids: set[str] = field(default_factory=set)
    """Whole ids of the undone commits and of the reverts that undid them."""
    released: list[str] = field(default_factory=list)
    """Whole ids of reverts whose target is not in the range: it was released before, newest first."""
    uncertain: list[str] = field(default_factory=list)
    """One sentence for each revert matched by its subject alone."""


def parse_revert(commit: Commit) -> Revert | None:
    """Return what ``commit`` says it reverts; ``None`` when it is no revert.

    Read are git's own wording (``Revert "…"``, ``Reapply "…"``; "This reverts commit …" under any subject) and the
    specification's ``revert: …`` with ``Refs: <hash>, <hash>``.
    """
    if not commit.subject.lower().startswith(("revert", "reapply")):
        hashes = _find_hashes(commit.body, _REVERTS_LINE)
        return Revert(hashes, "") if hashes else None
    wording = _GIT_REVERT.fullmatch(commit.subject)
    conventional = parse_conventional(commit.message)
    is_typed = conventional is not None and conventional.type == "revert"
    hashes = _find_hashes(commit.body, _REVERTS_LINE, _REFS_LINE)
    if wording is None and not is_typed:
        return Revert(hashes, "") if hashes else None
    return Revert(hashes, _reverted_subject(wording, conventional))


def _reverted_subject(wording: re.Match[str] | None, conventional: ConventionalCommit | None) -> str:
    if wording is None:
        return conventional.description.strip('"“”') if conventional else ""
    # Reapplying undoes the revert of that name, not the commit.
    return f'Revert "{wording["subject"]}"' if wording["verb"] == "Reapply" else wording["subject"]


class _Range:
    """Commits newest first, found by id, by the beginning of an id, or by subject."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self.by_id = {commit.id: commit for commit in commits}
        self._place = {commit.id: place for place, commit in enumerate(commits)}
        self._sorted = sorted(self.by_id)
        self._subjects: dict[str, list[Commit]] = {}
        for commit in commits:
            self._subjects.setdefault(commit.subject.strip(), []).append(commit)

    def find_by_hash(self, name: str, *, before: Commit) -> list[Commit]:
        """The older commits whose id begins with ``name``."""
        start = bisect_left(self._sorted, name)
        end = bisect_left(self._sorted, name + "g")
        return [self.by_id[found] for found in self._sorted[start:end] if self._is_older(found, before)]

    def find_by_subject(self, subject: str, *, before: Commit) -> list[Commit]:
        """The older commits with exactly this subject, newest first."""
        return [commit for commit in self._subjects.get(subject, []) if self._is_older(commit.id, before)]

    def _is_older(self, name: str, before: Commit) -> bool:
        return self._place[name] > self._place[before.id]


def cancel_reverts(commits: Sequence[Commit]) -> Cancelled:
    """Find what was undone within ``commits`` (newest first, children before parents).

    A revert that was itself undone undoes nothing: what it reverted stands again.
    """
    result = Cancelled()
    reverts = [(commit, revert) for commit in commits if (revert := parse_revert(commit))]
    inside = _Range(commits if reverts else ())
    for commit, revert in reverts:
        if commit.id not in result.ids:
            _cancel(commit, revert, inside, result)
    return result


def _cancel(commit: Commit, revert: Revert, inside: _Range, result: Cancelled) -> None:
    targets = [found for name in revert.hashes for found in inside.find_by_hash(name, before=commit)]
    targets = [found for found in targets if found.id not in result.ids]
    if not targets and revert.subject:
        named = inside.find_by_subject(revert.subject, before=commit)
        targets = [found for found in named if found.id not in result.ids][:1]
        result.uncertain += [
            f"{commit.short} reverts {found.short} by its subject alone ({revert.subject!r}): both are left out."
            for found in targets
        ]
    if not targets:
        result.released.append(commit.id)
        return
    result.ids.add(commit.id)
    for target in targets:
        result.ids |= {target.id} | _brought_by_merge(target, inside.by_id)


def _brought_by_merge(merge: Commit, by_id: Mapping[str, Commit]) -> set[str]:
    """Ids within the range that only the merge's other parents bring; empty for a commit with one parent."""
    if len(merge.parents) < 2:
        return set()
    kept = _ancestors(merge.parents[:1], by_id)
    return _ancestors(merge.parents[1:], by_id) - kept


def _ancestors(starts: Sequence[str], by_id: Mapping[str, Commit]) -> set[str]:
    seen: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name in by_id and name not in seen:
            seen.add(name)
            waiting.extend(by_id[name].parents)
    return seen


def _find_hashes(body: str, *lines: re.Pattern[str]) -> tuple[str, ...]:
    """The hashes in lines of these forms, in order, each once."""
    if "ref" not in body.lower() and "revert" not in body.lower():
        return ()
    # "reversing changes made to X" names the merge's first parent, which was not reverted.
    text = _MERGE_SIDE.sub("", body)
    found = [match["rest"] for line in lines for match in line.finditer(text)]
    return tuple(dict.fromkeys(name for rest in found for name in _HASH.findall(rest)))
