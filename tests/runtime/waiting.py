"""Waiting in tests: for a process to be gone (told by the kernel), and for a condition with a limit."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterable

LIMIT_SECONDS = 30.0


def wait_gone(pids: Iterable[int], limit: float = LIMIT_SECONDS) -> None:
    """Return when every process of ``pids`` has ended; fail after ``limit`` seconds. Zombies count as ended."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            assert select.select([handle], [], [], limit)[0], f"process {pid} still runs"
        finally:
            os.close(handle)


def is_alive(pid: int) -> bool:
    """Whether ``pid`` runs."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not select.select([handle], [], [], 0)[0]
    finally:
        os.close(handle)


def wait_until(condition: Callable[[], bool], what: str, limit: float = LIMIT_SECONDS) -> None:
    """Return when ``condition`` holds; fail with ``what`` after ``limit`` seconds."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.01)
