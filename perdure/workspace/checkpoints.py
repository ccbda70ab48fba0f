"""Snapshots of a folder's files in a git directory of our own: what lies in the folder is neither asked nor touched.

All files count, also those that ``.gitignore`` leaves out and those of repositories inside the folder. What a ``.git``
holds is left out and left alone, as are empty folders, times, pipes, sockets and what cannot be read.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from perdure.errors import StageFailed, UserError
from perdure.workspace.beneath import read_entry, remove_entry, write_entry
from perdure.workspace.git_process import run_git
from perdure.workspace.private import (
    ABSENT,
    RAW_ATTRIBUTES,
    RawChange,
    parse_raw,
    read_blobs,
    signature_environment,
    take_pack,
    work_tree,
)
from perdure.workspace.view import borrow_objects, write_git_dir

_LIMIT = timedelta(minutes=10)
_SETTINGS = {
    "core.bare": "false",
    "core.autocrlf": "false",
    "core.symlinks": "true",
    "core.filemode": "true",
    "core.fsync": "none",  # a snapshot counts from when its pack is stored, and that is flushed
    "core.compression": "1",
    "gc.auto": "0",
    "index.version": "4",
}
_WHO = ("Perdure", "checkpoints@perdure.invalid")


@dataclass(frozen=True)
class Snapshot:
    """A folder's files at one moment."""

    commit: str
    """On the snapshot before; the same files on the same one at the same time have the same id."""
    pack: bytes
    """Every object that the snapshot before, and what was borrowed, did not have."""
    changes: tuple[RawChange, ...]
    """Since the snapshot before, by path."""
    left_out: tuple[bytes, ...]
    """Paths that are not kept: pipes, sockets, devices, files that cannot be read."""


@dataclass
class _Walk:
    """What git would trip over."""

    nested: list[bytes] = field(default_factory=list)
    """Folders with a ``.git`` of their own."""
    left_out: list[bytes] = field(default_factory=list)

    def is_nested(self, path: bytes) -> bool:
        """Whether it lies in a repository that was met before."""
        return any(path.startswith(one + b"/") for one in self.nested)


class Checkpoints:
    """A git directory that holds snapshots and nothing else."""

    def __init__(self, git_dir: Path) -> None:
        """``git_dir`` as :func:`open_checkpoints` made it."""
        self._git_dir = git_dir
        self._empty = run_git(git_dir, "hash-object", "-t", "tree", "--stdin").decode().strip()

    def take(self, root: Path, parent: str, *, note: str, at: datetime) -> Snapshot | None:
        """Keep the files beneath ``root``; ``None`` when nothing differs from the snapshot ``parent``.

        Raises:
            StageFailed: the folder is gone.
        """
        if not root.is_dir():
            raise StageFailed(f"The workspace {root} is gone: no checkpoint can be made of it.")
        walk = _Walk()
        _look(root, b"", walk)
        tree = self._write_tree(root, walk)
        changes = self.changes(parent, tree)
        if not changes:
            return None
        args = ("commit-tree", tree, "-p", parent, "-F", "-")
        env = signature_environment(*_WHO, at)
        commit = run_git(self._git_dir, *args, stdin=note.encode("utf-8", "replace"), env=env).decode().strip()
        return Snapshot(commit, self._pack(commit, parent), tuple(changes), tuple(sorted(walk.left_out)))

    def add(self, pack: bytes) -> None:
        """Take over the objects of a snapshot that was made elsewhere."""
        take_pack(self._git_dir, pack)

    def changes(self, old: str, new: str) -> list[RawChange]:
        """What differs between two snapshots, by path."""
        args = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
        return sorted(parse_raw(run_git(self._git_dir, *args, limit=_LIMIT)), key=lambda change: change.path)

    def contents(self, changes: Iterable[RawChange]) -> dict[str, bytes]:
        """Both sides' bytes by blob id."""
        sides = ((change.old_mode, change.old_id, change.new_mode, change.new_id) for change in changes)
        return read_blobs(
            self._git_dir, [oid for a, x, b, y in sides for mode, oid in ((a, x), (b, y)) if mode != ABSENT]
        )

    def restore(self, root: Path, now: str, then: str) -> list[bytes]:
        """Bring the files beneath ``root`` from snapshot ``now`` back to ``then``; return the paths left alone.

        A path that no longer holds what ``now`` says is somebody's newer work, and is left as it is. May be stopped
        anywhere and called again.
        """
        changes = sorted(self.changes(now, then), key=lambda change: change.new_mode != ABSENT)
        contents, left = self.contents(changes), []
        for change in changes:
            try:
                entry = read_entry(root, change.path)
            except UserError:  # a folder on the way is a link by now
                left.append(change.path)
                continue
            found = None if entry is None else (entry.mode, entry.data)
            old = None if change.old_mode == ABSENT else (change.old_mode, contents[change.old_id])
            new = None if change.new_mode == ABSENT else (change.new_mode, contents[change.new_id])
            if found == new:
                continue
            if found != old:
                left.append(change.path)
            elif new is None:
                assert entry is not None  # it is what ``old`` says
                remove_entry(root, change.path, expected=entry)
            else:
                write_entry(root, change.path, new[0], new[1], expected=entry)
        return left

    def _write_tree(self, root: Path, walk: _Walk) -> str:
        """The index remembers sizes and times, so that only changed files are read; a copy takes what is nested."""
        env = {**work_tree(root), "GIT_LITERAL_PATHSPECS": "0"}
        specs = [b".", *(b":(exclude,literal)" + path for path in (*walk.nested, *walk.left_out))]
        args = ("add", "-A", "-f", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
        run_git(self._git_dir, *args, stdin=b"\0".join(specs) + b"\0", env=env, cwd=root, limit=_LIMIT)
        if not walk.nested and not walk.left_out:
            return run_git(self._git_dir, "write-tree", limit=_LIMIT).decode().strip()
        return self._with_nested(root, walk)

    def _with_nested(self, root: Path, walk: _Walk) -> str:
        own = self._git_dir / "whole-index"
        shutil.copy(self._git_dir / "index", own)
        env = {"GIT_INDEX_FILE": str(own)}
        outdated = b"".join(
            b"0 " + b"0" * len(self._empty) + b"\t" + path + b"\0"
            for path in self._listed(env)
            if any(path == one or path.startswith(one + b"/") for one in (*walk.nested, *walk.left_out))
        )
        run_git(self._git_dir, "update-index", "-z", "--index-info", stdin=outdated, env=env)
        files = [path for one in walk.nested for path in _files(root, one)]
        lines = self._hashed(root, files)
        run_git(self._git_dir, "update-index", "-z", "--index-info", stdin=lines, env=env)
        return run_git(self._git_dir, "write-tree", env=env, limit=_LIMIT).decode().strip()

    def _listed(self, env: dict[str, str]) -> list[bytes]:
        return [path for path in run_git(self._git_dir, "ls-files", "-z", env=env).split(b"\0") if path]

    def _hashed(self, root: Path, files: Sequence[bytes]) -> bytes:
        lines = []
        for path in files:
            entry = read_entry(root, path)
            if entry is not None and entry.mode != "other":
                args = ("hash-object", "-w", "--no-filters", "--stdin")
                oid = run_git(self._git_dir, *args, stdin=entry.data).strip()
                lines.append(entry.mode.encode() + b" " + oid + b"\t" + path + b"\0")
        return b"".join(lines)

    def _pack(self, commit: str, parent: str) -> bytes:
        args = ("pack-objects", "--revs", "--stdout", "-q", "--window=0", "--threads=1")
        return run_git(self._git_dir, *args, stdin=f"{commit}\n^{parent}\n".encode(), limit=_LIMIT)


def open_checkpoints(folder: Path, *, object_format: str, index: Path | None, borrow: Sequence[Path]) -> Checkpoints:
    """Give the git directory for snapshots at ``folder``, made when it is not there.

    ``index``: git's notes of files' sizes and times, to begin with. ``borrow``: object stores that have the base.
    """
    if not (folder / "HEAD").exists():
        shutil.rmtree(folder, ignore_errors=True)
        write_git_dir(folder, object_format=object_format, head="ref: refs/heads/checkpoints", settings=_SETTINGS)
        (folder / "refs").mkdir()
        (folder / "info" / "attributes").write_text(RAW_ATTRIBUTES, encoding="ascii")
        borrow_objects(folder, *borrow)
        if index is not None and index.exists():
            shutil.copy2(index, folder / "index")
    for left in ("index.lock", "whole-index.lock"):
        (folder / left).unlink(missing_ok=True)  # a worker was killed in the middle of a snapshot
    return Checkpoints(folder)


def _look(root: Path, below: bytes, walk: _Walk) -> None:
    with os.scandir(_place(root, below)) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    if below and not walk.is_nested(below) and any(entry.name.lower() == b".git" for entry in entries):
        walk.nested.append(below)
    for entry in entries:
        path = below + b"/" + entry.name if below else entry.name
        if entry.name.lower() == b".git":
            continue
        if entry.is_dir(follow_symlinks=False):
            _look_into(root, path, walk)
        elif not entry.is_symlink() and not (entry.is_file(follow_symlinks=False) and os.access(entry.path, os.R_OK)):
            walk.left_out.append(path)


def _look_into(root: Path, path: bytes, walk: _Walk) -> None:
    """A folder that cannot be read is left out, and everything else is kept."""
    try:
        _look(root, path, walk)
    except PermissionError:
        walk.left_out.append(path)


def _files(root: Path, below: bytes) -> list[bytes]:
    """Every file and link beneath a folder, outside of ``.git``."""
    found = []
    for folder, folders, names in os.walk(_place(root, below)):
        folders[:] = [name for name in folders if name.lower() != b".git"]
        for name in [*names, *folders]:
            path = folder + b"/" + name
            mode = os.lstat(path).st_mode
            if name.lower() != b".git" and (stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and os.access(path, os.R_OK))):
                found.append(os.path.relpath(path, os.fsencode(root)))
    return found


def _place(root: Path, below: bytes) -> bytes:
    return os.fsencode(root) + (b"/" + below if below else b"")
