"""Starting, stopping and looking at an installation, from any process. Light: the CLI imports it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from perdure.errors import SetupError
from perdure.runtime.children import rotate
from perdure.runtime.installation import check_folder, explain
from perdure.runtime.state import LOCK_FILE, ProcessState, is_running, lock_holder, read_state, written_pid
from perdure.settings import Settings

UP_LIMIT = timedelta(seconds=40)
DOWN_LIMIT = timedelta(seconds=40)
KILL_LIMIT = timedelta(seconds=10)
LOOK_SECONDS = 0.03
SUPERVISOR = (sys.executable, "-P", "-m", "perdure.runtime.supervisor")


@dataclass(frozen=True)
class ProcessStatus:
    """One process of an installation."""

    name: str
    pid: int
    ready: bool
    restarts: int
    rss_bytes: int
    detail: str = ""


@dataclass(frozen=True)
class Status:
    """An installation as it is now."""

    data: Path
    running: bool
    phase: str = "stopped"
    """stopped · starting · ready · degraded (a process is being started again) · stopping"""
    started_here: bool = False
    """Whether this very call of :func:`up` started it."""
    version: str = ""
    started_at: str = ""
    temporal: str = ""
    """host:port of the server; empty when it does not run."""
    processes: tuple[ProcessStatus, ...] = ()
    """The supervisor first."""
    note: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether requests can be answered."""
        return self.phase in ("ready", "degraded")


def status(settings: Settings) -> Status:
    """Return how the installation is. Never raises for a folder that is not there."""
    holder = lock_holder(settings.data / LOCK_FILE)
    state = read_state(settings.data)
    if holder is None:
        stale = f"The last run (pid {state.pid}) did not end by itself." if state else ""
        return Status(settings.data, running=False, note=stale)
    if state is None or (holder and state.pid != holder):
        return Status(settings.data, running=True, phase="starting", processes=(_supervisor(holder),))
    temporal = state.temporal.address if state.temporal else settings.temporal_address
    return Status(
        settings.data,
        running=True,
        phase=state.phase,
        version=state.version,
        started_at=state.started_at,
        temporal=temporal,
        processes=(_supervisor(state.pid), *map(_process, state.processes)),
        note=state.note,
    )


def up(
    settings: Settings,
    *,
    wait: bool = True,
    limit: timedelta = UP_LIMIT,
    command: Sequence[str] = SUPERVISOR,
) -> Status:
    """Bring the installation up and return its status. When it is up already, or being started, say so and wait.

    Args:
        wait: until it is ready; else only until the supervisor has taken the folder.
        limit: how long to wait.
        command: the supervisor's command line, for tests.

    Raises:
        SetupError: it cannot be brought up; the text says what was found and what to do.
    """
    check_folder(settings)
    deadline = time.monotonic() + limit.total_seconds()
    while True:
        if not is_running(settings.data) and _spawn(settings, command, wait=wait, deadline=deadline):
            return replace(status(settings), started_here=True)
        now = status(settings)
        if now.is_ready or (now.running and not wait):
            return now
        if time.monotonic() > deadline:
            raise SetupError(
                f"Perdure runs for {settings.data} but is still {now.phase} after {limit.total_seconds():.0f} s. "
                f"Look into {settings.logs}/supervisor.log, or stop it with `perdure down`."
            )
        time.sleep(LOOK_SECONDS)


def down(settings: Settings, *, limit: timedelta = DOWN_LIMIT) -> bool:
    """Stop the installation, by force after ``limit``. Returns whether anything was running.

    The kernel ends the children of a supervisor that is killed, so nothing is left in either case.

    Raises:
        SetupError: somebody holds the folder who cannot be found or ended.
    """
    deadline = time.monotonic() + limit.total_seconds()
    was_running, asked = False, False
    while is_running(settings.data):
        was_running, late = True, time.monotonic() > deadline
        if late or not asked:
            asked = _signal_holder(settings.data / LOCK_FILE, signal.SIGKILL if late else signal.SIGTERM)
        if time.monotonic() > deadline + KILL_LIMIT.total_seconds():
            raise SetupError(
                f"{settings.data}/{LOCK_FILE} is held by a process that does not say who it is, or cannot be ended. "
                "Find it with `fuser` and end it."
            )
        time.sleep(LOOK_SECONDS)
    return was_running


def _signal_holder(lock: Path, number: int) -> bool:
    """Signal whoever holds ``lock``; returns whether there was somebody to signal.

    The handle is opened first and checked then, so that neither a stale pid nor one that changed hands is ever hit.
    """
    pid = written_pid(lock)
    try:
        handle = os.pidfd_open(pid) if pid else -1
    except ProcessLookupError:
        return False
    if handle < 0:
        return False
    try:
        if lock_holder(lock) != pid:
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False  # it ended by itself in this very moment
    finally:
        os.close(handle)
    return True


def _spawn(settings: Settings, command: Sequence[str], *, wait: bool, deadline: float) -> bool:
    """Start a supervisor and listen to it. Returns whether it is ours; ``False``: another one was quicker."""
    reader, writer = os.pipe()
    try:
        log = settings.logs / "supervisor.log"
        _prepare_log(log, settings)
        argv = [*command, "--data", str(settings.data), "--detach", "--tell-fd", str(writer)]
        with log.open("ab") as output:
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=[writer], check=False)
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb") as words:
        return _listen(words, log, settings, wait=wait, deadline=deadline)


def _prepare_log(log: Path, settings: Settings) -> None:
    try:
        log.parent.mkdir(mode=0o700, exist_ok=True)
        rotate(log)
        log.touch(mode=0o600)
    except OSError as error:
        raise explain(error, settings.data) from error


def _listen(words: Any, log: Path, settings: Settings, *, wait: bool, deadline: float) -> bool:
    """Read the supervisor's words until one decides.

    It always speaks or ends within its own start limit, which is shorter than ``deadline``; its end closes the pipe.
    """
    for line in words:
        word = json.loads(line)
        if "taken" in word:
            return False
        if "error" in word:
            raise SetupError(word["error"])
        if "ready" in word or ("locked" in word and not wait):
            return True
    raise SetupError(f"Perdure's supervisor ended without a word.{_last_line(log)} See {log}.")


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return f" Its log ends with: {lines[-1]}" if lines else ""


def _supervisor(pid: int) -> ProcessStatus:
    return ProcessStatus("supervisor", pid, ready=True, restarts=0, rss_bytes=_rss(pid))


def _process(state: ProcessState) -> ProcessStatus:
    return ProcessStatus(state.name, state.pid, state.ready, state.restarts, _rss(state.pid), state.detail)


def _rss(pid: int) -> int:
    """Resident memory of ``pid`` in bytes; 0 when it is not there."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    except (OSError, IndexError):
        return 0
    return pages * resource.getpagesize()
