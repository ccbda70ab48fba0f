"""Releases that the range itself announces although no tag that it reaches names them.

A release branch that was rebased or squashed leaves its tag on a commit beside this history; a release made by hand may
have no tag at all. Either way its release commit stands in the range, and numbering goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perdure.rules.git_commits import Commit
from perdure.rules.release.bump import ask_to_leave, leaves_initial_development
from perdure.rules.release.last_release import LastRelease
from perdure.rules.release.release_commits import is_release_commit, read_announcement
from perdure.rules.release.reverts import cancel_reverts
from perdure.rules.release.tags import TagForm
from perdure.rules.release.versions import BUMPS, VersionScheme, is_zero_major


def begin_at_announced(
    last: LastRelease, commits: Sequence[Commit], names: Sequence[str], form: TagForm, scheme: VersionScheme
) -> tuple[LastRelease, list[Commit]]:
    """Return (last release, commits since it): moved on to the newest release that ``commits`` (newest first) announce.

    An announced version counts when its tag exists, or when it is the very next step. One without a tag does not count
    when nothing came after it: then it is this release that somebody has begun by hand. It does not end
    0.x either: it is named.
    """
    last = _name_leaving(last, commits, names, form, scheme)
    found = _find_announced(last, commits, set(names), form, scheme)
    if found is None:
        return last, list(commits)
    commit, version = found
    tag = form.write(version)
    is_tagged = tag in names
    rest = _without_ancestors(commits, commit)
    if not is_tagged and all(one.is_merge or is_release_commit(one.subject) for one in rest):
        return last, list(commits)
    told = f"{tag} is not reachable from this branch, but" if is_tagged else "No tag names it, but"
    finding = f"{told} {commit.short} announces {version}: the range begins after it."
    moved = replace(last, tag=tag if is_tagged else last.tag, version=version, commit=commit.id)
    return replace(moved, finding=" ".join(filter(None, (last.finding, finding)))), rest


def _find_announced(
    last: LastRelease, commits: Sequence[Commit], names: set[str], form: TagForm, scheme: VersionScheme
) -> tuple[Commit, str] | None:
    if not last.version or not scheme.is_final(last.version):
        return None
    undone = cancel_reverts(commits).ids
    found, reached = None, last.version
    for commit in reversed(commits):
        said = "" if commit.is_merge or commit.id in undone else read_announcement(commit.subject) or ""
        version = form.read(said) or said
        if not scheme.is_legal(version) or not scheme.is_final(version):
            continue
        is_next = scheme.name != "calver" and version in [scheme.bump(reached, step) for step in BUMPS]
        is_next = is_next and not leaves_initial_development(version, last.version, scheme)
        if scheme.key(version) > scheme.key(reached) and (is_next or form.write(version) in names):
            found, reached = (commit, version), version
    return found


def _name_leaving(
    last: LastRelease, commits: Sequence[Commit], names: Sequence[str], form: TagForm, scheme: VersionScheme
) -> LastRelease:
    """Ask, when a commit announces a version beyond 0.x that no tag names."""
    if not last.version or not is_zero_major(scheme, last.version):
        return last
    undone = cancel_reverts(commits).ids
    for commit in commits:
        said = "" if commit.is_merge or commit.id in undone else read_announcement(commit.subject) or ""
        version = form.read(said) or said
        if leaves_initial_development(version, last.version, scheme) and form.write(version) not in names:
            told = f"{commit.short} announces {version} and no tag names it; {last.version} is still the last release."
            finding = f"{told} {ask_to_leave(scheme.final(version))}"
            return replace(last, finding=" ".join(filter(None, (last.finding, finding))))
    return last


def _without_ancestors(commits: Sequence[Commit], start: Commit) -> list[Commit]:
    parents = {commit.id: commit.parents for commit in commits}
    seen: set[str] = set()
    waiting = [start.id]
    while waiting:
        name = waiting.pop()
        if name in parents and name not in seen:
            seen.add(name)
            waiting.extend(parents[name])
    return [commit for commit in commits if commit.id not in seen]
