"""Listening: a Unix socket that only its owner can use and, when asked for, a TCP port; one uvicorn for both."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from perdure.errors import SetupError

log = logging.getLogger("perdure.api")

GRACE_SECONDS = 3
"""How long open requests (long polls) may take to end when the server is told to stop."""

_BACKLOG = 128


@contextmanager
def unix_socket(path: Path) -> Iterator[socket.socket]:
    """Yield a listening socket (0600) in a folder that only we can enter (0700); a stale one is replaced.

    Raises:
        SetupError: another API listens there, or the folder is not safely ours.
    """
    _check_folder(path.parent)
    with _only_one(path.with_suffix(".lock")), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        path.unlink(missing_ok=True)  # ours to remove: we hold the lock
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        except OSError as error:
            raise SetupError(f"The API cannot listen on {path} ({error}). Choose a shorter --data path.") from error
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def tcp_socket(listen: str) -> Iterator[socket.socket]:
    """Yield a listening socket on ``host:port`` (an IPv6 host in brackets; port 0: any free one).

    Raises:
        SetupError: the address cannot be used.
    """
    host, _, port = listen.rpartition(":")
    try:
        if int(port) > 65535:  # the C library would take it modulo 65536
            raise ValueError(f"there is no port {port}")
        family, kind, _, _, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
            yield listener
    except (OSError, ValueError) as error:
        raise SetupError(f"The API cannot listen on {listen} ({error}). Choose another with --listen.") from error


def host_names(listen: str, listener: socket.socket, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the Host values that the TCP door answers to: those of the settings, else the address itself."""
    if allowed:
        return allowed
    port = listener.getsockname()[1]
    return (f"{listen.rpartition(':')[0]}:{port}",)


def make_server(
    app: ASGIApp, unix_door: ASGIApp, tcp_door: ASGIApp | None, *, uid: int | None = None
) -> uvicorn.Server:
    """Return a server that sends each connection through the door of its socket; ``app`` gets start-up and shut-down.

    ``uid``: whose processes may use the Unix socket; our own by default. Run it with ``serve(sockets=[…])``, which ends
    on SIGTERM and SIGINT.
    """
    config = uvicorn.Config(
        app,
        http=_make_protocol(unix_door, tcp_door, os.geteuid() if uid is None else uid),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)


def peer_uid(connection: Any) -> int:
    """Return the uid of the process at the other end of a Unix socket, as the kernel knows it."""
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(uid)


def _make_protocol(unix_door: ASGIApp, tcp_door: ASGIApp | None, uid: int) -> type[asyncio.Protocol]:
    class DoorProtocol(H11Protocol):
        """Chooses the door by the socket; strangers at the Unix socket are hung up on before a byte is read."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            connection = transport.get_extra_info("socket")
            super().connection_made(transport)
            if connection.family != socket.AF_UNIX:
                self.app = tcp_door
                return
            self.app = unix_door
            found = peer_uid(connection)
            if found != uid:
                log.warning("a process of uid %d was refused at the Unix socket", found)
                transport.abort()

    return DoorProtocol


def _check_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise SetupError(
            f"{folder} has mode {stat.S_IMODE(found.st_mode):o} and uid {found.st_uid}; expected a folder, mode 700, "
            f"uid {os.geteuid()}. Whoever can enter it could speak for you: `chmod 700 {folder}`."
        )


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Hold a lock for as long as we listen. A lock file is never removed: another process may be opening it."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SetupError(f"Another API already listens beneath {lock.parent}. `perdure status` shows it.") from None
        yield
    finally:
        os.close(descriptor)
