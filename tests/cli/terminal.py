"""A command in a real pseudo-terminal: type, and wait for what it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

LIMIT_SECONDS = 30.0
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _own_terminal() -> None:
    """What a shell does for a program in the foreground: the terminal is its own, and Ctrl-C reaches it.

    A test run in the background has SIGINT ignored, and a child would inherit that.
    """
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """``perdure`` on a terminal of its own."""

    def __init__(self, *args: str, env: Mapping[str, str], columns: int = 80, cwd: Path | None = None) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._fd = ours
        self.raw = ""
        self._seen = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "perdure", *args],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def expect(self, text: str) -> None:
        """Wait until ``text`` is shown, after what was expected before."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while text not in self._plain()[self._seen :]:
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"{text!r} was never shown. Shown: {self.raw!r}")
        self._seen = self._plain().index(text, self._seen) + len(text)

    def type(self, text: str) -> None:
        """Type text as it is; a line ends with a newline."""
        os.write(self._fd, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.type("\x03")

    def end(self) -> int:
        """Wait for the command's end and return its exit code."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while self._read(deadline - time.monotonic()):
            continue
        return self.process.wait(timeout=LIMIT_SECONDS)

    def screen(self) -> list[str]:
        """The lines as they stand at the end: what was written over is gone."""
        lines = self.raw.replace("\r\n", "\n").split("\n")
        return [_CODES.sub("", line.rsplit("\r\x1b[2K", 1)[-1]).rstrip() for line in lines]

    def _plain(self) -> str:
        return _CODES.sub("", self.raw)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._fd], [], [], max(0.0, seconds))[0]:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            # Linux says EIO when the last writer of the terminal is gone.
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)
