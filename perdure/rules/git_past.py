"""Earlier releases of a branch, read for what they show of its habits; bounded, so that no history is too long."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import pairwise

from perdure.errors import UserError
from perdure.rules.git_branch import list_refs
from perdure.rules.git_commits import Commit, read_commits, read_tag_commits
from perdure.rules.git_tree import CommitTree
from perdure.rules.release.calver import DatedVersion, guess_pattern
from perdure.rules.release.changelog_files import read_released
from perdure.rules.release.habits import PastRelease
from perdure.rules.release.last_release import LastRelease
from perdure.rules.release.tags import ReleaseTag, TagForm, find_release_tags
from perdure.rules.release.versions import Bump, VersionScheme, is_zero_major
from perdure.workspace.git import Repository

_MOST_RELEASES = 40
_MOST_COMMITS = 4000
_MOST_SECTIONS = 20
"""More than the habits look at: sections of pre-releases and of other branches stand between."""


def read_past_releases(
    repository: Repository, names: Sequence[str], last: LastRelease, form: TagForm, scheme: VersionScheme, path: str
) -> list[PastRelease]:
    """Return the releases up to ``last``, oldest first, each with the commits since the one before it.

    Only final releases that ``last`` builds on count, and only the latest of them: at most 40 releases and 4,000
    commits are read. Empty before the first two releases.
    """
    if not last.commit:
        return []
    merged = set(list_refs(repository, "refs/tags", f"--merged={last.commit}"))
    tags = [tag for tag in find_release_tags(names, form, scheme) if scheme.is_final(tag.version)]
    reached = [tag for tag in tags if f"refs/tags/{tag.name}" in merged][: _MOST_RELEASES + 1]
    at = read_tag_commits(repository)
    return _split(_read(repository, last.commit, reached, at, path), reached[::-1], at, last, scheme)


def read_past_sections(repository: Repository, head: str, path: str) -> dict[str, list[str]]:
    """Return the items of the changelog's latest sections in ``head``, by version; empty where they cannot be read.

    Why they cannot is told by the source that the changelog is written after.
    """
    try:
        return read_released(CommitTree(repository, head, path), _MOST_SECTIONS)
    except UserError:
        return {}


def read_pattern(repository: Repository, names: Sequence[str], form: TagForm, scheme: VersionScheme) -> str:
    """Return the calendar pattern that the releases' tags show; empty for other schemes and when they show none."""
    if scheme.name != "calver":
        return ""
    template = "--format=%(refname:strip=2)%00%(creatordate:short)"
    listed = repository.read("for-each-ref", template, "refs/tags").decode("utf-8", "surrogateescape").split("\n")
    days = dict(line.split("\0") for line in listed if line)
    finals = [tag for tag in find_release_tags(names, form, scheme) if scheme.is_final(tag.version)]
    return guess_pattern(
        [DatedVersion(tag.version, date.fromisoformat(days[tag.name])) for tag in finals if days[tag.name]]
    )


def _read(
    repository: Repository, head: str, reached: Sequence[ReleaseTag], at: dict[str, str], path: str
) -> list[Commit]:
    """The commits since the oldest of the releases, newest first, cut after so many."""
    if len(reached) < 2:
        return []
    return read_commits(repository, head, since=at.get(reached[-1].name, ""), path=path, most=_MOST_COMMITS)


def _split(
    commits: Sequence[Commit],
    releases: Sequence[ReleaseTag],
    at: dict[str, str],
    last: LastRelease,
    scheme: VersionScheme,
) -> list[PastRelease]:
    """Give each commit to the oldest release that reaches it. What the cut may have shortened is left out."""
    by_id = {commit.id: commit for commit in commits}
    is_cut = len(commits) == _MOST_COMMITS
    place = {commit.id: number for number, commit in enumerate(commits)}
    taken: set[str] = set()
    past: list[PastRelease] = []
    for before, release in pairwise(releases):
        own = _reach(at.get(release.name, ""), by_id, taken)
        taken |= own
        step = find_step(before.version, release.version, scheme)
        if own and not (is_cut and at.get(before.name, "") not in by_id):
            ordered = sorted((by_id[name] for name in own), key=lambda commit: place[commit.id])
            is_alike = is_zero_major(scheme, before.version) == is_zero_major(scheme, last.version)
            past.append(PastRelease(ordered, step, is_alike, release.version))
    return past


def _reach(start: str, by_id: dict[str, Commit], taken: set[str]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in by_id and name not in seen and name not in taken:
            seen.add(name)
            waiting.extend(by_id[name].parents)
    return seen


def find_step(before: str, after: str, scheme: VersionScheme) -> Bump:
    """Return the step between two final versions: the highest number that differs, beyond the third a patch."""
    old, new = scheme.release(before), scheme.release(after)
    steps: tuple[Bump, ...] = ("major", "minor", "patch")
    return next((step for step, one, other in zip(steps, old, new, strict=False) if one != other), "patch")
