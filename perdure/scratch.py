"""Scratch folders that say by a lock whether their maker lives, and a sweep of those whose maker does not."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SUFFIX = ".held"
"""Marks folders whose maker holds a lock: one without it, an older version's, may be in use and is left alone."""

_PROC = Path("/proc")


@contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """Give an empty private folder in the machine's temporary folder; gone afterwards.

    An exclusive flock on the folder is held meanwhile. The kernel drops it when the process dies, however it dies.
    """
    folder, lock = _make_held(purpose)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep_scratch() -> list[Path]:
    """Remove scratch folders of this user whose maker is dead; return those that are gone.

    Left alone: a folder whose lock is held, one in which or on which some process still works (a git that outlived
    its maker), links, and what belongs to others. May be called at any time, by several processes.
    """
    found = list(Path(tempfile.gettempdir()).glob(f"perdure-*{_SUFFIX}"))
    return [folder for folder in found if _remove_dead(folder)]


def _make_held(purpose: str) -> tuple[Path, int]:
    """Make and lock. A sweep may come between the two: then the folder is gone, and another one is made."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"perdure-{purpose}-", suffix=_SUFFIX))
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():
                return folder, lock
            os.close(lock)


def _remove_dead(folder: Path) -> bool:
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False  # gone meanwhile, a link, or of somebody else: not ours to remove
    try:
        about = os.fstat(lock)
        if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_named_by_a_process(folder):
            return False
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()
    except BlockingIOError:
        return False
    finally:
        os.close(lock)


def _is_named_by_a_process(folder: Path) -> bool:
    """Whether a process works in the folder, or was given it as an argument or in its environment (Linux only).

    The lock is the maker's alone: children do not inherit it, and one may run on after the maker was killed.
    """
    name = os.fsencode(folder.name)
    return any(name in _uses_of(place) for place in _PROC.glob("[0-9]*"))


def _uses_of(process: Path) -> bytes:
    said = b""
    with suppress(OSError):  # ended meanwhile, or of another user
        said += os.fsencode((process / "cwd").readlink()) + b"\0"
        said += (process / "cmdline").read_bytes() + b"\0" + (process / "environ").read_bytes()
    return said
