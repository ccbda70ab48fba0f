"""A real Temporal server for tests: the embedded one's settings, a free port, gone with the test process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from perdure.errors import SetupError
from perdure.runtime import leash
from perdure.runtime.server import TemporalServer, find_binary

PORT_TRIES = 5


@dataclass
class RunningServer:
    """A server that answers. ``kill`` and ``restart`` keep its file and its address."""

    server: TemporalServer
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def address(self) -> str:
        """``host:port``."""
        return self.server.address

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.process.kill()
        self.process.wait()

    def restart(self, limit: timedelta = timedelta(seconds=20)) -> None:
        """Start it again on the same file and port."""
        self.kill()
        self.process = _spawn(self.server, self.log)
        _wait_ready(self.server, self.process, self.log, limit)


@contextmanager
def temporal_server(
    folder: Path, *, limit: timedelta = timedelta(seconds=30), config: Mapping[str, object] | None = None
) -> Iterator[RunningServer]:
    """Yield a server that keeps its file and log beneath ``folder``; ``config``: dynamic configuration beside ours.

    Use it as a fixture of the main thread: the kernel ends the server with the thread that started it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "temporal.log"
    running = _start(TemporalServer(folder / "temporal.db", find_binary(), config=config or {}), log, limit)
    try:
        yield running
    finally:
        running.kill()


def _start(server: TemporalServer, log: Path, limit: timedelta) -> RunningServer:
    for attempt in range(1, PORT_TRIES + 1):
        process = _spawn(server, log)
        try:
            _wait_ready(server, process, log, limit)
        except SetupError:
            process.kill()
            process.wait()
            if "address already in use" not in log.read_text("utf-8", "replace") or attempt == PORT_TRIES:
                raise
            server = server.on_new_ports()
        else:
            server.set_retention()
            return RunningServer(server, process, log)
    raise AssertionError("unreachable")


def _spawn(server: TemporalServer, log: Path) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *server.argv()]
    with log.open("wb") as output:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def _wait_ready(server: TemporalServer, process: subprocess.Popen[bytes], log: Path, limit: timedelta) -> None:
    deadline = time.monotonic() + limit.total_seconds()
    while not server.is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SetupError(f"The Temporal server did not start:\n{log.read_text('utf-8', 'replace')[-2000:]}")
        time.sleep(0.02)
