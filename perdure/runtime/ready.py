"""How a child says that it is ready, and how the supervisor finds out."""

from __future__ import annotations

import http.client
import os
import socket
from pathlib import Path

from perdure.runtime.state import write_whole
from perdure.settings import Settings

WORKER = "worker"
PROBE_SECONDS = 1.0


def tell_ready(settings: Settings, name: str) -> None:
    """Say that this process does its work from now on. The worker calls it once it polls. May be called twice."""
    path = _path(settings, name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(path, f"{os.getpid()}\n")


def has_told(settings: Settings, name: str, pid: int) -> bool:
    """Whether process ``pid`` called :func:`tell_ready`; an earlier process's word does not count."""
    try:
        return _path(settings, name).read_text("ascii").strip() == str(pid)
    except OSError:
        return False


def answers(path: Path) -> bool:
    """Whether the API behind the Unix socket ``path`` says that it is healthy."""
    connection = _UnixConnection(path)
    try:
        connection.request("GET", "/v1/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _path(settings: Settings, name: str) -> Path:
    return settings.socket.parent / f"{name}.ready"


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PROBE_SECONDS)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PROBE_SECONDS)
        self.sock.connect(self._path)
