"""A small service with records over HTTP: ``/records/<name>`` is read, put, patched and deleted; POST adds a line.

``/records`` lists them all.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Records:
    """What the service holds, and what was asked of it."""

    url: str = ""
    token: str = ""
    """When set, every request must carry it as a bearer token."""
    held: dict[str, Any] = field(default_factory=dict)
    lines: list[Any] = field(default_factory=list)
    """What POST to ``/lines`` has added; one with a key that came before is not added again."""
    keys: dict[str, Any] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    """``PUT /records/a`` of every request, in order."""
    headers: list[dict[str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What happens to the next changes: ``cut`` (before it is done), ``cut after``, ``503``, ``429``, ``302``."""
    honours_keys: bool = True

    def asked(self, method: str) -> list[str]:
        """The log's requests of a method."""
        return [line for line in self.log if line.startswith(method + " ")]


class _Handler(BaseHTTPRequestHandler):
    records: Records
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        records, method = self.records, self.command
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        records.log.append(f"{method} {self.path}")
        records.headers.append({name.lower(): value for name, value in self.headers.items()})
        if records.token and self.headers.get("Authorization") != f"Bearer {records.token}":
            return self._answer(401, {"error": "who are you?"})
        fault = records.faults.pop(0) if records.faults and method != "GET" else ""
        if fault == "cut":
            return self._cut()
        if fault in ("503", "429"):
            return self._answer(int(fault), {"error": "busy"}, {"Retry-After": "0"} if fault == "429" else {})
        if fault == "302":
            return self._answer(302, {}, {"Location": "http://127.0.0.1:1/elsewhere"})
        status, answer = self._change(method, body)
        return self._cut() if fault == "cut after" else self._answer(status, answer)

    def _change(self, method: str, body: bytes) -> tuple[int, Any]:
        records, name = self.records, self.path.rpartition("/")[2]
        given = json.loads(body) if body else None
        if self.path == "/lines":
            key = self.headers.get("Idempotency-Key", "")
            if method == "POST" and not (records.honours_keys and key in records.keys):
                records.lines.append(given)
                records.keys[key] = given
            return 200, {"lines": records.lines}
        if self.path == "/records" and method == "GET":
            return 200, {"items": [{"id": key, **value} for key, value in records.held.items()]}
        if method == "PUT":
            records.held[name] = given
        elif method == "PATCH" and name in records.held:
            records.held[name] = {**records.held[name], **given}
        elif method == "DELETE":
            return (200 if records.held.pop(name, None) is not None else 404), {}
        if name not in records.held:
            return 404, {"error": f"no {name}"}
        return 200, records.held[name]

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST = _serve

    def _answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def serve_records() -> Iterator[Records]:
    """Serve on a loopback port until the block ends."""
    records = Records()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"records": records}))
    records.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield records
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
