"""Files beneath a folder, reached without following a single link. Whoever can plant a link there gains nothing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import UserError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Entry:
    """What lies at a path."""

    mode: str
    """As git writes it: 100644, 100755, 120000 (link); ``other`` for a folder, device, pipe or socket."""
    data: bytes
    """A file's bytes, a link's target; empty for ``other``."""
    stamp: tuple[int, int, int] = (0, 0, 0)
    """Inode, size and time of change: tells whether it is still the same file."""
    permissions: int = 0
    """A file's permission bits; 0: by the process's mask."""


def split_path(path: bytes) -> list[bytes]:
    """Split a relative path.

    Raises:
        UserError: it is absolute, empty, has ``.``, ``..``, an empty part or NUL, or leads into a ``.git``.
    """
    parts = path.split(b"/")
    wrong = {b"", b".", b".."}
    if b"\0" in path or any(part in wrong or part.lower() == b".git" for part in parts):
        raise UserError(
            f"{os.fsdecode(path)!r} is not a path that is written to; expected a relative path without '..', "
            "outside of '.git'."
        )
    return parts


def read_entry(root: Path, path: bytes) -> Entry | None:
    """Return what lies at ``path`` beneath ``root``; ``None`` when nothing does.

    Raises:
        UserError: a folder on the way is a link, or the path is not allowed.
    """
    with _parent(root, path, create=False) as (folder, name):
        return None if folder is None else _entry_at(folder, name)


def write_entry(root: Path, path: bytes, mode: str, data: bytes, *, expected: Entry | None) -> bool:
    """Put a file or link at ``path`` in one step, durably; missing folders are made.

    Only while what lies there still is ``expected`` (as read before); otherwise nothing happens and ``False`` is
    returned. At any moment the path holds the old content or the new one.

    Raises:
        UserError: a folder on the way is a link, or the path is not allowed.
    """
    with _parent(root, path, create=True) as (folder, name):
        assert folder is not None  # it was made
        spare = b".perdure-" + name[:200]
        with suppress(FileNotFoundError):
            os.unlink(spare, dir_fd=folder)  # left by an attempt that was killed
        _create(folder, spare, mode, data, expected.permissions if expected else 0)
        if not _is_same(_entry_at(folder, name), expected):
            os.unlink(spare, dir_fd=folder)
            return False
        os.rename(spare, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
        return True


def remove_entry(root: Path, path: bytes, *, expected: Entry) -> bool:
    """Remove the file or link at ``path`` while it still is ``expected``; return whether it was. Empty folders go too.

    Raises:
        UserError: a folder on the way is a link, or the path is not allowed.
    """
    with _parent(root, path, create=False) as (folder, name):
        if folder is None or not _is_same(_entry_at(folder, name), expected):
            return False
        os.unlink(name, dir_fd=folder)
        os.fsync(folder)
    _remove_empty(root, split_path(path)[:-1])
    return True


def _create(folder: int, name: bytes, mode: str, data: bytes, permissions: int) -> None:
    if mode == "120000":
        os.symlink(data, name, dir_fd=folder)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o777 if mode == "100755" else 0o666, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        if permissions:
            # As before, but executable exactly when the new mode says so, and then for whoever may read.
            readers = (permissions & 0o444) >> 2 if mode == "100755" else 0
            os.fchmod(fd, permissions & 0o666 | readers)
        os.fsync(fd)


def _is_same(found: Entry | None, expected: Entry | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return found.stamp == expected.stamp and found.mode == expected.mode and found.data == expected.data


def _entry_at(folder: int, name: bytes) -> Entry | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    stamp = (found.st_ino, found.st_size, found.st_mtime_ns)
    if stat.S_ISLNK(found.st_mode):
        return Entry("120000", os.fsencode(os.readlink(name, dir_fd=folder)), stamp)
    if not stat.S_ISREG(found.st_mode):
        return Entry("other", b"", stamp)
    # O_NONBLOCK: a pipe put in the file's place since must not hang us.
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(fd, "rb") as file:
        mode = "100755" if found.st_mode & 0o100 else "100644"
        return Entry(mode, file.read(), stamp, found.st_mode & 0o777)


@contextmanager
def _parent(root: Path, path: bytes, *, create: bool) -> Iterator[tuple[int | None, bytes]]:
    """Give (descriptor of the folder that holds ``path``, its last part); ``None`` when there is no such folder."""
    *folders, name = split_path(path)
    # The root itself is opened as it is named: whoever calls has resolved it, and a link there is refused too.
    current = os.open(root, _FOLDER)
    try:
        for part in folders:
            following = _open_folder(current, part, create=create)
            if following is None:
                yield None, name
                return
            os.close(current)
            current = following
        yield current, name
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise UserError(
                f"{os.fsdecode(path)!r} beneath {root} leads through a link or a file; expected plain folders. "
                "Links are never followed."
            ) from None
        raise
    finally:
        os.close(current)


def _open_folder(parent: int, name: bytes, *, create: bool) -> int | None:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            return None
    with suppress(FileExistsError):
        os.mkdir(name, 0o777, dir_fd=parent)
    return os.open(name, _FOLDER, dir_fd=parent)


def _remove_empty(root: Path, folders: list[bytes]) -> None:
    for depth in range(len(folders), 0, -1):
        with _parent(root, b"/".join(folders[:depth]), create=False) as (parent, name):
            if parent is None:
                continue
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError:
                return  # not empty, or no longer a folder: whatever is there stays
