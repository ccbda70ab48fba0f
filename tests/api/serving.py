"""A real uvicorn on a real Unix socket and a real TCP port, in a thread of the test process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from perdure.api.server import make_server, tcp_socket, unix_socket

LIMIT_SECONDS = 30


@dataclass(frozen=True)
class Listening:
    """Where a server listens."""

    path: Path
    address: str
    """host:port"""

    def unix(self, token: str = "", **options: Any) -> httpx.Client:
        """A client at the Unix socket."""
        transport = httpx.HTTPTransport(uds=str(self.path))
        return httpx.Client(transport=transport, base_url="http://perdure", headers=bearer(token), **options)

    def tcp(self, token: str = "", **options: Any) -> httpx.Client:
        """A client at the TCP port."""
        return httpx.Client(base_url=f"http://{self.address}", headers=bearer(token), trust_env=False, **options)


def bearer(token: str) -> dict[str, str]:
    """The header that a token goes into; none without one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


@contextmanager
def serving(
    folder: Path, app: ASGIApp, make_doors: Callable[[str], tuple[ASGIApp, ASGIApp]], *, uid: int | None = None
) -> Iterator[Listening]:
    """Serve ``app``; ``make_doors`` gets the TCP address and gives (Unix door, TCP door)."""
    with ExitStack() as stack:
        path = folder / "run" / "api.sock"
        unix = stack.enter_context(unix_socket(path))
        tcp = stack.enter_context(tcp_socket("127.0.0.1:0"))
        address = f"127.0.0.1:{tcp.getsockname()[1]}"
        server = make_server(app, *make_doors(address), uid=uid)
        stack.enter_context(_in_thread(server, [unix, tcp]))
        yield Listening(path, address)


@contextmanager
def _in_thread(server: uvicorn.Server, sockets: list[socket.socket]) -> Iterator[None]:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(server.serve(sockets=sockets))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(LIMIT_SECONDS)
        assert not thread.is_alive()
        assert not failures
