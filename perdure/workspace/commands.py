"""Running one command to its end: a process group of its own, capped output, a wall limit, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from perdure.effects.base import Finished
from perdure.errors import PerdureError

OUTPUT_LIMIT_BYTES = 1 << 20

_GATE = 'read -r go < "$0" || exit 125; exec "$@"'
"""The child's first step: it waits until its group is written down, and never begins when its parent died before."""

GRACE = timedelta(seconds=2)
"""How long a group may take to end by itself after SIGTERM, before it is killed."""

_CHUNK = 1 << 16


class LimitMet(PerdureError):
    """The command did not end within its bounds; its group was ended. ``output`` is what it wrote till then."""

    def __init__(self, message: str, reason: str, output: bytes) -> None:
        super().__init__(message)
        self.reason = reason
        self.output = output


@dataclass(frozen=True)
class Command:
    """What to run, and within which bounds."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """The whole environment."""
    cwd: Path | None = None
    stdin: bytes = b""
    limit: timedelta = timedelta(minutes=10)
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES
    """For each of stdout and stderr, and for both together; beginning and end are kept."""
    pass_fds: Sequence[int] = ()
    tick: timedelta = timedelta(seconds=0.5)
    """How often ``watch`` is asked."""


class _Capture:
    """Keeps the beginning and the end of a stream, half of ``limit`` each, and counts what was between."""

    def __init__(self, limit: int) -> None:
        self._most_head = limit - limit // 2
        self._most_tail = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0

    def add(self, data: bytes) -> None:
        self._seen += len(data)
        room = max(0, self._most_head - len(self._head))
        self._head += data[:room]
        self._tail += data[room:]
        # Cut seldom: each cut moves the whole tail.
        if len(self._tail) > 2 * self._most_tail + _CHUNK:
            del self._tail[: len(self._tail) - self._most_tail]

    def text(self) -> bytes:
        tail = self._tail[max(0, len(self._tail) - self._most_tail) :]
        dropped = self._seen - len(self._head) - len(tail)
        cut = f"\n[… {dropped} more bytes were cut]\n".encode() if dropped else b""
        return bytes(self._head) + cut + bytes(tail)


def run_command(
    command: Command,
    *,
    on_start: Callable[[int], None] = lambda _pgid: None,
    watch: Callable[[int], str] = lambda _pgid: "",
) -> Finished:
    """Run to the end and return how it ended; a code of -9 means killed by signal 9.

    ``on_start`` is told the process group's id before the command begins; the command never begins when it raises.
    ``watch`` is asked now and then; a text from it ends the command as over its bounds. When the command ends, what it
    left running in its group is killed; what it moved to other groups is not waited for, even if it holds the output.

    Raises:
        LimitMet: the wall limit was met or ``watch`` objected; the group was ended first.
    """
    gate_read, gate_write = os.pipe()
    try:
        process = _spawn(command, gate_read)
    except BaseException:
        os.close(gate_write)
        raise
    finally:
        os.close(gate_read)
    try:
        on_start(process.pid)
        os.write(gate_write, b"go\n")
        return _Session(process, command).follow(watch)
    finally:
        os.close(gate_write)
        _end(process)


def _spawn(command: Command, gate: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _GATE, f"/proc/self/fd/{gate}", *command.argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(command.env),
        cwd=command.cwd,
        pass_fds=(gate, *command.pass_fds),
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the group, then reap its leader. In this order: the id cannot be somebody else's before."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):  # it did not read its stdin to the end
                stream.close()


class _Session:
    """One running command: moves its bytes until its leader ends."""

    def __init__(self, process: subprocess.Popen[bytes], command: Command) -> None:
        assert process.stdin and process.stdout and process.stderr  # all three are pipes
        limit = command.output_limit_bytes
        self._process = process
        self._command = command
        self._out, self._err, self._both = _Capture(limit), _Capture(limit), _Capture(limit)
        self._streams = {process.stdout.fileno(): self._out, process.stderr.fileno(): self._err}
        self._stdin = process.stdin
        self._feed = process.stdin.fileno()
        self._left = memoryview(command.stdin)

    def follow(self, watch: Callable[[int], str]) -> Finished:
        """Wait for the end. Raises ``LimitMet``."""
        ended = os.pidfd_open(self._process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                self._register(selector, ended)
                problem = self._pump(selector, ended, watch)
                if problem:
                    self._ask_to_end(selector, ended)
        finally:
            os.close(ended)
        _end(self._process)
        if problem:
            raise LimitMet(f"{_shown(self._command)} {problem}", problem, self._both.text())
        return Finished(self._process.returncode, self._both.text(), self._out.text(), self._err.text())

    def _register(self, selector: selectors.BaseSelector, ended: int) -> None:
        selector.register(ended, selectors.EVENT_READ)
        for fd in self._streams:
            os.set_blocking(fd, False)
            selector.register(fd, selectors.EVENT_READ)
        if self._left:
            os.set_blocking(self._feed, False)
            selector.register(self._feed, selectors.EVENT_WRITE)
        else:
            self._stdin.close()

    def _pump(self, selector: selectors.BaseSelector, ended: int, watch: Callable[[int], str]) -> str:
        """Return what was wrong, or nothing when the leader ended by itself."""
        tick = self._command.tick.total_seconds()
        asked = time.monotonic()
        deadline = asked + self._command.limit.total_seconds()
        while (now := time.monotonic()) < deadline:
            if self._move(selector, ended, min(deadline - now, tick)):
                return ""
            if time.monotonic() - asked >= tick:
                asked = time.monotonic()
                problem = watch(self._process.pid)
                if problem:
                    return problem
        return f"did not end within {self._command.limit}."

    def _ask_to_end(self, selector: selectors.BaseSelector, ended: int) -> None:
        """SIGTERM and a short while: git then removes its lock files."""
        os.killpg(self._process.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE.total_seconds()
        while (now := time.monotonic()) < deadline and not self._move(selector, ended, deadline - now):
            pass

    def _move(self, selector: selectors.BaseSelector, ended: int, seconds: float) -> bool:
        """Move what is ready; return whether the leader ended (then all that it wrote is read)."""
        ready = {key.fd for key, _ in selector.select(seconds)}
        for fd in ready & self._streams.keys():
            if self._drain(fd, 1):
                selector.unregister(fd)
        if self._left and self._feed in ready:
            self._write(selector)
        if ended not in ready:
            return False
        for fd in self._streams:
            self._drain(fd, 64)  # no more than pipes can hold: a straggler that goes on writing is not waited for
        return True

    def _write(self, selector: selectors.BaseSelector) -> None:
        try:
            self._left = self._left[os.write(self._feed, self._left[:_CHUNK]) :]
        except BrokenPipeError:
            self._left = self._left[:0]
        if not self._left:
            selector.unregister(self._feed)
            self._stdin.close()

    def _drain(self, fd: int, times: int) -> bool:
        """Read what is there; return whether the stream is at its end."""
        for _ in range(times):
            try:
                data = os.read(fd, _CHUNK)
            except BlockingIOError:
                return False
            if not data:
                return True
            self._streams[fd].add(data)
            self._both.add(data)
        return False


def _shown(command: Command) -> str:
    words = " ".join(command.argv)
    return repr(words if len(words) <= 120 else words[:117] + "…")
