"""One supervised process: how it is started, when it counts as ready, how long it waits before it is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from perdure.runtime import leash
from perdure.runtime.state import ProcessState

MAX_LOG_BYTES = 5_000_000
TAIL_BYTES = 2000
STEADY = timedelta(seconds=60)
"""A child that ran this long starts again at once, as if it had never failed."""

BACKOFF = (0.0, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before start number n+1; the last one repeats. The first is none: work waits for the worker."""


@dataclass(frozen=True)
class ChildSpec:
    """What a child is. ``command`` is asked at every start, since ports may have changed."""

    name: str
    command: Callable[[], Sequence[str]]
    is_ready: Callable[[int], bool]
    """Given its pid; must answer within a moment."""
    stop_limit: timedelta = timedelta(seconds=10)
    """How long it may take to end by itself after SIGTERM."""
    environ: Mapping[str, str] | None = None
    """``None``: the supervisor's own."""


@dataclass
class Child:
    """A child's present life. Not thread-safe; starts must happen on the supervisor's main thread (see ``leash``)."""

    spec: ChildSpec
    log: Path
    process: subprocess.Popen[bytes] | None = None
    ready: bool = False
    starts: int = 0
    failures: int = 0
    """In a row, forgotten after a steady run."""
    start_at: float = 0.0
    started_at: float = 0.0
    detail: str = ""
    asked_to_end: bool = False
    _log_start: int = field(default=0, repr=False)

    @property
    def pid(self) -> int:
        """0 while it is not running."""
        return self.process.pid if self.process else 0

    def start(self) -> None:
        """Start it, in a session of its own, on the leash, its output appended to its log."""
        rotate(self.log)
        argv = [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *self.spec.command()]
        with self.log.open("ab") as output:
            self._log_start = output.tell()
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.spec.environ,
                start_new_session=True,
            )
        self.ready, self.asked_to_end = False, False
        self.starts += 1
        self.started_at = time.monotonic()

    def end(self, number: int = signal.SIGTERM) -> None:
        """Send it a signal; its end is noticed later."""
        if self.process is not None:
            self.asked_to_end = True
            self.process.send_signal(number)

    def note_end(self) -> bool:
        """Take note when it has ended and plan the next start. Returns whether it had."""
        if self.process is None or self.process.poll() is None:
            return False
        now = time.monotonic()
        self.detail = describe_end(self.process.returncode)
        if not self.asked_to_end:
            self.failures = 1 if now - self.started_at > STEADY.total_seconds() else self.failures + 1
        self.start_at = now + BACKOFF[min(max(self.failures - 1, 0), len(BACKOFF) - 1)]
        self.process, self.ready = None, False
        return True

    def last_words(self) -> str:
        """Return the end of what it wrote since its last start."""
        try:
            with self.log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._log_start, size - TAIL_BYTES))
                return file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def state(self) -> ProcessState:
        """Return what the state file says of it."""
        return ProcessState(self.spec.name, self.pid, self.ready, max(self.starts - 1, 0), self.detail)


def describe_end(code: int) -> str:
    """Return how a process ended, in words."""
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def rotate(log: Path) -> None:
    """Put a log that has grown large aside as ``.1``; the one before is dropped."""
    try:
        if log.stat().st_size > MAX_LOG_BYTES:
            log.replace(log.with_name(log.name + ".1"))
    except FileNotFoundError:
        return
