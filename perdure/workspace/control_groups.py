"""Bounds that hold for a whole command: control groups for each sandboxed one, where they can be made.

The kernel's limits on a user's processes and on a process's memory say nothing of all processes of a command together,
and a watcher that looks now and then is outrun by a command that doubles. Where no group can be made (a plain user, a
container) the watcher is all there is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "perdure-command-"
_LEAVING_SECONDS = 2.0
"""How long killed processes may take to leave a group."""

_VERSION_1 = {"memory.limit_in_bytes": 1, "memory.memsw.limit_in_bytes": 1}
_VERSION_2 = {"memory.max": 1, "memory.swap.max": 0}
"""What bounds memory, as parts of the bound. Version 1 counts memory and swap together, version 2 swap alone."""


@dataclass(frozen=True)
class Group:
    """The groups of one command: one in each hierarchy that bounds something."""

    folders: tuple[Path, ...]

    @property
    def members(self) -> tuple[Path, ...]:
        """The files that a process writes its id to in order to live in the group."""
        return tuple(folder / "cgroup.procs" for folder in self.folders)

    def was_full(self) -> bool:
        """Whether a process was ever refused. No longer told once it is gone: another worker removes empty ones."""
        return self._counted("pids.events", "max") > 0

    def was_out_of_memory(self) -> bool:
        """Whether the kernel ever ended a process because all of them together held too much."""
        return self._counted("memory.events", "oom_kill") + self._counted("memory.oom_control", "oom_kill") > 0

    @property
    def bounds_memory(self) -> bool:
        """Whether memory is bounded."""
        return any(
            (folder / name).exists() for folder in self.folders for name in ("memory.max", "memory.limit_in_bytes")
        )

    def _counted(self, file: str, word: str) -> int:
        for folder in self.folders:
            with contextlib.suppress(FileNotFoundError):
                said = (folder / file).read_text(encoding="ascii").split()
                return int(said[said.index(word) + 1]) if word in said else 0
        return 0


@contextmanager
def bounded_group(most: int, root: Path = _ROOT, *, memory_bytes: int = 0) -> Iterator[Group | None]:
    """Give a group of at most ``most`` processes that hold at most so much memory together (0: as they like).

    ``None`` where no processes can be bounded. It is gone afterwards. Its maker holds a lock on it meanwhile, which the
    kernel drops when the maker dies: an empty group may be one whose command is just about to begin.
    """
    with ExitStack() as held:
        group = _make_group(most, root, memory_bytes, held)
        try:
            yield group
        finally:
            for folder in group.folders if group else ():
                _remove(folder)


def find_dead_groups(root: Path = _ROOT) -> list[Path]:
    """What dead workers left; a group with a process in it, or whose maker lives, is not among them."""
    return [group for group in _all_groups(root) if _is_dead(group)]


def remove_empty_groups(root: Path = _ROOT) -> list[Path]:
    """Remove what dead workers left and return it; a group with a process in it, or whose maker lives, stays."""
    gone = []
    for group in _all_groups(root):
        with ExitStack() as held:
            if _hold(group, held, fcntl.LOCK_EX | fcntl.LOCK_NB):
                with contextlib.suppress(OSError):
                    group.rmdir()
                    gone.append(group)
    return gone


def _all_groups(root: Path) -> list[Path]:
    return [group for parent in _parents(root) for group in parent.glob(_PREFIX + "*")]


def _is_dead(group: Path) -> bool:
    with ExitStack() as held:
        is_free = _hold(group, held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return is_free and not _read(group / "cgroup.procs").strip()


def _hold(group: Path, held: ExitStack, how: int) -> bool:
    """Take the lock of a group until ``held`` is closed; ``False`` when somebody has it, or the group is gone."""
    try:
        lock = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    held.callback(os.close, lock)
    try:
        fcntl.flock(lock, how)
    except OSError:
        return False
    return group.exists()


def _make_group(most: int, root: Path, memory_bytes: int, held: ExitStack) -> Group | None:
    name = _PREFIX + secrets.token_hex(8)
    for parent in (root / "pids", root):
        if _make(parent / name, {"pids.max": most}, held):
            return Group((parent / name, *_bound_memory(root, parent / name, memory_bytes, held)))
    return None


def _bound_memory(root: Path, group: Path, memory_bytes: int, held: ExitStack) -> list[Path]:
    """Bound memory in the group itself (version 2) or in one of another hierarchy (version 1); return the latter."""
    if not memory_bytes:
        return []
    if group.parent == root:
        _set(group, {name: part * memory_bytes for name, part in _VERSION_2.items()})
        return []
    other = root / "memory" / group.name
    first, *rest = ({name: part * memory_bytes} for name, part in _VERSION_1.items())
    if not _make(other, first, held):
        return []
    for bound in rest:
        _set(other, bound)  # where swap is not counted there is nothing to bound
    return [other]


def _make(group: Path, bounds: Mapping[str, int], held: ExitStack) -> bool:
    """Make a group that has these bounds, and hold it; return whether that could be."""
    if not (group.parent / "cgroup.procs").exists():
        return False
    while True:
        try:
            group.mkdir()
        except OSError:
            return False  # not ours to write
        if _hold(group, held, fcntl.LOCK_EX):  # a sweep may come between the two: then another one is made
            break
    if not _set(group, bounds):
        _remove(group)
        return False
    return True


def _set(group: Path, bounds: Mapping[str, int]) -> bool:
    """Set all of them; return whether that could be."""
    try:
        for name, most in bounds.items():
            with (group / name).open("r+", encoding="ascii") as file:
                file.write(str(most))
    except OSError:
        return False
    return True


def _parents(root: Path) -> list[Path]:
    """Where groups are made: version 1 mounts each controller, version 2 has them all in one."""
    places = (root / "pids", root, root / "memory")
    return [folder for folder in places if (folder / "cgroup.procs").exists()]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return "gone"


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
            time.sleep(0.001)
        else:
            return
