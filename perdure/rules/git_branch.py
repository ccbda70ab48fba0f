"""The branch that a job works on, and whether its repository is ready for a commit."""

from __future__ import annotations

import difflib

from perdure.errors import UserError
from perdure.workspace.git import Repository, identity
from perdure.workspace.refs import full_ref, is_ref, short_ref

_SHOWN_FILES = 5


def find_branch(repository: Repository, name: str, follow: str = "") -> tuple[str, str]:
    """Return (full ref, commit) of the branch to release: ``name``, or the one that HEAD is on.

    ``follow`` names a remote whose branch of that name is taken, as it was fetched last, where ours is only behind it:
    for plans that leave our branch and its checkout alone.

    Raises:
        UserError: HEAD is detached, the branch is not there, or it has no commit yet.
    """
    head_ref = repository.head_ref()
    if not name and head_ref is None:
        raise UserError(
            f"HEAD is detached at {repository.head_text()[:7]} in {repository.place}: there is no branch to release. "
            "Check one out (`git switch main`)."
        )
    ref = full_ref("heads", name) if name else head_ref or ""
    commit = repository.resolve(ref)
    if commit is not None:
        return ref, _follow(repository, ref, commit, follow) if follow else commit
    if ref == head_ref:
        raise UserError(f"Branch {short_ref(ref)!r} of {repository.place} has no commit yet. Commit something first.")
    known = [short_ref(other) for other in list_refs(repository, "refs/heads")]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Known branches: {', '.join(known) or 'none'}."
    raise UserError(f"There is no branch {name!r} in {repository.place}. {hint}")


def _follow(repository: Repository, ref: str, commit: str, remote: str) -> str:
    there = find_fetched(repository, ref, remote)
    return there if there and reaches(repository, there, commit) else commit


def find_fetched(repository: Repository, ref: str, remote: str) -> str | None:
    """Return where a remote's branch was when it was fetched last; ``None`` when it never was."""
    fetched = f"refs/remotes/{remote}/{short_ref(ref)}"
    return repository.resolve(fetched) if is_ref(fetched) else None


def reaches(repository: Repository, head: str, commit: str) -> bool:
    """Whether both are here and ``commit`` is an ancestor of ``head``, or the same."""
    asked = f"{head}\n{commit}\n".encode()
    found = repository.read("cat-file", "--batch-check=%(objecttype)", stdin=asked).split(b"\n")
    if found[:2] != [b"commit", b"commit"]:
        return False
    return not repository.read("rev-list", "--max-count=1", commit, f"^{head}").strip()


def refuse_unready(repository: Repository) -> None:
    """Stop where a release would be wrong or could not be committed.

    Raises:
        UserError: a shallow clone, uncommitted changes, or nobody to commit as.
    """
    if repository.is_shallow:
        raise UserError(
            f"{repository.place} is a shallow clone: its history is cut, and the last release may lie beyond the cut. "
            "Run `git fetch --unshallow --tags`, then try again."
        )
    dirty = repository.is_dirty()
    if dirty:
        shown = ", ".join(dirty[:_SHOWN_FILES]) + (
            f" and {len(dirty) - _SHOWN_FILES} more" if len(dirty) > _SHOWN_FILES else ""
        )
        raise UserError(
            f"{repository.place} has uncommitted changes to tracked files: {shown}. "
            "Commit them, or put them aside (`git stash`), then try again."
        )
    if identity(repository) is None:
        raise UserError(
            f"Nobody to commit as: {repository.place} and your own git configuration name no user. "
            'Run `git config user.name "…"` and `git config user.email "…"`.'
        )


def list_tags(repository: Repository) -> list[str]:
    """Return the names of all tags, sorted; names that git would not allow (crafted files) are left out."""
    return [short_ref(ref) for ref in list_refs(repository, "refs/tags")]


def list_refs(repository: Repository, under: str, *options: str) -> list[str]:
    """Return full names of the refs beneath ``under``, sorted; ``options`` are those of ``for-each-ref``."""
    listed = repository.read("for-each-ref", "--format=%(refname)", *options, under)
    return sorted(ref for ref in listed.decode("utf-8", "surrogateescape").split("\n") if is_ref(ref))
