"""Sending through apprise, which speaks the languages of some hundred and seventy services, in a child of its own.

Loading all of them takes two seconds of CPU and 50 MB: no process at work pays that, and one that hangs can be killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from perdure.errors import PerdureError, SetupError

Send = Callable[[str, str, str, str, str], None]
"""(channel, url, title, body, key): see :meth:`Carrier.send`."""

LIMIT = timedelta(seconds=60)


class NotDelivered(PerdureError):
    """A message did not arrive."""


class PerhapsDelivered(NotDelivered):
    """Nobody answered in time: it may have arrived."""


class Carrier:
    """One child at a time, started when first needed, and again when it had to be killed. Used from one thread."""

    def __init__(self, limit: timedelta = LIMIT) -> None:
        self._limit = limit
        self._child: subprocess.Popen[str] | None = None

    def send(self, channel: str, url: str, title: str, body: str, key: str) -> None:
        """Send one message.

        Args:
            channel: its name, for errors: an address may hold a password and is in none.
            url: an address of apprise's.
            title: one line.
            body: plain text.
            key: the same for every attempt at one message.

        Raises:
            SetupError: the address is none that apprise knows.
            NotDelivered: it was not taken; the message says what apprise did.
            PerhapsDelivered: it cannot be told.
        """
        answer = self._ask({"url": url, "title": title, "body": body, "key": key})
        if answer is None:
            raise PerhapsDelivered(f"Channel {channel!r} did not answer within {self._limit.total_seconds():g} s.")
        if answer["how"] == "no address":
            raise SetupError(
                f"The address of channel {channel!r} is none that apprise knows. Its secret holds one line such as "
                "mailto://user:password@example.org, ntfy://host/topic or json://host/path."
            )
        if answer["how"] != "sent":
            kind = PerhapsDelivered if answer["how"] == "in doubt" else NotDelivered
            raise kind(f"Channel {channel!r} did not take it: {answer['why'] or 'apprise gives no reason'}")

    def _ask(self, question: dict[str, str]) -> dict[str, str] | None:
        child = self._child = self._child or _start()
        stdin, stdout = child.stdin, child.stdout
        assert stdin is not None and stdout is not None
        killer = threading.Timer(self._limit.total_seconds(), child.kill)
        killer.start()
        try:
            stdin.write(json.dumps(question) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            killer.cancel()
        if not line:
            self.close()
            return None
        return dict(json.loads(line))

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            with suppress(BrokenPipeError), child:  # waits for it and closes its pipes
                pass


def _start() -> subprocess.Popen[str]:
    argv = [sys.executable, "-P", "-m", "perdure.notify.carrying"]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd="/")


@contextmanager
def carrying(limit: timedelta = LIMIT) -> Iterator[Send]:
    """A child for some messages; started when it begins, ended with the block."""
    carrier = Carrier(limit)
    try:
        yield carrier.send
    finally:
        carrier.close()
