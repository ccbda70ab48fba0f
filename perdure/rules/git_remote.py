"""Where a branch's remote stands: what it has now, and whether a release could be pushed there."""

from __future__ import annotations

from dataclasses import dataclass, field

from perdure.errors import UserError
from perdure.rules.git_branch import find_fetched, reaches
from perdure.workspace.git import GitError, Repository
from perdure.workspace.refs import short_ref
from perdure.workspace.remotes import Remote, find_remote, read_remote_refs

DEFAULT_REMOTE = "origin"


@dataclass(frozen=True)
class RemoteState:
    """A remote as it is now; all empty for a release that stays local."""

    name: str = ""
    url: str = ""
    """Without user info."""
    refs: dict[str, str] = field(default_factory=dict)
    """Object id by full ref name: branches and tags."""
    finding: str = ""


def read_remote(repository: Repository, name: str) -> RemoteState:
    """Ask the remote ``name`` what it has. Without a name, or without a configured ``origin``: local only.

    Raises:
        UserError: another name than ``origin`` is not configured, or the remote does not answer.
    """
    if not name:
        return RemoteState()
    remote = find_remote(repository, name)
    if remote is None:
        if name != DEFAULT_REMOTE:
            raise UserError(
                f"There is no remote {name!r} in {repository.place}. "
                f"Add it (`git remote add {name} <url>`), or give remote='' to release locally."
            )
        return RemoteState(finding="No remote 'origin' is configured: this release stays local.")
    return RemoteState(remote.name, remote.url, _ask(remote))


def _ask(remote: Remote) -> dict[str, str]:
    try:
        return read_remote_refs(remote)
    except GitError as error:
        said = error.stderr.splitlines()[0] if error.stderr else error.message
        # Git leaves user info out of what it says; this line keeps it out should some transport not.
        said = said.replace(remote.secret_url, remote.url) if remote.secret_url else said
        raise UserError(
            f"Remote {remote.name!r} ({remote.url}) cannot be read: {said}. "
            f"Check `git ls-remote {remote.name}`, or give remote='' to release locally."
        ) from None


def refuse_behind(
    repository: Repository, remote: RemoteState, ref: str, head: str, *, follows: bool = False, offered: str = ""
) -> None:
    """Stop when the remote's branch holds commits that ``head`` does not: a leased push would throw them away.

    ``follows``: the plan begins at the remote's branch as it was fetched last. ``offered``: the input that makes it so.

    Raises:
        UserError: says how to get them; of branches that have parted, that they have.
    """
    there = remote.refs.get(ref)
    if there is None or there == head or reaches(repository, head, there):
        return
    branch, ours = short_ref(ref), repository.resolve(ref) or head
    told = f"{remote.name}/{branch} ({there[:7]}) has commits that {branch} ({ours[:7]}) does not"
    fetched = find_fetched(repository, ref, remote.name)
    has_parted = fetched is not None and not reaches(repository, fetched, ours)
    advice = _advise(remote, branch, follows=follows, has_parted=has_parted)
    if offered and not follows and not has_parted:
        advice += f" {offered} plans from {remote.name}/{branch} and leaves your branch as it is."
    raise UserError(f"{told}{', and the other way round' if has_parted else ''}. {advice}")


def _advise(remote: RemoteState, branch: str, *, follows: bool, has_parted: bool) -> str:
    if has_parted:
        return f"Bring them together (`git pull --rebase {remote.name} {branch}`), then try again."
    if follows:
        return f"Run `git fetch --tags {remote.name}`, then try again: your branch and checkout stay as they are."
    return f"Run `git pull {remote.name} {branch}`, then try again."
