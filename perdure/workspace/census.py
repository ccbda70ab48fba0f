"""Counting what a sandboxed command has running: the kernel's own limit does not hold for root."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

_PROC = Path("/proc")


TICK = timedelta(seconds=0.1)
"""How often to ask. A fork bomb starts some thousand processes a second, and each of them slows the watcher down."""

_LOOKS = 5
"""Every so often all parents are looked at; between, only when the machine has many more processes than before."""


class Census:
    """Counts processes beneath a group's leader, those in namespaces of their own too. One for each command."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._before = _count_all()
        self._asked = 0

    def objection(self, leader: int) -> str:
        """Return what is wrong with the processes beneath ``leader``; empty when nothing is."""
        self._asked += 1
        has_grown = _count_all() > self._before + self._most // 2
        if not has_grown and self._asked % _LOOKS:
            return ""
        count = len(descendants(leader))
        return f"started more than {self._most} processes." if count > self._most else ""


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
    try:
        stat = (process / "stat").read_bytes()
    except OSError:
        return -1  # it ended meanwhile
    return int(stat.rpartition(b")")[2].split()[1])
