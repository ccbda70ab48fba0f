"""Watching what a sandboxed command has running, holds and writes: the kernel's own limits do not count all of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

_PROC = Path("/proc")


TICK = timedelta(seconds=0.1)
"""How often to ask. A fork bomb starts some thousand processes a second, and each of them slows the watcher down."""

_LOOKS = 5
"""Every so often all parents are looked at; between, only when the machine has many more processes than before."""

_LEAST_FREE_BYTES = 256 << 20
"""What a command may not take of a disk: the ledger's file may lie on the same."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Census:
    """Counts processes beneath a group's leader, those in namespaces of their own too. One for each command."""

    def __init__(self, most: int, memory_bytes: int = 0) -> None:
        """``memory_bytes``: what all processes may hold together; 0 where something else bounds it."""
        self._most = most
        self._memory = memory_bytes
        self._before = _count_all()
        self._shared_before = _shared_bytes()
        self._asked = 0

    def objection(self, leader: int) -> str:
        """Return what is wrong with the processes beneath ``leader``; empty when nothing is."""
        self._asked += 1
        has_grown = _count_all() > self._before + self._most // 2
        if not has_grown and self._asked % _LOOKS:
            return ""
        below = descendants(leader)
        if len(below) > self._most:
            return f"started more than {self._most} processes."
        if self._memory and self._held_by(below) > self._memory:
            return f"held more than {said_bytes(self._memory)} of memory."
        return ""

    def _held_by(self, processes: set[int]) -> int:
        """Their own memory, and what the machine's shared memory grew by: no process need hold a part of that."""
        return sum(map(_own_bytes, processes)) + max(0, _shared_bytes() - self._shared_before)


@dataclass
class DiskWatch:
    """Measures a workspace when its disk has lost so much that it may have grown beyond its bounds."""

    workspace: Path
    most_bytes: int
    most_files: int
    _seen: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        """Take the disk as it is now as what was there before."""
        self._seen = _free(self.workspace)

    def objection(self) -> str:
        """Return what is wrong with the workspace; empty when nothing is. Cheap while its disk stays as it was."""
        free_bytes, free_files = _free(self.workspace)
        lost_bytes, lost_files = self._seen[0] - free_bytes, self._seen[1] - free_files
        if lost_bytes > 0 and free_bytes < _LEAST_FREE_BYTES:
            return f"left less than {said_bytes(_LEAST_FREE_BYTES)} free on its workspace's disk."
        if lost_bytes < self.most_bytes // 4 and lost_files < self.most_files // 4:
            return ""
        self._seen = (free_bytes, free_files)
        held_bytes, held_files = measure(self.workspace)
        if held_bytes > self.most_bytes:
            return f"filled its workspace with more than {said_bytes(self.most_bytes)}."
        return f"filled its workspace with more than {self.most_files} files." if held_files > self.most_files else ""


def measure(folder: Path) -> tuple[int, int]:
    """Return what a folder takes of its disk, and how many files and folders it has. Links are not followed."""
    taken = files = 0
    for entry in _entries(folder):
        files += 1
        try:
            taken += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue  # gone meanwhile
    return taken, files


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    waiting: list[str] = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue  # gone meanwhile, closed to us, or a path that is longer than the kernel takes


def said_bytes(count: int) -> str:
    """A number of bytes for people, in the largest unit that it fills."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def _free(folder: Path) -> tuple[int, int]:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize, found.f_ffree


def _own_bytes(process: int) -> int:
    """What one process holds for itself, without what it may share with others."""
    said = _said(_PROC / str(process) / "statm").split()
    return (int(said[1]) - int(said[2])) * _PAGE if len(said) > 2 else 0


def _shared_bytes() -> int:
    for line in _said(_PROC / "meminfo").splitlines():
        if line.startswith(b"Shmem:"):
            return int(line.split()[1]) << 10
    return 0


def _count_all() -> int:
    """Processes of the machine, told by names alone: a hundredth of the time that reading each one takes."""
    return sum(name.isdigit() for name in os.listdir(_PROC))  # noqa: PTH208 - no Path for each of them


def descendants(leader: int) -> set[int]:
    """Process ids beneath ``leader``, itself not counted. An orphan inside belongs to its namespace's first process."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            children.setdefault(_parent_of(entry), []).append(int(entry.name))
    found: set[int] = set()
    waiting = [leader]
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def _parent_of(process: Path) -> int:
    said = _said(process / "stat").rpartition(b")")[2].split()
    return int(said[1]) if said else -1


def _said(path: Path) -> bytes:
    """What a file of a process says; nothing when it ended meanwhile."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
