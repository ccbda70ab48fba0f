"""What a running installation says about itself: one small file, and the lock that tells whether it is true.

The file may be stale (the machine lost power); the lock cannot be, because the kernel drops it with its process.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOCK_FILE = "perdure.lock"
STATE_FILE = "state.json"


@dataclass(frozen=True)
class TemporalState:
    """Where the embedded server listens."""

    port: int
    http_port: int
    http_host: str
    """The one Host value that the HTTP port answers to; unguessable, so that no web page can use the port."""
    ready: bool = False

    @property
    def address(self) -> str:
        """``host:port`` for Temporal's clients."""
        return f"127.0.0.1:{self.port}"


@dataclass(frozen=True)
class ProcessState:
    """One child of the supervisor."""

    name: str
    pid: int
    ready: bool = False
    restarts: int = 0
    detail: str = ""
    """How it last ended, when it was started again."""


@dataclass(frozen=True)
class State:
    """What the supervisor last wrote."""

    version: str
    boot_id: str
    pid: int
    started_at: str
    phase: str
    """starting · ready · degraded (a child is being started again) · stopping"""
    temporal: TemporalState | None = None
    processes: tuple[ProcessState, ...] = ()
    note: str = ""


def boot_id() -> str:
    """Return the id of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def read_state(data: Path) -> State | None:
    """Return the last state written beneath ``data``; ``None`` when there is none that can be read."""
    try:
        raw = json.loads((data / STATE_FILE).read_text("utf-8"))
        return _state(raw)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _state(raw: Mapping[str, Any]) -> State:
    temporal = raw["temporal"]
    return State(
        **{key: raw[key] for key in ("version", "boot_id", "pid", "started_at", "phase", "note")},
        temporal=TemporalState(**temporal) if temporal else None,
        processes=tuple(ProcessState(**process) for process in raw["processes"]),
    )


def write_state(data: Path, state: State) -> None:
    """Replace the state file; a reader sees the old one or the new one, whole.

    Not synced: after a power cut the boot id or the lock tells that it is stale.
    """
    write_whole(data / STATE_FILE, json.dumps(dataclasses.asdict(state)))


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` (0600); nobody ever reads half of it, and no half remains when the disk is full."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def take_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock on ``path`` until it is closed or the process ends; ``None`` when taken.

    The file names the holder's pid. The descriptor does not pass to children: a lock means this very process.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def lock_holder(path: Path) -> int | None:
    """Return the pid that holds the lock on ``path``, 0 when it has not yet said its pid, ``None`` when nobody does."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(fd)
    return None


def is_running(data: Path) -> bool:
    """Whether a supervisor holds the installation beneath ``data`` right now."""
    return lock_holder(data / LOCK_FILE) is not None
