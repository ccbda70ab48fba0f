"""Which releases a project decided by its commits, told by its history up to each of them and by nothing after it.

A release counts when all of this holds:

* it is the next one: its version is one patch, minor or major step above the last (no number was passed over);
* at least four of five commits in its range say their type, merges and release commits not counted;
* of the latest eight earlier releases of which both is true (there are at least three), at least three of four took the
  step that the types call for, or within 0.x the one below it (a breaking change minor, a feature patch).

Whether the release itself followed its commits is not asked: one that did not is a disagreement like any other. So the
years before a project took up the convention, jumps by hand, lost tags and projects that number by other reasons are
left out, and a project that changes its mind is counted until its releases show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.release.series import Pair
from perdure.rules.git_commits import Commit
from perdure.rules.git_past import find_step
from perdure.rules.release.conventional import parse_conventional
from perdure.rules.release.release_commits import read_announcement
from perdure.rules.release.versions import BUMPS, Bump, VersionScheme, is_zero_major

_TYPED = (4, 5)
_WINDOW = 8
_FEWEST = 3
_KEPT = (3, 4)


@dataclass(frozen=True)
class Telling:
    """What one release tells of how the project decides."""

    is_next: bool = False
    is_typed: bool = False
    is_kept: bool = False
    """Whether its step is the one that the types call for, or within 0.x the one below it."""


def tell(pair: Pair, commits: Sequence[Commit], scheme: VersionScheme) -> Telling:
    """Read what a release tells; ``commits`` are those of its range."""
    if scheme.name == "calver":
        return Telling()
    last, target = pair.last.version, pair.target.version
    wanted = plain_step(commits)
    softened = BUMPS[max(BUMPS.index(wanted) - 1, 0)] if is_zero_major(scheme, last) else wanted
    return Telling(
        is_next=any(scheme.key(scheme.bump(last, step)) == scheme.key(target) for step in BUMPS),
        is_typed=_is_typed(commits),
        is_kept=find_step(last, target, scheme) in (wanted, softened),
    )


def find_deciding(told: Sequence[Telling]) -> list[bool]:
    """Return of each release, oldest first, whether the project decided it by its commits."""
    kept: list[bool] = []
    deciding = []
    for one in told:
        latest = kept[-_WINDOW:]
        is_known = len(latest) >= _FEWEST and sum(latest) * _KEPT[1] >= len(latest) * _KEPT[0]
        counts = one.is_next and one.is_typed
        deciding.append(counts and is_known)
        kept += [one.is_kept] if counts else []
    return deciding


def plain_step(commits: Sequence[Commit]) -> Bump:
    """The step by the specification alone: breaking is major, ``feat`` is minor, everything else a patch."""
    typed = [found for commit in commits if (found := parse_conventional(commit.message))]
    steps: list[Bump] = ["major" if one.breaking else "minor" if one.type == "feat" else "patch" for one in typed]
    return max(steps, key=BUMPS.index, default="patch")


def _is_typed(commits: Sequence[Commit]) -> bool:
    told = [one for one in commits if not one.is_merge and one.subject and read_announcement(one.subject) is None]
    typed = sum(parse_conventional(commit.message) is not None for commit in told)
    return bool(told) and typed * _TYPED[1] >= len(told) * _TYPED[0]
