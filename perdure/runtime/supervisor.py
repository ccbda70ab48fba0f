"""Keeps an installation alive: one process that holds the lock, starts the children and starts again what ends.

``python -P -m perdure.runtime.supervisor --data FOLDER`` runs in the foreground; ``up`` starts it in the background. It
imports nothing heavy and decides nothing about work: any of its children, and it too, may be killed at any moment.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from perdure.errors import PerdureError, SetupError
from perdure.runtime.children import Child, ChildSpec
from perdure.runtime.control import Status, down, status, up
from perdure.runtime.embedded import SERVER, EmbeddedServer, check_listen, embedded_server, worker_and_api
from perdure.runtime.installation import check_folder, prepare
from perdure.runtime.state import LOCK_FILE, STATE_FILE, State, boot_id, read_state, take_lock, write_state
from perdure.settings import Settings, read_settings

__all__ = ["Status", "Supervisor", "down", "main", "serve", "status", "up"]

START_LIMIT = timedelta(seconds=30)
TRIES = 3
"""A child that ended so often before the installation was ever ready will not do better."""
LOOK_SECONDS = 0.02
"""How often a child that is not ready yet is asked."""
SETUP_EXIT = SetupError.exit_code


class Supervisor:
    """Runs children until it is told to stop. ``tell`` gets ``{"ready": true}`` once, when all are ready."""

    def __init__(
        self,
        settings: Settings,
        specs: Sequence[ChildSpec],
        *,
        server: EmbeddedServer | None = None,
        tell: Callable[[dict[str, Any]], None] = lambda word: None,
        note: str = "",
        start_limit: timedelta = START_LIMIT,
    ) -> None:
        first = [server.spec()] if server else []
        self._settings = settings
        self._server = server
        self._tell = tell
        self._children = [Child(spec, settings.logs / f"{spec.name}.log") for spec in (*first, *specs)]
        self._state = State(
            version=_version(),
            boot_id=boot_id(),
            pid=os.getpid(),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            phase="starting",
            note=note,
        )
        self._deadline = time.monotonic() + start_limit.total_seconds()
        self._was_ready = False
        self._signals = 0

    def run(self) -> None:
        """Start everything and keep it running; return after an orderly stop.

        Raises:
            SetupError: it could not be brought up; nothing is left running.
        """
        with self._wakeups() as wakeup:
            try:
                while not self._signals:
                    self._look()
                    self._wait(wakeup)
            finally:
                self._stop(wakeup)

    def _look(self) -> None:
        """One round: notice ends, start what is due, ask who is ready, write it down."""
        for child in self._children:
            if child.note_end():
                self._after_end(child)
            if child.process is None and child.start_at <= time.monotonic():
                self._start(child)
            elif child.process is not None and not child.ready:
                child.ready = child.spec.is_ready(child.pid)
        self._write()
        self._check_start()

    def _start(self, child: Child) -> None:
        if child.spec.name == SERVER:
            self._write()  # the others read the address from the state
        child.start()
        _say(f"{child.spec.name} started as {child.pid}" + (f" (it {child.detail})" if child.detail else ""))

    def _after_end(self, child: Child) -> None:
        _say(f"{child.spec.name} {child.detail}; see {child.log}")
        if child.spec.name == SERVER and self._server is not None and self._server.move_from(child.last_words()):
            _say("a port was taken by somebody else; the server moves")
            for other in self._children:
                if other is not child:
                    other.end()  # it may know the old address
        elif not self._was_ready and (child.failures >= TRIES or child.detail.endswith(f"code {SETUP_EXIT}")):
            raise SetupError(_could_not_start(child, child.detail))

    def _check_start(self) -> None:
        if self._was_ready:
            return
        if all(child.ready for child in self._children):
            self._was_ready = True
            self._tell({"ready": True})
        elif time.monotonic() > self._deadline:
            late = [child for child in self._children if not child.ready]
            raise SetupError(" ".join(_could_not_start(child, "is not ready in time") for child in late))

    def _wait(self, wakeup: socket.socket) -> None:
        """Sleep until a signal (a child's end is one) or the next thing to do."""
        pause = 3600.0
        if any(child.process is not None and not child.ready for child in self._children):
            pause = LOOK_SECONDS
        for child in self._children:
            if child.process is None:
                pause = min(pause, max(0.0, child.start_at - time.monotonic()))
        _sleep(wakeup, pause)

    def _write(self, phase: str = "") -> None:
        """Bring the state file up to date. A full disk must not end a running installation, so it is only said."""
        ready = all(child.ready for child in self._children)
        up_phase = "ready" if ready else "degraded" if self._was_ready else "starting"
        state = replace(
            self._state,
            phase=phase or up_phase,
            temporal=self._server.state(ready=self._children[0].ready) if self._server else None,
            processes=tuple(child.state() for child in self._children),
        )
        if state != self._state:
            try:
                write_state(self._settings.data, state)
                self._state = state
            except OSError as error:
                _say(f"the state could not be written: {error}")

    def _stop(self, wakeup: socket.socket) -> None:
        """End the children: first those that use the server, then the server; by force after their limit."""
        self._write("stopping")
        self._end([child for child in self._children if child.spec.name != SERVER], wakeup)
        self._end([child for child in self._children if child.spec.name == SERVER], wakeup)
        (self._settings.data / STATE_FILE).unlink(missing_ok=True)

    def _end(self, children: list[Child], wakeup: socket.socket) -> None:
        begun = time.monotonic()
        for child in children:
            child.end()
        while running := [child for child in children if child.process is not None and not child.note_end()]:
            for child in running:
                if self._signals > 1 or time.monotonic() - begun > child.spec.stop_limit.total_seconds():
                    _say(f"{child.spec.name} does not end by itself; killed")
                    child.end(signal.SIGKILL)
            _sleep(wakeup, 0.25)

    @contextlib.contextmanager
    def _wakeups(self) -> Iterator[socket.socket]:
        """Yield a socket that becomes readable with every signal, so that no end is missed between look and sleep."""
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, self._asked) for number in (signal.SIGTERM, signal.SIGINT)}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            yield reader
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            reader.close()
            writer.close()

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1


def _sleep(wakeup: socket.socket, seconds: float) -> None:
    if select.select([wakeup], [], [], seconds)[0]:
        with contextlib.suppress(BlockingIOError):
            while wakeup.recv(4096):
                continue


def _could_not_start(child: Child, why: str) -> str:
    words = child.last_words()
    said = f" It said: {words.splitlines()[-1]}" if words else ""
    return f"Perdure could not start: {child.spec.name} {why}.{said} (Log: {child.log})"


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("perdure")
    except PackageNotFoundError:
        return "unknown"


def _say(text: str) -> None:
    """One line for the supervisor's own log. A full disk is no reason to end."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text}\n")
        sys.stderr.flush()


def _earlier(before: State | None) -> str:
    """What to say about a state whose supervisor is gone."""
    if before is None:
        return ""
    if before.boot_id != boot_id():
        return f"The run of {before.started_at} ended when the machine did; started again."
    return f"The run of {before.started_at} (pid {before.pid}) ended without being asked to; started again."


def serve(
    settings: Settings,
    *,
    tell: Callable[[dict[str, Any]], None] = lambda word: None,
    specs: Callable[[Settings], Sequence[ChildSpec]] = worker_and_api,
    server: Callable[[Settings, State | None], EmbeddedServer | None] = embedded_server,
    start_limit: timedelta = START_LIMIT,
) -> None:
    """Hold the installation and run it until SIGTERM or SIGINT. Needs the process's main thread.

    ``specs`` and ``server`` say what the children are; they are asked with the lock held. ``server`` gets the state
    that an earlier run left.

    Raises:
        SetupError: somebody else holds it, or it could not be brought up.
    """
    check_folder(settings)
    lock = take_lock(settings.data / LOCK_FILE)
    if lock is None:
        tell({"taken": True})
        raise SetupError(f"Perdure already runs for {settings.data} (`perdure status`).")
    try:
        tell({"locked": True})
        before = read_state(settings.data)
        note = " ".join(filter(None, (_earlier(before), prepare(settings).note)))
        check_listen(settings)
        Supervisor(
            settings,
            specs(settings),
            server=server(settings, before),
            tell=tell,
            note=note,
            start_limit=start_limit,
        ).run()
    finally:
        os.close(lock)


class _Teller:
    """Writes lines of JSON to whoever called ``up``, until one decides. A reader that went away is not waited for."""

    def __init__(self, fd: int) -> None:
        self._fd = fd  # children do not get it: Popen closes what it is not told to pass on

    def __call__(self, word: dict[str, Any]) -> None:
        if self._fd < 0:
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(self._fd, json.dumps(word).encode() + b"\n")
        if word.keys() & {"ready", "error", "taken"}:
            os.close(self._fd)
            self._fd = -1  # the number may be somebody else's from now on


def main(arguments: Sequence[str] | None = None, *, run: Callable[..., None] = serve) -> int:
    """Run from a command line; returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m perdure.runtime.supervisor", description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--detach", action="store_true", help="go to the background")
    parser.add_argument("--tell-fd", type=int, default=-1, help="descriptor to which readiness or the error is written")
    options = parser.parse_args(arguments)
    os.umask(0o077)
    if options.detach:
        _detach()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    tell = _Teller(options.tell_fd)
    try:
        run(read_settings(data=options.data), tell=tell)
        tell({"error": "Perdure was stopped while it was starting (`perdure down`)."})
    except PerdureError as error:
        _say(error.message)
        tell({"error": error.message})
        return error.exit_code
    return 0


def _detach() -> None:
    """Go on in a process that is nobody's child, so that whoever started it has nothing to reap or to leave behind."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")


if __name__ == "__main__":
    sys.exit(main())
