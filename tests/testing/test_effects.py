"""The kit for effects: every new shipped kind survives it on the real thing, and it catches what does not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import Inverse
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Found, Probe
from perdure.testing.effect_attempts import NotReached
from perdure.testing.effects import CRASH_POINTS, EffectBench, crash_points
from perdure.testing.postgres import fresh_database, postgres_server
from tests.support.records import Records, serve_records
from tests.support.repositories import git, make_project

SAMPLE = 5


def sampled(points: tuple[str, ...], every: int = SAMPLE) -> list[Any]:
    """Every fifth point in the ordinary tests, all of them in ``make torture``."""
    return [
        pytest.param(point, id=point, marks=[] if at % every == 3 else [pytest.mark.torture])
        for at, point in enumerate(points)
    ]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> EffectBench:
    """One bench for all points: the shipped kinds."""
    return EffectBench(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def records() -> Iterator[Records]:
    """A service over HTTP."""
    with serve_records() as served:
        yield served


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL database."""
    with postgres_server(tmp_path_factory.mktemp("kit")) as url:
        fresh = fresh_database(url).replace("+psycopg", "")
        with closing(psycopg.connect(fresh, autocommit=True)) as connection:
            connection.execute("CREATE TABLE orders (id integer PRIMARY KEY)")
        yield fresh


@pytest.mark.parametrize("point", sampled(CRASH_POINTS))
def test_link_survives(shared: EffectBench, tmp_path: Path, point: str) -> None:
    """files.link on a real link."""
    for name in ("blue", "green"):
        (tmp_path / name).mkdir()
    link = tmp_path / "current"
    link.symlink_to("blue")
    shared.survive(point, "files.link", {"path": str(link), "to": "green"}, look=link.readlink)


@pytest.mark.parametrize("point", sampled(CRASH_POINTS))
def test_request_survives(shared: EffectBench, records: Records, point: str) -> None:
    """http.request on a real server, which counts what it did."""
    url = f"{records.url}/records/{point.replace(' ', '-').replace(':', '')}"
    probe = {"http": url, "json": {"/a": 1}, "before": {"status": 404}, "within": "1s"}
    shared.survive(
        point,
        "http.request",
        {"url": url, "method": "PUT", "json": {"a": 1}},
        look=lambda: dict(records.held),
        probe=probe,
        undo={"method": "DELETE"},
    )


@pytest.mark.parametrize("point", sampled(CRASH_POINTS))
def test_statement_on_sqlite_survives(shared: EffectBench, tmp_path: Path, point: str) -> None:
    """sql.execute on a real file: the order is there once."""
    file = tmp_path / "orders.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE orders (id integer)")

    def look() -> list[Any]:
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute("SELECT id FROM orders").fetchall()

    arguments = {"database": str(file), "statement": "INSERT INTO orders VALUES (7)", "rows": 1}
    step = {"probe": "SELECT 1 FROM orders WHERE id = 7", "undo": {"statement": "DELETE FROM orders WHERE id = 7"}}
    shared.survive(point, "sql.execute", arguments, look=look, count=lambda: len(look()), **step)


@pytest.mark.parametrize("point", sampled(CRASH_POINTS))
def test_statement_on_postgres_survives(tmp_path: Path, database: str, point: str) -> None:
    """sql.execute on a real server: a transaction of a killed attempt never comes after the next one looked."""

    def look() -> list[Any]:
        with closing(psycopg.connect(database)) as connection:
            return connection.execute("SELECT id FROM orders").fetchall()

    bench = EffectBench(tmp_path, secrets={"orders": database})
    step = {"probe": "SELECT 1 FROM orders WHERE id = 7", "undo": {"statement": "DELETE FROM orders WHERE id = 7"}}
    arguments = {"database": "orders", "statement": "INSERT INTO orders VALUES (7)"}
    bench.survive(point, "sql.execute", arguments, look=look, count=lambda: len(look()), **step)


@pytest.mark.parametrize("point", sampled(crash_points(undo=False)))
def test_backup_survives(shared: EffectBench, tmp_path: Path, point: str) -> None:
    """sqlite.backup: the file is there whole, and no half of one beside it."""
    file, to = tmp_path / "orders.db", tmp_path / "to"
    to.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE orders (id integer)")
    arguments = {"database": str(file), "to": str(to / "copy.db")}
    shared.survive(point, "sqlite.backup", arguments, look=lambda: sorted(path.name for path in to.iterdir()))
    assert [path.name for path in to.iterdir()] == ["copy.db"]


@dataclass
class Line:
    """Adds a line to a file, in the way that a test wants."""

    way: str = ""
    kind = "test.line"
    version = 1
    always_reversible = True
    settle = timedelta(0)

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: file."""
        body: JsonDict = {"file": request.arguments["file"], "gone": False}
        if self.way == "plan writes":
            Path(body["file"]).write_text("planned\n")
        inverse = Inverse(summary="remove", kind=self.kind, version=1, body={**body, "gone": True})
        return EffectDraft(body=body, summary="add a line", target=f"file:{body['file']}", inverse=inverse)

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """Nothing has to hold."""
        return []

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Is there a line?"""
        if self.way == "blind":
            return Probe(Found.unknown, "cannot see")
        is_there = bool(Path(body["file"]).read_text()) and self.way != "probe lies"
        return Probe(Found.done if is_there != body["gone"] else Found.not_done)

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Write it."""
        file = Path(body["file"])
        if not body["gone"]:
            file.write_text(file.read_text() + "line\n")
        elif self.way != "undo leaves":
            file.write_text("")
        return {}

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """Nothing to see."""
        return []


def line(tmp_path: Path, way: str, point: str, **more: Any) -> None:
    file = tmp_path / "lines"
    file.write_text("")
    bench = EffectBench(tmp_path / "bench", [Line(way)])
    lines = {"look": file.read_text, "count": lambda: len(file.read_text().splitlines())}
    bench.survive(point, "test.line", {"file": str(file)}, **lines, **more)


def test_sound_effect_survives(tmp_path: Path) -> None:
    """A user's kind passes with nothing but its class."""
    line(tmp_path, "", "do: after do")


@pytest.mark.parametrize(
    ("way", "point", "told"),
    [
        ("probe lies", "do: after do", "happened 2 times"),
        ("undo leaves", "undo: before do", "left 'line"),
        ("blind", "do: after do", "ended unknown"),
        ("plan writes", "plan: after plan", "planning changed the world"),
    ],
)
def test_unsound_effect_is_caught(tmp_path: Path, way: str, point: str, told: str) -> None:
    """What a crash would bring out in production, the kit brings out before."""
    with pytest.raises(AssertionError, match=told):
        line(tmp_path, way, point)


def test_kind_that_cannot_tell_ends_as_unknown(tmp_path: Path) -> None:
    """Honest doubt passes when the test allows it; it was not done twice."""
    line(tmp_path, "blind", "do: after do", may_be_unknown=True)
    assert (tmp_path / "lines").read_text() == "line\n"


def test_point_that_is_not_reached_is_said(tmp_path: Path) -> None:
    """A test that killed nothing proves nothing."""
    with pytest.raises(NotReached, match="before dance"):
        line(tmp_path, "", "do: before dance")


def test_what_is_no_effect_is_said_at_once(tmp_path: Path) -> None:
    """Before anything runs."""
    with pytest.raises(AssertionError, match="no effect"):
        EffectBench(tmp_path, [object()])  # type: ignore[list-item]


@pytest.mark.parametrize("point", sampled(CRASH_POINTS, every=15))
@pytest.mark.parametrize("kind", ["git.branch", "git.revert"])
def test_branch_and_revert_survive(shared: EffectBench, tmp_path: Path, kind: str, point: str) -> None:
    """On a real repository with a checkout: the branch is where it shall be once, and back."""
    repo = make_project(tmp_path).path
    bad = git(repo, "rev-parse", "HEAD")
    given = {"name": "stable", "at": bad} if kind == "git.branch" else {"commit": bad, "branch": "main"}

    def look() -> tuple[str, str]:
        return git(repo, "for-each-ref", "--format=%(refname) %(objectname)"), git(repo, "status", "--porcelain")

    shared.survive(point, kind, {"repo": str(repo), **given}, look=look)
