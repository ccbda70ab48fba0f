"""Private copies of a repository's content: a draft that is written to, an export that commands may ruin."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from perdure.contracts.base import BlobRef, JsonDict, path_bytes, path_text
from perdure.contracts.plan import FileChange
from perdure.effects.base import Blobs
from perdure.errors import StageFailed, UserError
from perdure.workspace.beneath import Entry, read_entry, write_entry
from perdure.workspace.git import Repository
from perdure.workspace.git_process import run_git
from perdure.workspace.private import (
    ABSENT,
    check_out,
    make_private,
    parse_raw,
    read_blobs,
    signature_environment,
    take_pack,
    work_tree,
    write_object,
)
from perdure.workspace.signing import Signer, find_signer, signed_commit
from perdure.workspace.view import write_git_dir

_REGULAR = ("100644", "100755")


@dataclass(frozen=True)
class _Changed:
    """One path of the draft that differs from the base."""

    path: bytes
    old_mode: str
    old_id: str
    new: Entry | None


class DraftCopy:
    """A private workspace on a base commit. Implements ``rules.base.DraftSpace``."""

    def __init__(self, repository: Repository, base: str, folder: Path) -> None:
        """``folder`` holds ``git`` and ``tree``, as :func:`open_draft` made them."""
        self._repository = repository
        self._base = base
        self._git_dir = folder / "git"
        self._root = folder / "tree"
        self._list = folder / "written"
        self._written = set(self._list.read_bytes().split(b"\0")) - {b""} if self._list.exists() else set()

    @property
    def root(self) -> Path:
        """The folder with the files."""
        return self._root

    def read(self, path: str) -> bytes | None:
        """A regular file's bytes; ``None`` when absent. Raises ``UserError`` for a link or a path that leaves."""
        found = read_entry(self._root, path_bytes(path))
        if found is not None and found.mode not in _REGULAR:
            raise UserError(f"{path} is no regular file (mode {found.mode}); links are not followed.")
        return None if found is None else found.data

    def write(self, path: str, data: bytes) -> None:
        """Replace a regular file's bytes, keeping its mode; a new file is 0644. Links are never followed."""
        raw = path_bytes(path)
        found = read_entry(self._root, raw)
        if found is not None and found.mode not in _REGULAR:
            raise UserError(f"{path} is no regular file (mode {found.mode}) and is not replaced.")
        if not write_entry(self._root, raw, found.mode if found else "100644", data, expected=found):
            raise StageFailed(f"{path} was changed by somebody else while the draft wrote it. Draft again.")
        self._written.add(raw)
        self._list.write_bytes(b"\0".join(sorted(self._written)))

    def changes(self, blobs: Blobs) -> list[FileChange]:
        """What differs from the base, sorted by path; contents lie in ``blobs``.

        Files that the base's ``.gitignore`` leaves out do not count unless they were written by :meth:`write`.

        Raises:
            StageFailed: the workspace holds a repository or something else that cannot be committed.
        """
        return self._file_changes(self._find_changes(), blobs)

    def commit(self, message: str, identity: tuple[str, str], at: datetime, blobs: Blobs) -> JsonDict:
        """Build the commit on the base; the same content, message, identity and time give the same id.

        Returns the draft stage's value: repository, base, commit, tree, pack (every new object), identity, at, changes,
        message, signed_with (the key's name; whether to sign is git's setting). Nothing outside the workspace and
        ``blobs`` is written.
        """
        changed = self._find_changes()
        tree = self._write_tree(changed)
        env = signature_environment(*identity, at)
        text = _message_bytes(message)
        args = ("commit-tree", tree, "-p", self._base, "-F", "-")
        commit = run_git(self._git_dir, *args, stdin=text, env=env).decode().strip()
        signer = find_signer(self._repository, "commit.gpgsign")
        if signer is not None:
            commit = self._sign(commit, signer)
        return {
            "repository": str(self._repository.place),
            "base": self._base,
            "commit": commit,
            "tree": tree,
            "pack": blobs.put(self._pack(commit)).model_dump(mode="json"),
            "identity": {"name": identity[0], "email": identity[1]},
            "at": at.astimezone(UTC).isoformat(),
            "changes": [change.model_dump(mode="json") for change in self._file_changes(changed, blobs)],
            "message": message,
            "signed_with": signer.key if signer else "",
        }

    def _sign(self, commit: str, signer: Signer) -> str:
        data = run_git(self._git_dir, "cat-file", "commit", commit)
        return write_object(self._git_dir, "commit", signed_commit(data, self._repository.object_format, signer))

    def _find_changes(self) -> list[_Changed]:
        env, root = work_tree(self._root), self._root
        run_git(self._git_dir, "update-index", "-q", "--refresh", env=env, cwd=root, codes=(0, 1))
        args = ("diff-files", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--ignore-submodules=all")
        raw = parse_raw(run_git(self._git_dir, *args, env=env, cwd=root))
        found = [self._changed(item.path, item.old_mode, item.old_id, is_gone=item.status == "D") for item in raw]
        found += [self._changed(path, ABSENT, "") for path in self._new_paths()]
        return sorted(found, key=lambda item: item.path)

    def _new_paths(self) -> set[bytes]:
        env = work_tree(self._root)
        args = ("ls-files", "-o", "-z", "--exclude-standard")
        listed = set(run_git(self._git_dir, *args, env=env, cwd=self._root).split(b"\0")) - {b""}
        tracked = set(run_git(self._git_dir, "ls-files", "-z", env=env, cwd=self._root).split(b"\0"))
        return listed | (self._written - tracked)

    def _changed(self, path: bytes, old_mode: str, old_id: str, *, is_gone: bool = False) -> _Changed:
        if path.endswith(b"/"):
            raise StageFailed(
                f"The draft holds a git repository inside itself ({path.decode('utf-8', 'replace')}): its content "
                "would be lost in a commit. Remove its .git, or keep it out of the draft."
            )
        entry = None if is_gone else read_entry(self._root, path)
        if entry is not None and entry.mode == "other":
            raise StageFailed(f"{path_text(path)} is a folder, pipe or device and cannot be committed.")
        return _Changed(path, old_mode, old_id, entry)

    def _file_changes(self, changed: list[_Changed], blobs: Blobs) -> list[FileChange]:
        old = read_blobs(self._git_dir, (item.old_id for item in changed if item.old_mode != ABSENT))
        return [
            FileChange(
                path=path_text(item.path),
                old=blobs.put(old[item.old_id]) if item.old_mode != ABSENT else None,
                new=blobs.put(item.new.data) if item.new else None,
                old_mode="" if item.old_mode == ABSENT else item.old_mode,
                new_mode=item.new.mode if item.new else "",
            )
            for item in changed
        ]

    def _write_tree(self, changed: list[_Changed]) -> str:
        env = {"GIT_INDEX_FILE": str(self._git_dir / "commit-index")}
        run_git(self._git_dir, "read-tree", self._base, env=env)
        # Removals first: a file may become a folder and the other way round.
        lines = sorted((self._index_line(item) for item in changed), key=lambda line: not line.startswith(b"0 "))
        run_git(self._git_dir, "update-index", "-z", "--index-info", stdin=b"".join(lines), env=env)
        return run_git(self._git_dir, "write-tree", env=env).decode().strip()

    def _index_line(self, changed: _Changed) -> bytes:
        if changed.new is None:
            return b"0 " + b"0" * len(self._base) + b"\t" + changed.path + b"\0"
        oid = write_object(self._git_dir, "blob", changed.new.data)
        return f"{changed.new.mode} {oid}\t".encode() + changed.path + b"\0"

    def _pack(self, commit: str) -> bytes:
        revisions = f"{commit}\n^{self._base}\n".encode()
        args = ("pack-objects", "--revs", "--stdout", "-q", "--window=0", "--threads=1")
        return run_git(self._git_dir, *args, stdin=revisions)


def open_draft(repository: Repository, base: str, folder: Path) -> DraftCopy:
    """Make a private workspace in the empty ``folder`` holding ``base``'s files, raw: no filter, no line-end change."""
    git_dir = make_private(folder / "git", repository)
    check_out(git_dir, base, folder / "tree")
    return DraftCopy(repository, base, folder)


def reopen_draft(repository: Repository, base: str, folder: Path) -> DraftCopy:
    """Return the private workspace that :func:`open_draft` made in ``folder``, as it was left.

    Raises:
        StageFailed: it is not there any more.
    """
    if not (folder / "tree").is_dir() or not (folder / "git").is_dir():
        raise StageFailed(f"The workspace {folder} is gone, and with it what was drafted in it. Start the job again.")
    return DraftCopy(repository, base, folder)


def export_tree(
    repository: Repository, commit: str, pack: BlobRef | None, blobs: Blobs, folder: Path, *, with_git: bool = False
) -> None:
    """Write exactly the content of ``commit`` into the new ``folder``: a throwaway checkout.

    ``pack`` is the draft's; what it lacks comes from ``repository``. ``with_git`` adds a repository of its own whose
    history is this one commit, because many test commands ask git; it borrows nothing.
    """
    git_dir = folder.parent / f".{folder.name}-git"
    try:
        make_private(git_dir, repository)
        if pack is not None:
            take_pack(git_dir, blobs.get(pack))
        check_out(git_dir, commit, folder)
        if with_git:
            _add_repository(git_dir, commit, folder, repository.object_format)
    finally:
        shutil.rmtree(git_dir, ignore_errors=True)


def _add_repository(source: Path, commit: str, folder: Path, object_format: str) -> None:
    own = folder / ".git"
    settings = {"core.bare": "false"}
    write_git_dir(own, object_format=object_format, head="ref: refs/heads/main", settings=settings)
    (own / "refs" / "heads").mkdir(parents=True)
    (own / "refs" / "tags").mkdir()
    for git_dir in (source, own):
        (git_dir / "shallow").write_text(commit + "\n", encoding="ascii")
    name = str(own / "objects" / "pack" / "pack")
    args = ("pack-objects", "--revs", "-q", "--window=0", name)
    run_git(source, *args, stdin=f"{commit}\n".encode(), limit=timedelta(minutes=10))
    (own / "refs" / "heads" / "main").write_text(commit + "\n", encoding="ascii")
    shutil.copy(source / "index", own / "index")


def _message_bytes(message: str) -> bytes:
    if not message.strip() or "\0" in message:
        raise UserError("A commit message is empty or holds a NUL. Give the draft stage's `message:` a text.")
    return (message.rstrip("\n") + "\n").encode("utf-8", "replace")
