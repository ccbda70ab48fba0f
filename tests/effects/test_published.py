"""shell.run with an index as its probe: a green retry with nothing published cannot happen."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from perdure.effects.base import Found
from perdure.errors import EffectFailed, EffectUnknown, UserError
from tests.support.world import Planned, World

DATA = b"the package"
SHA256 = hashlib.sha256(DATA).hexdigest()
SHA512 = "sha512-" + base64.b64encode(hashlib.sha512(DATA).digest()).decode()


@dataclass
class Index:
    """Pages by path; a path that is not there is a 404."""

    url: str = ""
    pages: dict[str, bytes] = field(default_factory=dict)
    late: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """(so many times it is not shown yet, the page)."""
    broken: bool = False

    def read(self, path: str) -> tuple[int, bytes]:
        """Status and body."""
        if self.broken:
            return 503, b"broken"
        if path in self.late:
            times, page = self.late[path]
            self.late[path] = (times - 1, page)
            return (404, b"") if times > 0 else (200, page)
        return (200, self.pages[path]) if path in self.pages else (404, b"not found")


@pytest.fixture
def index() -> Iterator[Index]:
    """An index that the test fills."""
    served = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = served.read(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield served
        server.shutdown()
        thread.join()


def pypi(*files: str) -> bytes:
    """A project page of the simple API."""
    return json.dumps({"files": [{"filename": name, "hashes": {"sha256": SHA256}} for name in files]}).encode()


PAGES = {
    "pypi": ("/my-orders/", pypi("my_orders-1.2.0-py3-none-any.whl"), pypi("my_orders-1.3.0.tar.gz"), "My_Orders"),
    "npm": (
        "/@acme%2Forders",
        json.dumps({"versions": {"1.2.0": {}}}).encode(),
        json.dumps(
            {"versions": {"1.3.0": {"dist": {"tarball": "https://x/o-1.3.0.tgz", "integrity": SHA512}}}}
        ).encode(),
        "@acme/orders",
    ),
    "crates": (
        "/or/de/orders",
        b'{"name":"orders","vers":"1.2.0","cksum":"0"}\n',
        b'{"name":"orders","vers":"1.2.0","cksum":"0"}\n'
        + json.dumps({"name": "orders", "vers": "1.3.0", "cksum": SHA256}).encode()
        + b"\n",
        "orders",
    ),
}
FILES = {
    "pypi": {"my_orders-1.3.0.tar.gz": SHA256},
    "npm": {"o-1.3.0.tgz": SHA512},
    "crates": {"orders-1.3.0.crate": f"sha256:{SHA256}"},
}


def plan(world: World, probe: Any, run: list[str] | None = None) -> Planned:
    """Plan a command that publishes."""
    return world.plan(
        "shell.run", {"run": run or ["true"]}, probe=probe, irreversible="Published is published.", runs_on="worker"
    )


def asking(index: Index, kind: str, **more: Any) -> dict[str, Any]:
    """The probe of one kind of index."""
    return {"index": kind, "url": index.url, "name": PAGES[kind][3], "version": "1.3.0", "within": "1s", **more}


@pytest.mark.parametrize("kind", PAGES)
def test_each_kind_of_index_is_read(world: World, index: Index, kind: str) -> None:
    """Not there while only other versions are; there with ours; another file under our name is somebody else's."""
    path, before, after, _ = PAGES[kind]
    planned = plan(world, asking(index, kind, hashes=FILES[kind]))
    assert planned.found() is Found.not_done, "no such package yet"
    index.pages[path] = before
    assert planned.found() is Found.not_done and planned.check() == []
    index.pages[path] = after
    assert planned.found() is Found.done
    planned.body["published"]["hashes"] = dict.fromkeys(FILES[kind], "sha256:" + "0" * 64)
    if kind == "npm":
        planned.body["published"]["hashes"] = dict.fromkeys(FILES[kind], "sha512:" + "0" * 128)
    assert planned.found() is Found.foreign
    assert "not ours" in planned.check()[0]
    assert planned.draft.ways_out == [index.url.removeprefix("http://")]


def test_a_command_that_ends_well_and_publishes_nothing_is_not_green(world: World, index: Index) -> None:
    """Exit code 0 and the index does not show it in time: in doubt, for a person, and never done."""
    planned = plan(world, asking(index, "pypi"))
    planned.do()
    with pytest.raises(EffectUnknown, match="does not have"):
        planned.verify()


def test_an_index_may_take_its_time(world: World, index: Index) -> None:
    """What turns up within the given time is done, and a "no" does not count before."""
    path, _, after, _ = PAGES["pypi"]
    planned = plan(world, asking(index, "pypi", within="30s"))
    assert planned.body["settle_seconds"] == 30
    planned.do()
    index.late[path] = (2, after)
    assert planned.verify() == []


def test_a_command_that_fails_after_publishing_is_done(world: World, index: Index) -> None:
    """A broken connection at the end of an upload: the index is asked, for as long as it may need."""
    path, _, after, _ = PAGES["pypi"]
    planned = plan(world, asking(index, "pypi", within="30s"), ["false"])
    index.late[path] = (2, after)
    assert planned.do()["code"] == 1
    index.late.clear()
    planned.body["published"]["within_seconds"] = 1
    with pytest.raises(EffectFailed, match="ended with 1"):
        planned.do()


def test_what_is_there_before_is_not_published_again(world: World, index: Index) -> None:
    """A version that the index shows already is refused when planning, not taken for ours."""
    path, _, after, _ = PAGES["pypi"]
    index.pages[path] = after
    with pytest.raises(UserError, match="already"):
        plan(world, asking(index, "pypi"))


def test_a_broken_index_is_no_answer(world: World, index: Index) -> None:
    """5xx and pages of another form say nothing: unknown, and nothing is begun."""
    planned = plan(world, asking(index, "npm"))
    index.pages["/@acme%2Forders"] = b"<html>"
    assert planned.found() is Found.unknown
    assert planned.check()


def test_a_page_can_be_asked(world: World, index: Index) -> None:
    """`http` with a status and a text, for everything else that shows a version."""
    planned = plan(world, {"http": f"{index.url}/version?now", "contains": "1.3.0", "within": "1s"})
    assert planned.found() is Found.not_done
    index.pages["/version?now"] = b"1.2.0"
    assert planned.found() is Found.not_done
    index.pages["/version?now"] = b"orders 1.3.0"
    assert planned.found() is Found.done and planned.verify() == []


@pytest.mark.parametrize(
    ("probe", "said"),
    [
        ({"index": None, "name": "x", "version": "1"}, "nothing says how it is told"),
        ({"index": "pypi", "name": "", "version": "1"}, "needs the `name`"),
        ({"index": "pypi", "name": "x", "version": "1"}, "`url` is ''"),
        ({"index": "pypi", "url": "https://x", "name": "x", "version": "1", "urls": 1}, "takes no 'urls'"),
        ({"http": "ftp://x"}, "expected a URL"),
        ({"http": "https://x", "within": "soon"}, "no duration"),
    ],
)
def test_a_probe_that_says_too_little_is_refused(world: World, probe: Any, said: str) -> None:
    """Wrong and missing words are named when planning."""
    with pytest.raises(UserError, match=said):
        plan(world, probe)
