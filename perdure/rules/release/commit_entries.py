"""Entries out of commit messages: Conventional Commits, or plain prose where a project follows no convention."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from perdure.rules.git_commits import Commit
from perdure.rules.release.conventional import ConventionalCommit, parse_conventional
from perdure.rules.release.entries import Entry, clean_text
from perdure.rules.release.reverts import cancel_reverts
from perdure.rules.release.versions import BUMPS, Bump

_LISTED: Mapping[str, tuple[str, Bump]] = {
    "feat": ("Added", "minor"),
    "feature": ("Added", "minor"),
    "fix": ("Fixed", "patch"),
    "bugfix": ("Fixed", "patch"),
    "hotfix": ("Fixed", "patch"),
    "perf": ("Changed", "patch"),
    "revert": ("Changed", "patch"),
    "security": ("Security", "patch"),
    "deprecate": ("Deprecated", "minor"),
}
"""Section and step by type. Only breaking changes of other types are listed."""

_UNLISTED = frozenset("build chore ci doc docs release style refactor test tests wip".split())  # noqa: SIM905

_RELEASE_SUBJECT = re.compile(
    r"(?:(?:chore|build|ci|release|bump)(?:\([^()]*\))?: *)?"
    r"(?:(?:prepare|release|releasing|bump|bumped|version|for|to|from)\b:? *)*"
    r"[\w@/-]*v?\d+\.\d+[\w.+-]*(?: *(?:→|->|to) *v?\d+\.\d+[\w.+-]*)?\.?",
    re.IGNORECASE,
)
_LONGEST_RELEASE_SUBJECT = 120
_UNFINISHED = ("fixup! ", "squash! ", "amend! ")
_SHOWN = 5


def read_commit_entries(commits: Sequence[Commit]) -> tuple[list[Entry], list[str]]:
    """Return (entries, findings) of ``commits`` (newest first): merges, release commits and undone changes left out.

    Prose is listed under "Other" only where most commits follow no convention; elsewhere it is named as a finding.
    """
    cancelled = cancel_reverts(commits)
    released = set(cancelled.released)
    told = [commit for commit in commits if commit.id not in cancelled.ids and not _is_silent(commit)]
    parsed = [(commit, _parse(commit, is_revert=commit.id in released)) for commit in told]
    speaks = 2 * sum(typed is not None for _, typed in parsed) >= len(parsed)
    entries = [entry for commit, typed in parsed if (entry := _write(commit, typed, lists_prose=not speaks))]
    prose = [commit for commit, typed in parsed if typed is None]
    return merge_same(entries), cancelled.uncertain + (_name_prose(prose) if speaks else [])


def merge_same(entries: Sequence[Entry]) -> list[Entry]:
    """Make one entry of those that say the same (a fix picked to several branches), with the sources of all."""
    merged: dict[tuple[str, str, str], Entry] = {}
    for entry in entries:
        key = (entry.section, entry.scope, entry.text)
        first = merged.get(key)
        if first is None:
            merged[key] = entry
            continue
        stronger = max(first, entry, key=lambda one: BUMPS.index(one.bump))
        breaking = first.breaking or entry.breaking
        merged[key] = replace(first, sources=first.sources + entry.sources, bump=stronger.bump, breaking=breaking)
    return list(merged.values())


def is_release_commit(subject: str) -> bool:
    """Whether a subject only announces a version: ``chore(release): 1.2.0``, ``Bump version to 1.2.0``, ``v1.2.0``."""
    text = subject.strip()
    # The pattern's cost grows with the square of a subject's length, and nobody announces a version in a long one.
    return len(text) <= _LONGEST_RELEASE_SUBJECT and _RELEASE_SUBJECT.fullmatch(text) is not None


def _is_silent(commit: Commit) -> bool:
    is_unfinished = commit.subject.startswith(_UNFINISHED)
    return commit.is_merge or not commit.subject or is_unfinished or is_release_commit(commit.subject)


def _parse(commit: Commit, *, is_revert: bool) -> ConventionalCommit | None:
    """Read a commit by the convention; ``None`` for prose, and for ``subsystem: text``, which is prose as well."""
    typed = parse_conventional(commit.message)
    if is_revert and (typed is None or typed.type == "revert" or typed.type not in _LISTED):
        described = typed.description if typed and typed.type == "revert" else commit.subject
        return ConventionalCommit("revert", "", described, "", (), bool(typed and typed.breaking), "")
    if typed is None or typed.breaking or typed.type in _LISTED or typed.type in _UNLISTED:
        return typed
    return None


def _write(commit: Commit, typed: ConventionalCommit | None, *, lists_prose: bool) -> Entry | None:
    if typed is None:
        return _make(commit, "Other", commit.subject, "patch") if lists_prose else None
    if typed.type not in _LISTED and not typed.breaking:
        return None
    section, bump = _LISTED.get(typed.type, ("Changed", "patch"))
    text = f"{typed.description}: {typed.breaking_note}" if typed.breaking_note else typed.description
    return _make(commit, section, text, "major" if typed.breaking else bump, typed.scope, breaking=typed.breaking)


def _make(commit: Commit, section: str, text: str, bump: Bump, scope: str = "", *, breaking: bool = False) -> Entry:
    return Entry(
        id=commit.short,
        section=section,
        text=clean_text(text),
        sources=(commit.short,),
        bump=bump,
        scope=clean_text(scope),
        breaking=breaking,
        reason=clean_text(commit.subject),
    )


def _name_prose(prose: Sequence[Commit]) -> list[str]:
    if not prose:
        return []
    shown = "; ".join(f"{commit.short} {clean_text(commit.subject)}" for commit in prose[:_SHOWN])
    more = f" and {len(prose) - _SHOWN} more" if len(prose) > _SHOWN else ""
    return [f"Not listed, because they follow no convention: {shown}{more}."]
