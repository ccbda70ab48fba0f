"""Runs an installation on a disk that fills up; prints what held. ``small_disk.py DATA SUPERVISOR…``"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from perdure.runtime.control import Status, down, status, up
from perdure.settings import Settings
from tests.runtime.waiting import wait_gone, wait_until


def pid(now: Status, name: str) -> int:
    """The pid of a process of the installation."""
    return next(process.pid for process in now.processes if process.name == name)


def main(settings: Settings, command: list[str]) -> None:
    """Fill the disk while the installation runs, kill a child, free the disk."""
    before = up(settings, command=command)
    big = settings.data / "blobs"
    with big.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 65536):
                continue
        except OSError as error:
            print(f"full: {os.strerror(error.errno or 0)}")
    worker = pid(before, "worker")
    os.kill(worker, signal.SIGKILL)
    wait_gone([worker])
    log = settings.logs / "supervisor.log"
    wait_until(lambda: not status(settings).running or _has_child_besides(before), "the worker is back")
    print(f"running: {status(settings).running}")
    big.unlink()
    wait_until(lambda: status(settings).phase == "ready" and pid(status(settings), "worker") != worker, log.read_text())
    print(f"same supervisor: {pid(status(settings), 'supervisor') == pid(before, 'supervisor')}")
    down(settings)


def _has_child_besides(before: Status) -> bool:
    """Whether the supervisor has a child that it did not have before."""
    supervisor = pid(before, "supervisor")
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return bool({int(child) for child in children} - {process.pid for process in before.processes})


if __name__ == "__main__":
    main(Settings(data=Path(sys.argv[1])), sys.argv[2:])
