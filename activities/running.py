"""How every activity runs: the library in a thread, heartbeats beside it, errors told to Temporal by kind."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import NoReturn, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from perdure.contracts import names
from perdure.errors import EffectUnknown, LookFailed, PerdureError, SetupError
from perdure.store.trouble import StoreTrouble
from perdure.workspace.git_process import GitError

Result = TypeVar("Result")

_BEAT_SECONDS = 1.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 10.0
_LONGEST_LOOK = 60.0
"""Seconds between two looks at a server that asks for a longer pause: somebody may have cancelled meanwhile."""
_FULL = {errno.ENOSPC, errno.EDQUOT}
_NO_SPACE = os.strerror(errno.ENOSPC)
_THREADS = ThreadPoolExecutor(max_workers=32, thread_name_prefix="activity")


_HELD_UP: contextvars.ContextVar[list[str]] = contextvars.ContextVar("held_up")
"""What the activity of this thread waits for, in words; one or none. Its heartbeat tells it to whoever asks."""

_STOPPED: contextvars.ContextVar[threading.Event] = contextvars.ContextVar("stopped")


def is_stopped() -> bool:
    """Whether Temporal asked the activity of this thread to end; what runs long looks now and then."""
    return _STOPPED.get().is_set()


async def in_thread(work: Callable[[], Result]) -> Result:
    """Run ``work`` in a thread until it ends, heartbeating, so that a dead worker is noticed within seconds.

    A cancelled activity leaves its thread to end by itself (:func:`is_stopped` tells it): every step is either private
    or guarded by the ledger.

    Raises:
        ApplicationError: ``work`` raised; its type is the error's class.
    """
    loop = asyncio.get_running_loop()
    stopped = threading.Event()
    context = contextvars.copy_context()
    context.run(_STOPPED.set, stopped)
    held_up: list[str] = []
    context.run(_HELD_UP.set, held_up)
    task = loop.run_in_executor(_THREADS, lambda: context.run(work))
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_BEAT_SECONDS)
            if not task.done():
                activity.heartbeat(*held_up)
        return task.result()
    except asyncio.CancelledError:
        stopped.set()
        raise
    except Exception as error:
        trouble = find_trouble(error) or (error if isinstance(error, LookFailed) else None)
        if trouble is None:
            raise_failure(error)
        # Without its causes: they say nothing more, and with them the server keeps no word of a pending failure (4 KB).
        raise to_application_error(trouble) from None


def made(folder: Path) -> Path:
    """Return a private folder, made when it is missing."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def until_stored(write: Callable[[], Result]) -> Result:
    """Return what ``write`` gives, asked again for as long as a store cannot be used.

    For what nobody could find out again: an attempt that gave up here would leave an effect of unknown fate, although
    this process knows it. If it is given out again meanwhile, the next attempt waits for its turn.
    """
    pause = _FIRST_PAUSE_SECONDS
    while True:
        held_up = _HELD_UP.get([])
        try:
            written = write()
            held_up.clear()
            return written
        except StoreTrouble as trouble:
            held_up[:] = [trouble.message]
            activity.logger.warning("%s", trouble.message)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def again_later(message: str, kind: str, *, after: timedelta | None = None) -> ApplicationError:
    """An expected "not yet": the activity is tried again, and nobody's log is alarmed."""
    return ApplicationError(message, type=kind, next_retry_delay=after, category=ApplicationErrorCategory.BENIGN)


def find_trouble(error: Exception) -> StoreTrouble | None:
    """The trouble that an error comes down to: no attempt is spent and nothing fails for it; ``None`` for any other.

    A full disk beneath a workspace is such a one, whether the system says so or git does.
    """
    if isinstance(error, StoreTrouble):
        return error
    is_full = isinstance(error, OSError) and error.errno in _FULL
    if not is_full and not (isinstance(error, GitError) and _NO_SPACE in error.stderr):
        return None
    return StoreTrouble(f"A disk is full ({error}). Free some space; the step is begun again by itself.")


def raise_failure(error: Exception) -> NoReturn:
    """Raise what Temporal is told of ``error``, caused by it; what is Temporal's already is raised as it is.

    An error that is its own cause could not be told at all: converting it would never end.
    """
    failure = to_application_error(error)
    if failure is error:
        raise failure
    raise failure from error


def to_application_error(error: Exception) -> ApplicationError:
    """Map an error to Temporal's: what a person or a policy must act on is never retried, a machine's state is.

    An error that nobody foresaw ends the step with its text instead of being retried for ever out of sight.
    """
    if isinstance(error, ApplicationError):
        return error
    kind = type(error).__name__
    if isinstance(error, StoreTrouble):
        activity.logger.warning("%s", error.message)  # one line an attempt: the log may lie on the same full disk
        return again_later(error.message, names.STORE_TROUBLE)
    if isinstance(error, LookFailed):
        after = None if error.after_seconds is None else timedelta(seconds=min(error.after_seconds, _LONGEST_LOOK))
        return again_later(error.message, kind, after=after)
    if isinstance(error, SetupError | EffectUnknown | OSError):
        return ApplicationError(str(error), type=kind, non_retryable=False)
    if isinstance(error, PerdureError):
        return ApplicationError(error.message, type=kind, non_retryable=True)
    activity.logger.exception("unforeseen error")
    return ApplicationError(f"Unforeseen {kind}: {error}. This is a fault in Perdure.", type=kind, non_retryable=True)
