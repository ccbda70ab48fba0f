"""A small real web server, and a network in which it stands at a public address."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PUBLIC = "93.184.215.14"
"""The address that names of the test resolve to."""

Page = tuple[int, dict[str, str], bytes]


@dataclass
class Web:
    """What the resolver says, what the server gives, and who was asked for what."""

    pages: dict[str, Page] = field(default_factory=dict)
    names: dict[str, list[list[str]]] = field(default_factory=dict)
    """Host → answers of the resolver, one after the other; the last one stays. A host that is not here is public."""
    resolved: list[str] = field(default_factory=list)
    connected: list[str] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """(Host header, path)."""
    port: int = 0
    speak: Callable[[socket.socket], None] | None = None
    """Speaks raw bytes instead of HTTP."""

    def resolve(self, host: str, port: int) -> list[str]:
        """The resolver port."""
        self.resolved.append(host)
        answers = self.names.get(host, [[PUBLIC]])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def connect(self, address: str, port: int, seconds: float) -> socket.socket:
        """The network port: every address leads to the one server."""
        self.connected.append(f"{address}:{port}")
        return socket.create_connection(("127.0.0.1", self.port), seconds)


@contextmanager
def serve() -> Iterator[Web]:
    """Run the server in threads of its own."""
    web = Web()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.requests.append((self.headers["Host"], self.path))
            if web.speak is not None:
                self.close_connection = True
                return web.speak(self.connection)
            status, headers, body = web.pages.get(self.path, (404, {}, b"nothing here"))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return None

        def log_message(self, *_: object) -> None:
            """Silent."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that goes away early is part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    web.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
