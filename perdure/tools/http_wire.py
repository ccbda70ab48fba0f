"""One HTTP request over a connection to a checked address, one deadline over all of it. Imported when first used."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import httpcore

from perdure.errors import ToolFault, ToolUnavailable
from perdure.tools.links import Link

Connect = Callable[[str, int, float], socket.socket]
"""Address, port and seconds to an open connection; raises ``OSError``."""

_PATIENCE = 0.5
"""Seconds between two questions whether the call was stopped."""


@dataclass(frozen=True)
class Response:
    """What a server answered: at most as much of its body as was allowed."""

    status: int
    headers: dict[str, str]
    """Lower-case names; of several the first."""
    body: bytes
    is_cut: bool


@dataclass(frozen=True)
class Bounds:
    """How long and how much."""

    deadline: float
    """By ``time.monotonic``."""
    body_bytes: int
    is_stopped: Callable[[], bool]

    def left(self) -> float:
        """Seconds that one step may still take.

        Raises:
            ToolFault: the call was stopped.
            ToolUnavailable: there are none.
        """
        if self.is_stopped():
            raise ToolFault("The request was stopped.")
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise ToolUnavailable("The server took longer than the call may. Try later, or ask for less.")
        return seconds


def fetch(link: Link, address: str, bounds: Bounds, connect: Connect, headers: dict[str, str]) -> Response:
    """Ask once, following nothing.

    Raises:
        ToolUnavailable: nobody answered in time, or no proper HTTP.
        ToolFault: the call was stopped.
    """
    host = f"[{link.name}]" if link.host.startswith("[") else link.name
    url = httpcore.URL(scheme=link.scheme, host=host, port=link.port, target=link.target)
    sent: dict[bytes | str, bytes | str] = {
        "Host": link.authority,
        "User-Agent": "perdure",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
    sent.update(headers)
    backend = _Backend(address, bounds, connect)
    try:
        with (
            httpcore.ConnectionPool(ssl_context=_tls(), network_backend=backend) as pool,
            pool.stream("GET", url, headers=sent) as response,
        ):
            names = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers[::-1]}
            body, is_cut = _read_body(response.iter_stream(), bounds)
            return Response(response.status, names, body, is_cut)
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError) as error:
        raise ToolUnavailable(f"{link.authority} did not answer ({error or type(error).__name__}).") from None


def open_connection(address: str, port: int, seconds: float) -> socket.socket:
    """Connect to an address; no name is resolved."""
    return socket.create_connection((address, port), seconds)


def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _read_body(pieces: Iterable[bytes], bounds: Bounds) -> tuple[bytes, bool]:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > bounds.body_bytes:
            return bytes(body[: bounds.body_bytes]), True
    return bytes(body), False


class _Backend(httpcore.NetworkBackend):
    """Connects to the checked address, whatever the host is called; TLS still asks for the host's name."""

    def __init__(self, address: str, bounds: Bounds, connect: Connect) -> None:
        self._address = address
        self._bounds = bounds
        self._connect = connect

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        """Open the connection; ``host`` is not looked at."""
        return _Stream(self._connect(self._address, port, min(self._bounds.left(), 10.0)), self._bounds)


class _Stream(httpcore.NetworkStream):
    """A socket with one deadline over all its steps: a server that gives a byte a second is not waited for."""

    def __init__(self, connection: socket.socket, bounds: Bounds) -> None:
        self._connection = connection
        self._bounds = bounds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what is there."""
        while True:
            self._connection.settimeout(min(self._bounds.left(), _PATIENCE))
            try:
                return self._connection.recv(max_bytes)
            except TimeoutError:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of it."""
        self._connection.settimeout(self._bounds.left())
        self._connection.sendall(buffer)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Go on encrypted, with a server that proves ``server_hostname``."""
        self._connection.settimeout(self._bounds.left())
        return _Stream(ssl_context.wrap_socket(self._connection, server_hostname=server_hostname), self._bounds)

    def get_extra_info(self, info: str) -> Any:
        """What httpcore asks about the connection."""
        return self._connection if info == "socket" else None
