"""Tool calls at work in this worker: each in a thread of its own, so that it may outlast the activity that began it."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from activities.running import is_stopped
from perdure.contracts.agent_run import CallResult

_LOOK_SECONDS = 0.2
"""How often whoever waits looks whether its activity is wanted any longer."""


@dataclass
class Working:
    """One call at work."""

    is_beside: bool = False
    """The model was told that it goes on: its end is news, not the call's result. Read and set under ``lock``."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _result: CallResult | None = None
    _error: BaseException | None = None

    def run(self, work: Callable[[Working], CallResult]) -> None:
        """Do it, and keep what it came to."""
        try:
            self._result = work(self)
        except BaseException as error:  # raised again where somebody waits for it
            self._error = error
        finally:
            self._ended.set()

    def has_ended(self) -> bool:
        """Whether it has."""
        return self._ended.is_set()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the end, at most so long (``None``: as long as it takes), or until the activity is not wanted."""
        deadline = time.monotonic() + seconds if seconds is not None else None
        while not self._ended.wait(_LOOK_SECONDS if deadline is None else min(_LOOK_SECONDS, _left(deadline))):
            if is_stopped() or (deadline is not None and time.monotonic() >= deadline):
                return self._ended.is_set()
        return True

    def result(self) -> CallResult:
        """What it came to, once it has ended; raises what it raised."""
        if self._error is not None:
            raise self._error
        assert self._result is not None  # it has ended, and not with an error
        return self._result


class CallThreads:
    """The calls at work, by key."""

    def __init__(self) -> None:
        self._working: dict[str, Working] = {}
        self._lock = threading.Lock()

    def join(self, key: str, work: Callable[[Working], CallResult], *, is_beside: bool) -> Working:
        """Return the call of that key as it works here already, or begin it: nobody begins one twice."""
        with self._lock:
            found = self._working.get(key)
            if found is not None and not found.has_ended():
                return found
            begun = self._working[key] = Working(is_beside=is_beside)
        context = contextvars.copy_context()
        # A daemon: a worker that is told to end does not wait for it. What it started in the sandbox dies with it.
        threading.Thread(target=lambda: context.run(self._run, key, begun, work), name=key[-15:], daemon=True).start()
        return begun

    def _run(self, key: str, begun: Working, work: Callable[[Working], CallResult]) -> None:
        begun.run(work)
        with self._lock:
            if self._working.get(key) is begun:
                del self._working[key]


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
