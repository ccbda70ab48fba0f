"""Listens to a job's agents beside whatever else a command follows: turns as they end, text while it comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

import httpx

from perdure.cli.door import Door
from perdure.contracts.watching import LiveView
from perdure.errors import PerdureError

RETRY_SECONDS = 1.0


class Listener:
    """A thread that hears agents until it is closed. What it misses by a lost connection it is told again."""

    def __init__(self, door: Door, job_id: str, tell: Callable[[LiveView], None], *, since: str = "") -> None:
        """``tell`` is called in the thread. ``since``: time of the last turn that was told before, empty for all."""
        self._door, self._job_id, self._tell = door, job_id, tell
        self._since = since or None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="agents", daemon=True)

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, wait: float = 0.0) -> None:
        """Stop; first wait so many seconds for the rest. The thread reads a socket: it is left to end by itself."""
        if wait:
            self._thread.join(wait)
        self._closed.set()

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                for line in self._door.stream_lines("/v1/live", ref=self._job_id, since=self._since):
                    if self._closed.is_set():
                        return
                    self._hear(LiveView.model_validate_json(line))
                return  # the job has ended
            except (PerdureError, httpx.HTTPError, RuntimeError, ValueError):
                # Whoever follows the job says that the connection is lost; here it is only tried again.
                time.sleep(RETRY_SECONDS)

    def _hear(self, view: LiveView) -> None:
        if view.view is not None:
            self._since = view.view.at.isoformat()
        if view.kind != "calm":
            self._tell(view)
