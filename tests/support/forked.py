"""Processes of the application whose imports are done: forked from one that has loaded all of it.

Loading is most of what a short-lived worker or API costs (1.4 of its 2 to 3 s of CPU), and a test run starts hundreds.
A forked process is as real as another: its own pid, files and death. How users' processes start is tested where that
matters, in ``tests/runtime``, ``tests/cli/test_real.py`` and ``tests/crash/test_stranded.py``.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.support.loaded"])


class Forked:
    """A Python process, used like ``subprocess.Popen``: ``argv`` is what follows ``python`` on its line.

    Any thread may wait for it. Its output is appended to ``log``.
    """

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        self.args = [sys.executable, *argv]
        self._process = _FORKS.Process(target=_become, args=(list(argv), dict(environ), str(log)))
        self._looking = threading.Lock()
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, the negative signal, or None while it lives."""
        with self._looking:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; :class:`TimeoutError` when that is not seen in ``timeout`` seconds."""
        wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise TimeoutError(f"{self.args} did not end in {timeout} s")
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _become(argv: list[str], environ: dict[str, str], log: str) -> None:
    """Be what ``python ARGV`` would be."""
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    if argv[0] == "-m":
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        runpy.run_path(argv[0], run_name="__main__")
