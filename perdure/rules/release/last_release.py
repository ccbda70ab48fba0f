"""Which release came last: among the tags that match the form as a whole, by version and by reach."""

from __future__ import annotations

from dataclasses import dataclass, replace

from perdure.errors import UserError
from perdure.rules.git_branch import list_refs
from perdure.rules.git_remote import RemoteState
from perdure.rules.release.tags import (
    ReleaseTag,
    TagForm,
    find_foreign_candidates,
    find_release_tags,
    refuse_unmatched,
)
from perdure.rules.release.versions import VersionScheme
from perdure.workspace.git import GitError, Repository

_SHOWN_TAGS = 5


@dataclass(frozen=True)
class LastRelease:
    """The release that the range begins after."""

    tag: str = ""
    version: str = ""
    commit: str = ""
    """The commit that the range excludes: the tag's, or where an unreachable tag's history parts from ours."""
    candidate: str = ""
    """Version of a reachable pre-release above it; empty when there is none."""
    finding: str = ""
    line_commit: str = ""
    """The commit of the first pre-release of that one's line: there somebody chose the line; the rest is counting."""


def find_last_release(
    repository: Repository,
    head: str,
    names: list[str],
    form: TagForm,
    scheme: VersionScheme,
    *,
    starts_anew: bool,
    merged: set[str] | None = None,
    said: tuple[str, str] = ("", ""),
) -> LastRelease:
    """Return the release that ``head`` builds on: the highest final version among matching tags that it reaches.

    Pre-releases count only where there is no final one. A nearer tag does not count before a higher version.
    ``starts_anew``: a version was given, so tags that match nothing are no reason to ask. ``merged``: full names of the
    tags that ``head`` reaches, for callers that ask about many packages. ``said``: the tag form that the project's
    settings name, and their file.

    Raises:
        UserError: tags look like versions but none matches, or the releases share no history with ``head``.
    """
    matching = find_release_tags(names, form, scheme)
    if not matching:
        if not starts_anew:
            refuse_unmatched(names, form, scheme, said)
        return LastRelease()
    merged = list_merged(repository, head) if merged is None else merged
    reached = [tag for tag in matching if f"refs/tags/{tag.name}" in merged]
    if not reached:
        return _meet_unreachable(repository, head, _highest(matching, scheme), form)
    last = _highest(reached, scheme)
    found = LastRelease(last.name, last.version, _tag_commit(repository, last))
    above = _list_candidates([name for name in names if f"refs/tags/{name}" in merged], form, scheme)
    above = [tag for tag in above if scheme.key(tag.version) > scheme.key(last.version)]
    if not above:
        return found
    newest = above[0]
    first = [tag for tag in above if scheme.final(tag.version) == scheme.final(newest.version)][-1]
    told = f"{newest.name} is read as the pre-release {newest.version}; scheme='pep440' would write it so."
    return replace(
        found,
        candidate=newest.version,
        line_commit=_tag_commit(repository, first),
        finding="" if scheme.is_legal(form.read(newest.name)) else told,
    )


def _list_candidates(names: list[str], form: TagForm, scheme: VersionScheme) -> list[ReleaseTag]:
    """Pre-releases that lead to a final version, highest first; Python's among semantic versions too."""
    own = [tag for tag in find_release_tags(names, form, scheme) if scheme.is_candidate(tag.version)]
    every = [*own, *find_foreign_candidates(names, form, scheme)]
    return sorted(every, key=lambda tag: scheme.key(tag.version), reverse=True)


def list_merged(repository: Repository, head: str) -> set[str]:
    """Full names of the tags that ``head`` reaches."""
    return set(list_refs(repository, "refs/tags", f"--merged={head}"))


def _highest(tags: list[ReleaseTag], scheme: VersionScheme) -> ReleaseTag:
    """The highest final version, else the highest candidate, else the highest of all. ``tags``: highest first."""
    finals = [tag for tag in tags if scheme.is_final(tag.version)]
    candidates = [tag for tag in tags if scheme.is_candidate(tag.version)]
    return (finals or candidates or tags)[0]


def _tag_commit(repository: Repository, tag: ReleaseTag) -> str:
    name = f"refs/tags/{tag.name}^{{commit}}"
    return repository.read("rev-parse", "--verify", "--end-of-options", name).decode("ascii").strip()


def _meet_unreachable(repository: Repository, head: str, tag: ReleaseTag, form: TagForm) -> LastRelease:
    """Begin at the merge base of an unreachable release, and say so; never at the root in silence."""
    try:
        base = repository.read("merge-base", head, _tag_commit(repository, tag)).decode("ascii").split()[0]
    except GitError as error:
        raise UserError(
            f"The last release {tag.name} cannot be compared with this branch ({_first_line(error)}). "
            f"Release from the branch that holds it, or give another tag form than '{form}'."
        ) from None
    finding = (
        f"No release tag is reachable from {head[:7]}. The range begins at {base[:7]}, "
        f"where this branch parts from {tag.name}."
    )
    return LastRelease(tag.name, tag.version, base, finding=finding)


def _first_line(error: GitError) -> str:
    return error.stderr.splitlines()[0] if error.stderr else "they share no history"


def refuse_unknown_releases(
    remote: RemoteState, names: list[str], last: LastRelease, form: TagForm, scheme: VersionScheme
) -> None:
    """Stop when the remote has newer releases than this clone knows: the last release would be wrong.

    Raises:
        UserError: names them and says how to fetch them.
    """
    there = [ref.removeprefix("refs/tags/") for ref in remote.refs if ref.startswith("refs/tags/")]
    unknown = find_release_tags(set(there) - set(names), form, scheme)
    newer = [
        tag.name
        for tag in unknown
        if (scheme.is_final(tag.version) or scheme.is_candidate(tag.version))
        and (not last.version or scheme.key(tag.version) > scheme.key(last.version))
    ]
    if newer:
        raise UserError(
            f"{remote.name} has releases that this clone does not know: {', '.join(newer[:_SHOWN_TAGS])}. "
            f"Run `git fetch --tags {remote.name}`, then try again."
        )
