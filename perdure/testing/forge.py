"""A small forge for tests: GitHub's and GitLab's API for releases and requests over HTTP, with a real bare repository.

Both languages speak about the same project: GitHub's beneath ``/api/v3``, GitLab's beneath ``/api/v4``. A branch
may be protected: a push to it is refused, only :meth:`Forge.merge` moves it. :meth:`Forge.fail` puts faults in its way.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from perdure.testing.forge_git import ForgeGit

Json = dict[str, Any]
Way = Literal["late", "500", "500 after", "die after", "cut", "retry", "401"]


@dataclass
class Fault:
    """What happens to requests of a method whose path matches, so many times."""

    method: str
    path: re.Pattern[str]
    way: Way
    times: int = 1
    seconds: float = 0.5


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    content_type: str

    def json(self) -> Json:
        """The body."""
        found: Json = json.loads(self.body or b"{}")
        return found


Told = tuple[int, Any]
"""Status and JSON (bytes are given as they are)."""


@dataclass
class Forge:
    """The project ``acme/orders`` and everything that was asked of it."""

    git: ForgeGit
    token: str = "t0ken-of-the-forge"
    releases: dict[int, Json] = field(default_factory=dict)
    assets: dict[int, Json] = field(default_factory=dict)
    """Of all releases, by id; ``release`` names whose it is, ``data`` is its content."""
    requests: dict[int, Json] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    """``POST /api/v3/repos/…`` of every request that was let in, oldest first."""
    faults: list[Fault] = field(default_factory=list)
    tells_digests: bool = True
    merges_at_once: str = ""
    """How a request is merged as soon as it is opened, as a merge queue does; empty: a person does it."""
    moved_to: str = ""
    """Where every request is redirected to; empty: nowhere."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    url: str = ""
    _last_id: int = 0

    project: str = "acme/orders"

    @property
    def github(self) -> str:
        """Base URL of GitHub's API."""
        return f"{self.url}/api/v3"

    @property
    def gitlab(self) -> str:
        """Base URL of GitLab's API."""
        return f"{self.url}/api/v4"

    def api(self, flavour: str) -> str:
        """Base URL of one of them."""
        return self.gitlab if flavour == "gitlab" else self.github

    def fail(self, method: str, path: str, way: Way, *, times: int = 1, seconds: float = 0.5) -> None:
        """Let the next requests come to grief; ``path`` is a regular expression found anywhere in the path."""
        self.faults.append(Fault(method, re.compile(path), way, times, seconds))

    def asked(self, start: str) -> list[str]:
        """Requests of the log that begin so."""
        return [line for line in self.log if line.startswith(start)]

    def new_id(self) -> int:
        """The next id."""
        self._last_id += 1
        return self._last_id

    def add_release(
        self, tag: str, notes: str, *, name: str = "", author: str = "somebody", draft: bool = False
    ) -> Json:
        """Make a release as a person would in the forge's pages."""
        made: Json = {"id": self.new_id(), "tag": tag, "name": name or tag, "notes": notes, "draft": draft}
        made |= {"prerelease": False, "author": author, "links": []}
        with self.lock:
            self.releases[made["id"]] = made
        return made

    def add_asset(self, release: int, name: str, data: bytes, *, state: str = "uploaded") -> Json:
        """Attach a file."""
        made: Json = {"id": self.new_id(), "release": release, "name": name, "data": data, "state": state}
        with self.lock:
            self.assets[made["id"]] = made
        return made

    def files_of(self, release: int) -> dict[str, bytes]:
        """Content of a release's whole assets, by name."""
        return {one["name"]: one["data"] for one in self.assets.values() if one["release"] == release}

    def merge(self, number: int, how: str = "merge", change: str = "") -> str:
        """Merge a request; ``change``: with one more line in its README. Return the commit that main is at then."""
        with self.lock:
            request = self.requests[number]
            commit = self.git.merge(request["base"], request["head"], how, change)
            request |= {"state": "merged", "merge_commit": commit}
        return commit

    def close(self, number: int) -> None:
        """Close a request unmerged."""
        self.requests[number]["state"] = "closed"

    def head_of(self, request: Json) -> str:
        """The commit that a request proposes: what its branch is at, or was at when it ended."""
        now = self.git.resolve(f"refs/heads/{request['head']}")
        if request["state"] == "open" and now:
            request["sha"] = now
        return str(request["sha"])

    def answer(self, asked: Asked) -> Told:
        """Let one of the two languages answer."""
        from perdure.testing import forge_github, forge_gitlab

        with self.lock:
            self.log.append(f"{asked.method} {asked.path}")
            room = forge_gitlab.answer if asked.path.startswith("/api/v4/") else forge_github.answer
            told = room(self, asked)
            for number in [key for key, one in self.requests.items() if one["state"] == "open"]:
                if self.merges_at_once:
                    self.merge(number, self.merges_at_once)
            return told

    def take_fault(self, asked: Asked) -> Fault | None:
        """The fault that stands in this request's way."""
        with self.lock:
            for fault in self.faults:
                if fault.times and fault.method == asked.method and fault.path.search(asked.path):
                    fault.times -= 1
                    return fault
        return None


def sha256(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    forge: Forge

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the forge keeps its own log."""

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        asked = Asked(self.command, parts.path, dict(parse_qsl(parts.query)), b"", self.headers.get("Content-Type", ""))
        fault = self.forge.take_fault(asked)
        length = int(self.headers.get("Content-Length") or 0)
        if fault is not None and fault.way == "cut":
            return self._cut(asked, length)
        asked = Asked(asked.method, asked.path, asked.query, self.rfile.read(length), asked.content_type)
        if not self._is_known() or (fault is not None and fault.way == "401"):
            return self._tell((401, {"message": "Bad credentials"}))
        return self._meet(fault, asked)

    def _meet(self, fault: Fault | None, asked: Asked) -> None:
        way: str = fault.way if fault else ""
        if fault and way == "late":
            time.sleep(fault.seconds)
        if fault and way == "retry":
            return self._tell((429, {"message": "slow down"}), {"Retry-After": str(int(fault.seconds))})
        if way == "500":
            return self._tell((500, {"message": "it broke"}))
        if self.forge.moved_to:
            return self._tell((301, {"message": "Moved"}), {"Location": self.forge.moved_to})
        told = self.forge.answer(asked)
        if way == "die after":
            return self._hang_up()
        return self._tell((500, {"message": "it broke afterwards"}) if way == "500 after" else told)

    def _cut(self, asked: Asked, length: int) -> None:
        """Take half of an upload, keep it as the real ones do, and hang up."""
        half = self.rfile.read(length // 2)
        found = re.search(r"/releases/(\d+)/assets$", asked.path)
        if found:
            self.forge.add_asset(int(found[1]), asked.query["name"], half, state="starter")
        self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _is_known(self) -> bool:
        given = self.headers.get("PRIVATE-TOKEN") or self.headers.get("Authorization", "").removeprefix("Bearer ")
        return given == self.forge.token

    def _tell(self, told: Told, headers: Mapping[str, str] = {}) -> None:
        status, value = told
        data = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Type", "application/octet-stream" if isinstance(value, bytes) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the server's."""


@contextmanager
def serve_forge(repository: Path, *, protected: str = "") -> Iterator[Forge]:
    """Serve a forge over the bare ``repository`` on a free loopback port. ``protected``: a branch nobody pushes to."""
    forge = Forge(ForgeGit(repository))
    if protected:
        forge.git.protect(protected)
    handler = type("Handler", (_Handler,), {"forge": forge})
    with _Server(("127.0.0.1", 0), handler) as server:
        forge.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="forge")
        thread.start()
        try:
            yield forge
        finally:
            server.shutdown()
            thread.join()


Route = tuple[str, str, Callable[..., Told]]
"""Method, regular expression of the path beneath the project, what answers."""


def route(routes: list[Route], forge: Forge, asked: Asked, path: str) -> Told:
    """Find who answers; groups of the path come unquoted."""
    for method, pattern, handler in routes:
        found = re.fullmatch(pattern, path)
        if method == asked.method and found:
            return handler(forge, asked, *(unquote(group) for group in found.groups()))
    return 404, {"message": "Not Found"}
