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


def process_name(pid: int) -> str:
    """Return a name of a running process that no later process can have; empty when it is not there, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    state, start_ticks = fields[0], fields[19]  # fields 3 and 22; the start is counted from boot
    return "" if state in "ZX" else f"{boot_id()}/{pid}/{start_ticks}"


def pid_in(name: str) -> int:
    """The pid in a :func:`process_name`, whether or not that process still runs; 0 when ``name`` is none."""
    parts = name.split("/")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else 0


def has_died(name: str) -> bool:
    """Whether the process of a :func:`process_name` ran in this boot of this machine and does no more.

    Of one from elsewhere, or from before, nothing can be told.
    """
    return name.partition("/")[0] == boot_id() and process_name(pid_in(name)) != name


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
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def take_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock on ``path`` until it is closed or the process ends; ``None`` when taken.

    The file says the holder's name. The descriptor does not pass to children: a lock means this very process.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    os.ftruncate(fd, 0)
    os.pwrite(fd, process_name(os.getpid()).encode(), 0)
    return fd


def lock_holder(path: Path) -> int | None:
    """Return the pid that holds the lock on ``path``, 0 when it has not yet said its name, ``None`` when nobody does.

    A name that an earlier holder left there is not believed, even when its pid is another process's by now.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = pid_in(name := _written_in(fd))
        return pid if pid and process_name(pid) == name else 0
    finally:
        os.close(fd)
    return None


def written_pid(path: Path) -> int:
    """The pid written into the lock file ``path``, true or not; 0 when there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return pid_in(_written_in(fd))
    finally:
        os.close(fd)


def _written_in(fd: int) -> str:
    return os.pread(fd, 200, 0).decode("ascii", "replace").strip()


def is_running(data: Path) -> bool:
    """Whether a supervisor holds the installation beneath ``data`` right now."""
    return lock_holder(data / LOCK_FILE) is not None
