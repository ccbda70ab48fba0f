"""Git directories of our own, borrowing somebody's objects: for drafts, exports and writing exact bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from perdure.workspace.git import Repository
from perdure.workspace.git_process import GitError, run_git
from perdure.workspace.view import borrow_objects, write_git_dir

RAW_ATTRIBUTES = "* -text -filter -ident -working-tree-encoding -eol -diff -merge\n"
"""Before every attribute that a repository brings: bytes go in and out exactly as they are, no filter is looked up."""


ABSENT = "000000"
"""Git's mode for "nothing there"."""


@dataclass(frozen=True)
class RawChange:
    """One path that differs, as git's ``--raw`` says it."""

    path: bytes
    old_mode: str
    new_mode: str
    old_id: str
    new_id: str
    status: str
    """A, D, M or T (another type)."""


def parse_raw(listed: bytes) -> list[RawChange]:
    """Parse ``--raw -z --no-abbrev --no-renames``."""
    fields = listed.split(b"\0")
    found = []
    for meta, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_id, new_id, status = meta.decode("ascii").lstrip(":").split(" ")
        found.append(RawChange(path, old_mode, new_mode, old_id, new_id, status))
    return found


def make_private(folder: Path, repository: Repository, *, settings: Mapping[str, str] | None = None) -> Path:
    """Make a git directory at ``folder`` that reads ``repository``'s objects and keeps new ones to itself.

    Bytes go in and out raw, unless ``settings`` give the rules of a work tree (``config.CONTENT_KEYS``).
    """
    raw = {"core.autocrlf": "false", "core.symlinks": "true", "core.filemode": "true"}
    chosen = {"core.bare": "false", **(raw if settings is None else settings)}
    write_git_dir(folder, object_format=repository.object_format, head="ref: refs/heads/draft", settings=chosen)
    (folder / "refs" / "heads").mkdir(parents=True)
    if settings is None:
        (folder / "info" / "attributes").write_text(RAW_ATTRIBUTES, encoding="ascii")
    borrow_objects(folder, repository.common_dir / "objects")
    if repository.is_shallow:
        (folder / "shallow").write_bytes((repository.common_dir / "shallow").read_bytes())
    return folder


def take_pack(git_dir: Path, pack: bytes) -> None:
    """Put a pack's objects into ``git_dir``, checking each of them. The same pack twice changes nothing."""
    run_git(git_dir, "unpack-objects", "-q", "--strict", stdin=pack)


def check_out(git_dir: Path, commit: str, folder: Path) -> None:
    """Write the files of ``commit`` into the empty ``folder`` and ``git_dir``'s index, raw.

    Git refuses paths that would leave the folder or reach a ``.git``, and never writes through a link.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run_git(git_dir, "read-tree", commit)
    # -u notes times and sizes in the index, so that a later look need not read every file.
    run_git(git_dir, "checkout-index", "-a", "-u", "-q", env=work_tree(folder), cwd=folder)


def work_tree(folder: Path) -> Mapping[str, str]:
    """The environment that tells git where the files are; they are never searched for."""
    return {"GIT_WORK_TREE": str(folder)}


def write_object(git_dir: Path, kind: str, data: bytes) -> str:
    """Write one object into ``git_dir`` and return its id."""
    return run_git(git_dir, "hash-object", "-t", kind, "-w", "--stdin", stdin=data).decode().strip()


def read_blobs(git_dir: Path, ids: Iterable[str]) -> dict[str, bytes]:
    """Return the bytes of many blobs by id, with one process.

    Raises:
        GitError: one of them is not there.
    """
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    out = run_git(git_dir, "cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in wanted).encode())
    found: dict[str, bytes] = {}
    at = 0
    for oid in wanted:
        head, _, _ = out[at : at + 200].partition(b"\n")
        if not head.startswith(f"{oid} blob ".encode()):
            raise GitError(f"The file content {oid[:7]} is not in the repository ({head.decode('utf-8', 'replace')}).")
        start = at + len(head) + 1
        size = int(head.rpartition(b" ")[2])
        found[oid] = out[start : start + size]
        at = start + size + 1
    return found


def signature_environment(name: str, email: str, at: datetime) -> dict[str, str]:
    """Who and when, as git wants it: the same inputs give the same object ids."""
    when = f"@{int(at.timestamp())} +0000"
    return {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", name), ("EMAIL", email), ("DATE", when))
    }
