"""One attempt of an effect at a time in a process: the ledger keeps processes apart, this keeps threads apart."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from datetime import timedelta


class StillTaken(Exception):
    """Whoever has the turn did not end in time."""


class Turns:
    """Lets threads with the same key through one after the other."""

    def __init__(self, patience: timedelta = timedelta(seconds=20)) -> None:
        self._patience = patience
        self._changed = threading.Condition()
        self._taken: set[Hashable] = set()

    @contextmanager
    def take(self, key: Hashable) -> Iterator[None]:
        """Wait for whoever has the turn, then have it.

        Raises:
            StillTaken: it did not come within the patience; waiting longer would hold a thread that others need.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: key not in self._taken, self._patience.total_seconds()):
                raise StillTaken
            self._taken.add(key)
        try:
            yield
        finally:
            with self._changed:
                self._taken.discard(key)
                self._changed.notify_all()
