"""The version that people have announced already: "docs(blog): what is new in 1.2.0", written before the release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from perdure.rules.git_commits import Commit
from perdure.rules.release.bump import Last
from perdure.rules.release.commit_types import is_shipped
from perdure.rules.release.conventional import parse_conventional
from perdure.rules.release.release_commits import is_release_commit
from perdure.rules.release.reverts import cancel_reverts
from perdure.rules.release.versions import BUMPS, VersionScheme

_LONGEST = 200
_TELLING = re.compile(
    r"what(?:['’]s| is) new|\b(?:highlights?|announc\w+|release notes|(?:blog|release) posts?|changelog)\b",
    re.IGNORECASE,
)
"""Words for readers of a release. Notes on moving to a version do not count: they may be written years before."""
_VERSION = re.compile(r"(?<![\w.])(?:v|[\w-]+@)?(?P<version>\d+(?:\.\d+)+)(?![\w+-]|\.\w)")


def find_named(commits: Sequence[Commit], last: Last, scheme: VersionScheme) -> tuple[str, Commit] | None:
    """Return (version, the newest commit that names it) when ``commits`` announce exactly one of the next versions.

    It must be one step above the last final release, whatever the changes call for: whoever announced it knew them.
    ``None`` where nothing is announced, two versions are, or versions are days.
    """
    if scheme.name == "calver" or not last.version or not scheme.is_final(last.version):
        return None
    following = {scheme.bump(last.version, step) for step in BUMPS}
    undone = cancel_reverts(commits).ids
    told = [(one, version) for one in commits if one.id not in undone for version in _read(one) if version in following]
    return (told[0][1], told[0][0]) if len({version for _, version in told}) == 1 else None


def _read(commit: Commit) -> Iterator[str]:
    """The versions that a subject announces; none where it moves a dependency or is itself a release commit."""
    subject = commit.subject
    if commit.is_merge or len(subject) > _LONGEST or not _TELLING.search(subject) or is_release_commit(subject):
        return
    typed = parse_conventional(subject)
    if typed is None or not is_shipped(typed.type, typed.scope, typed.description):
        yield from (match["version"] for match in _VERSION.finditer(subject))
