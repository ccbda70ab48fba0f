"""A bound on processes that holds for root too: a control group for each sandboxed command, where one can be made.

The kernel's limit on processes of a user (RLIMIT_NPROC) does not count for root, and a watcher that looks now and then
is outrun by a command that doubles. Where no group can be made (a plain user, a container) the watcher is all there is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "perdure-command-"
_LEAVING_SECONDS = 2.0
"""How long killed processes may take to leave a group."""


@dataclass(frozen=True)
class Group:
    """One group with a bound."""

    folder: Path

    @property
    def members(self) -> Path:
        """The file that a process writes its id to in order to live in the group."""
        return self.folder / "cgroup.procs"

    def was_full(self) -> bool:
        """Whether a process was ever refused. ``False`` once it is gone: another worker's start removes empty ones."""
        try:
            refused = (self.folder / "pids.events").read_text().split()
        except FileNotFoundError:
            return False
        return "max" in refused and refused[refused.index("max") + 1] != "0"


@contextmanager
def bounded_group(most: int, root: Path = _ROOT) -> Iterator[Group | None]:
    """Give a group of at most ``most`` processes; ``None`` where there can be none. It is gone afterwards.

    Its maker holds a lock on it meanwhile, which the kernel drops when the maker dies: an empty group may be one whose
    command is just about to begin, in another worker.
    """
    held = _make_held(most, root)
    if held is None:
        yield None
        return
    group, lock = held
    try:
        yield group
    finally:
        _remove(group.folder)
        os.close(lock)


def remove_empty_groups(root: Path = _ROOT) -> None:
    """Remove what dead workers left behind; a group with a process in it, or whose maker lives, stays."""
    for parent in _parents(root):
        for group in parent.glob(_PREFIX + "*"):
            lock = _lock(group, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock is not None:
                with contextlib.suppress(OSError):
                    group.rmdir()
                os.close(lock)


def _make_held(most: int, root: Path) -> tuple[Group, int] | None:
    """Make and lock. A sweep may come between the two: then the group is gone, and another one is made."""
    while (group := _make_group(most, root)) is not None:
        lock = _lock(group.folder, fcntl.LOCK_EX)
        if lock is not None and group.folder.exists():
            return group, lock
        if lock is not None:
            os.close(lock)
    return None


def _lock(group: Path, how: int) -> int | None:
    """Take the lock of a group; ``None`` when somebody has it, or the group is gone."""
    try:
        lock = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, how)
    except OSError:
        os.close(lock)
        return None
    return lock


def _make_group(most: int, root: Path) -> Group | None:
    for parent in _parents(root):
        group = parent / (_PREFIX + secrets.token_hex(8))
        try:
            group.mkdir()
        except OSError:
            continue  # not ours to write
        try:
            (group / "pids.max").write_text(str(most))
        except OSError:
            _remove(group)
            continue
        return Group(group)
    return None


def _parents(root: Path) -> list[Path]:
    """Where groups that count processes are made: version 1 mounts each controller, version 2 has them all in one."""
    return [folder for folder in (root / "pids", root) if (folder / "cgroup.procs").exists()]


def _remove(group: Path) -> None:
    deadline = time.monotonic() + _LEAVING_SECONDS
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                return  # a process that cannot be killed is in it; the next start of a worker looks again
            time.sleep(0.01)
        else:
            return
