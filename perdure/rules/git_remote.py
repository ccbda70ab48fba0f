"""Where a branch's remote stands: what it has now, and whether a release could be pushed there."""

from __future__ import annotations

from dataclasses import dataclass, field

from perdure.errors import UserError
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


def refuse_behind(repository: Repository, remote: RemoteState, ref: str, head: str) -> None:
    """Stop when the remote's branch holds commits that ``head`` does not: a leased push would throw them away.

    Raises:
        UserError: says how to get them.
    """
    there = remote.refs.get(ref)
    if there is None or there == head or _reaches(repository, head, there):
        return
    branch = short_ref(ref)
    raise UserError(
        f"{remote.name}/{branch} ({there[:7]}) has commits that {branch} ({head[:7]}) does not. "
        f"Run `git pull {remote.name} {branch}`, then try again."
    )


def _reaches(repository: Repository, head: str, commit: str) -> bool:
    """Whether ``commit`` is here and an ancestor of ``head``."""
    found = repository.read("cat-file", "--batch-check=%(objecttype)", stdin=f"{commit}\n".encode())
    if found.strip() != b"commit":
        return False
    return not repository.read("rev-list", "--max-count=1", commit, f"^{head}").strip()
