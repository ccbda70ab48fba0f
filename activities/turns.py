"""One attempt on a target at a time, of all threads and workers on a data folder: whoever has the turn is alive."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

PATIENCE = timedelta(seconds=20)


class StillTaken(Exception):
    """Whoever has the turn did not end in time."""


class Turns:
    """Lets attempts with the same key through one after the other.

    A turn is a lock on a file, which no command inherits: it ends with the worker that holds it. A worker that sleeps
    or is cut off from Temporal still has it, so that nobody ends its commands and takes them for a dead one's.
    """

    def __init__(self, folder: Path, patience: timedelta = PATIENCE) -> None:
        self._folder = folder
        self._patience = patience

    @contextmanager
    def take(self, key: str) -> Iterator[None]:
        """Wait for whoever has the turn, then have it.

        Raises:
            StillTaken: it did not come within the patience; waiting longer would hold a thread that others need.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.turn"  # stays: see ``take_lock``
        turn = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            deadline = time.monotonic() + self._patience.total_seconds()
            while not _is_ours(turn):
                if time.monotonic() >= deadline:
                    raise StillTaken
                time.sleep(0.02)
            yield
        finally:
            os.close(turn)


def _is_ours(turn: int) -> bool:
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
