"""Counting what a sandboxed command has running: the kernel's own limit does not hold for root."""

from __future__ import annotations

from pathlib import Path

_PROC = Path("/proc")


class Census:
    """Counts processes beneath a group's leader, those in namespaces of their own too."""

    def __init__(self, most: int) -> None:
        self._most = most

    def objection(self, leader: int) -> str:
        """Return what is wrong with the processes beneath ``leader``; empty when nothing is."""
        count = len(descendants(leader))
        return f"started more than {self._most} processes." if count > self._most else ""


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
