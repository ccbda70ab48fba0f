"""A place that messages are sent to: a real HTTP server that keeps what it is told, and can refuse or hold it."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Ear:
    """What was heard."""

    port: int = 0
    heard: list[tuple[str, str]] = field(default_factory=list)
    """(title, body) of each message, in the order of their coming."""
    keys: list[str] = field(default_factory=list)
    """Idempotency keys, one for each message."""
    status: int = 200
    """What is answered."""
    go: threading.Event = field(default_factory=threading.Event)
    """Answers wait for it; set at first."""

    @property
    def url(self) -> str:
        """Its address in apprise's words."""
        return f"json://127.0.0.1:{self.port}/hook-of-the-team"

    @property
    def titles(self) -> list[str]:
        """First lines of what was heard."""
        return [title for title, _ in self.heard]


@contextmanager
def listening() -> Iterator[Ear]:
    """Listen on a free port."""
    ear = Ear()
    ear.go.set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            ear.keys.append(self.headers["Idempotency-Key"])
            ear.heard.append((said["title"], said["message"]))
            ear.go.wait(60)
            try:
                self.send_response(ear.status)
                self.end_headers()
            except OSError:
                return  # whoever asked is dead

        def log_message(self, format: str, *args: object) -> None:
            """Be quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    ear.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield ear
    finally:
        ear.go.set()
        server.shutdown()
        server.server_close()
        thread.join()
