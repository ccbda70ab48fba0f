"""Looking at files beneath a folder whose content is hostile: no link is followed, nothing but plain files is opened.

Light to import: the search's child process begins with it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import UserError

DEEPEST = 64
"""Folders within each other that are looked into: each holds a descriptor open."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Missing(UserError):
    """Nothing lies at a path."""


@dataclass(frozen=True)
class Found:
    """One plain file, link or folder as it was met."""

    path: bytes
    """Relative to the root, without a leading or trailing ``/``."""
    kind: str
    """``file``, ``link``, ``folder`` or ``other``."""
    size: int
    stamp: tuple[int, int, int]
    """Inode, mode and time of change in nanoseconds."""


def split_beneath(path: bytes) -> list[bytes]:
    """Split a relative path; empty or ``.`` is the root itself.

    Raises:
        UserError: it is absolute, has ``..``, an empty part or NUL, or leads into a ``.git``.
    """
    parts = [part for part in path.removesuffix(b"/").split(b"/") if part != b"."]
    if parts == [b""]:
        return []
    if b"\0" in path or any(part in (b"", b"..") or part.lower() == b".git" for part in parts):
        raise UserError(
            f"{os.fsdecode(path)!r} is not a path in the workspace; expected a relative one without '..', outside of "
            "'.git'."
        )
    return parts


@contextmanager
def open_file(root: Path, path: bytes) -> Iterator[int]:
    """Give a descriptor of the plain file at ``path`` beneath ``root``.

    Raises:
        UserError: there is none, it is a link, folder or device, or a folder on the way is a link.
    """
    *folders, name = split_beneath(path) or [b"."]
    with _opened(root, folders, path) as folder:
        with _explained(path):
            descriptor = os.open(name, _FILE, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UserError(f"{os.fsdecode(path)!r} is no plain file; folders are listed with files.glob.")
            yield descriptor
        finally:
            os.close(descriptor)


def find_entry(root: Path, path: bytes) -> Found | None:
    """Return what lies at ``path`` beneath ``root`` without opening it; ``None`` when nothing does.

    Raises:
        UserError: a folder on the way is a link or no folder, or the path is not allowed.
    """
    *folders, name = split_beneath(path) or [b"."]
    try:
        with _opened(root, folders, path) as folder:
            return _look(folder, name, b"".join(part + b"/" for part in folders))
    except Missing:
        return None


def walk(root: Path, start: bytes = b"", *, most: int) -> Iterator[Found]:
    """Give everything beneath ``start``, folders before their content, by name; ``.git`` is left out.

    Stops after ``most`` entries: one more is given whose kind is ``cut``. Folders that cannot be
    read, or lie deeper than :data:`DEEPEST`, are passed over.

    Raises:
        UserError: ``start`` is no folder beneath ``root``.
    """
    left = [most]
    with _opened(root, split_beneath(start), start) as folder:
        yield from _walk(folder, start.strip(b"/") + b"/" if start.strip(b"/") not in (b"", b".") else b"", left)


Stamps = Mapping[bytes, tuple[str, int, tuple[int, ...]]]
"""Path → kind, size, and inode, mode and time of change."""


def stamp_all(root: Path, *, most: int = 20_000) -> Stamps | None:
    """Return what tells by a look at names and times whether a file was changed; ``None``: more than ``most`` entries.

    A folder's own time is left out: it changes with its entries, which are there themselves.
    """
    found: dict[bytes, tuple[str, int, tuple[int, ...]]] = {}
    for one in walk(root, most=most):
        if one.kind == "cut":
            return None
        found[one.path] = (one.kind, one.size, one.stamp if one.kind != "folder" else one.stamp[:2])
    return found


def changed_paths(before: Stamps, after: Stamps) -> list[bytes]:
    """Return the paths that came, went or changed, sorted."""
    paths = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    return sorted(paths)


def _walk(folder: int, prefix: bytes, left: list[int]) -> Iterator[Found]:
    for name in sorted(os.fsencode(name) for name in os.listdir(folder)):
        if name.lower() == b".git":
            continue
        if left[0] <= 0:
            if left[0] == 0:
                left[0] = -1
                yield Found(prefix + name, "cut", 0, (0, 0, 0))
            return
        left[0] -= 1
        found = _look(folder, name, prefix)
        if found is None:
            continue
        yield found
        if found.kind == "folder":
            yield from _walk_into(folder, name, prefix, left)


def _walk_into(folder: int, name: bytes, prefix: bytes, left: list[int]) -> Iterator[Found]:
    if prefix.count(b"/") >= DEEPEST:
        return
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:
        return  # gone, no longer a folder, or not ours to read
    try:
        yield from _walk(inner, prefix + name + b"/", left)
    finally:
        os.close(inner)


def _look(folder: int, name: bytes, prefix: bytes) -> Found | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None  # gone meanwhile
    kinds = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "folder"}
    kind = kinds.get(stat.S_IFMT(found.st_mode), "other")
    size = found.st_size if kind != "folder" else 0
    return Found(prefix + name, kind, size, (found.st_ino, found.st_mode, found.st_mtime_ns))


@contextmanager
def _opened(root: Path, folders: list[bytes], path: bytes) -> Iterator[int]:
    """Give the descriptor of a folder beneath ``root``, reached step by step."""
    current = os.open(root, _FOLDER)
    try:
        for part in folders:
            with _explained(path):
                following = os.open(part, _FOLDER, dir_fd=current)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


@contextmanager
def _explained(path: bytes) -> Iterator[None]:
    shown = repr(os.fsdecode(path))
    try:
        yield
    except FileNotFoundError:
        raise Missing(f"{shown} is not in the workspace. files.glob lists what is.") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
            raise UserError(f"{shown} is a link, or leads through a link or a file; links are not followed.") from None
        raise UserError(f"{shown} cannot be read ({error.strerror}).") from None
