"""sql.execute and sqlite.backup on real databases: one statement, one transaction, told by a query."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure.contracts.base import JsonDict
from perdure.effects.base import Found
from perdure.effects.sql_postgres import lock_number
from perdure.errors import EffectFailed, EffectNotBegun, EffectUnknown, UserError
from perdure.testing.postgres import fresh_database, postgres_server
from tests.support.world import Planned, World

SCHEMA = ("CREATE TABLE orders (id integer PRIMARY KEY, channel text)", "INSERT INTO orders VALUES (1, NULL)")


@dataclass
class Place:
    """A database, looked at from outside."""

    name: str
    """What a step names."""
    run: Callable[[str], list[Any]]

    def channels(self) -> list[Any]:
        return [row[0] for row in self.run("SELECT channel FROM orders ORDER BY id")]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server."""
    with postgres_server(tmp_path_factory.mktemp("sql")) as url:
        yield url


@pytest.fixture
def lite(world: World) -> Place:
    """A SQLite file."""
    file = world.folder / "orders.db"

    def run(statement: str) -> list[Any]:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()

    for statement in SCHEMA:
        run(statement)
    return Place(str(file), run)


@pytest.fixture
def server(world: World, postgres: str) -> Place:
    """A database on the server, by a secret."""
    url = fresh_database(postgres).replace("+psycopg", "")
    world.secrets["orders-db-url"] = url

    def run(statement: str) -> list[Any]:
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    for statement in SCHEMA:
        run(statement)
    return Place("orders-db-url", run)


@pytest.fixture(params=["lite", "server"])
def place(request: pytest.FixtureRequest) -> Place:
    """Either."""
    found: Place = request.getfixturevalue(request.param)
    return found


def fill(world: World, place: Place, **more: Any) -> Planned:
    """Set the channel of the one order; undone while it is ours."""
    arguments = {
        "database": place.name,
        "statement": "UPDATE orders SET channel = $1 WHERE id = $2",
        "parameters": ["web; drop", 1],
        "rows": 1,
        **more.pop("arguments", {}),
    }
    options: JsonDict = {
        "probe": {"query": "SELECT channel FROM orders WHERE id = $1", "parameters": [1], "expect": "web; drop"},
        "undo": {"statement": "UPDATE orders SET channel = NULL WHERE id = 1", "rows": 1},
    }
    return world.plan("sql.execute", arguments, **{**options, **more})


def test_statement_is_committed_and_taken_back(world: World, place: Place) -> None:
    """Values are bound, never pasted; the probe tells both ways."""
    planned = fill(world, place)
    planned.apply()
    assert place.channels() == ["web; drop"]
    assert planned.inverse.found() is Found.not_done
    planned.inverse.apply()
    assert place.channels() == [None]
    planned.apply()


def test_ddl_is_a_step_like_any_other(world: World, place: Place) -> None:
    """A column is added and dropped; `only_if` keeps the way back from destroying data."""
    probe = "SELECT count(*) FROM pragma_table_info('orders') WHERE name = 'note'"
    if place.name == "orders-db-url":
        probe = "SELECT 1 FROM information_schema.columns WHERE table_name = 'orders' AND column_name = 'note'"
    planned = world.plan(
        "sql.execute",
        {"database": place.name, "statement": "ALTER TABLE orders ADD COLUMN note text"},
        probe=probe,
        undo={
            "statement": "ALTER TABLE orders DROP COLUMN note",
            "only_if": "SELECT NOT EXISTS (SELECT 1 FROM orders WHERE note IS NOT NULL)",
        },
    )
    planned.apply()
    place.run("UPDATE orders SET note = 'kept'")
    assert "does not say yes" in planned.inverse.check()[0]
    with pytest.raises(EffectNotBegun, match="Nothing was run"):
        planned.inverse.do()
    place.run("UPDATE orders SET note = NULL")
    planned.inverse.apply()


def test_failure_commits_nothing(world: World, place: Place) -> None:
    """A broken statement, a constraint, another number of rows: rolled back, and said so."""
    for arguments in (
        {"statement": "UPDATE ordres SET channel = 1", "parameters": [], "rows": None},
        {"statement": "INSERT INTO orders VALUES (1, 'x')", "parameters": [], "rows": None},
        {"statement": "UPDATE orders SET channel = 'y' WHERE id = 9", "parameters": []},
    ):
        with pytest.raises(EffectNotBegun, match="rolled back"):
            fill(world, place, arguments=arguments, probe=None).do()
    assert place.channels() == [None]


def test_what_is_done_already_is_not_done_twice(world: World, place: Place) -> None:
    """`do` looks again inside its own transaction."""
    planned = fill(world, place)
    place.run("UPDATE orders SET channel = 'web; drop'")
    result = planned.do()
    assert result["rows"] == 0 and "gives web; drop" in result["found"]


def test_probe_tells_somebody_elses_change(world: World, place: Place) -> None:
    """With `before`, a value that is neither is drift, and is left alone."""
    probe = {"query": "SELECT channel FROM orders", "expect": "web; drop", "before": None}
    planned = fill(world, place, probe=probe)
    assert planned.found() is Found.not_done
    place.run("UPDATE orders SET channel = 'shop'")
    assert planned.found() is Found.foreign and "neither as before" in planned.check()[0]
    with pytest.raises(EffectNotBegun, match="Nothing was run"):
        planned.do()


def test_required_query_is_a_precondition(world: World, place: Place) -> None:
    """It is asked before, and once more in the transaction."""
    planned = fill(world, place, require={"query": "SELECT count(*) FROM orders", "expect": 2})
    assert "does not say yes" in planned.check()[0]
    with pytest.raises(EffectNotBegun, match="Nothing was run"):
        planned.do()


def test_without_a_probe_nothing_can_be_told(world: World, place: Place) -> None:
    """No marker is laid into the user's database: after a crash a person looks."""
    planned = fill(world, place, probe=None)
    assert planned.found() is Found.unknown and planned.check() == []
    planned.do()
    assert planned.verify() == []


def test_waits_for_the_transaction_of_a_dead_worker(world: World, server: Place) -> None:
    """While an earlier attempt's transaction may still commit, its lock makes the probe wait: then a no is a no."""
    planned = fill(world, server)
    url = world.secrets["orders-db-url"]
    name = f"orders-db-url\n{planned.body['probe']['query']}\n[1]"
    with psycopg.connect(url) as first:
        first.execute("SELECT pg_advisory_xact_lock(%s)", [lock_number(name)])
        first.execute("UPDATE orders SET channel = 'web; drop'")
        found: list[Found] = []
        looking = threading.Thread(target=lambda: found.append(planned.found()))
        looking.start()
        looking.join(0.5)
        assert found == [], "it waits"
        first.commit()
        looking.join()
    assert found == [Found.done]


def test_commit_whose_answer_is_lost_is_asked_for(world: World, server: Place, monkeypatch: Any) -> None:
    """The server knows by the transaction's id whether it was committed."""
    commit = psycopg.Connection.commit

    def commit_and_lose(self: Any) -> None:
        commit(self)
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    def lose(self: Any) -> None:
        backend = self.info.backend_pid
        server.run(f"SELECT pg_terminate_backend({backend})")
        commit(self)

    planned = fill(world, server)
    monkeypatch.setattr(psycopg.Connection, "commit", commit_and_lose)
    assert planned.do()["rows"] == 1
    monkeypatch.setattr(psycopg.Connection, "commit", lose)
    with pytest.raises(EffectNotBegun, match="rolled back"):
        planned.inverse.do()
    assert server.channels() == ["web; drop"]


def test_statement_outside_of_a_transaction_says_so(world: World, server: Place) -> None:
    """CREATE INDEX CONCURRENTLY runs alone; the review says that nothing can roll it back."""
    probe = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('orders_channel') AND indisvalid"
    arguments = {
        "database": server.name,
        "statement": "CREATE INDEX CONCURRENTLY orders_channel ON orders (channel)",
    }
    undo = {"statement": "DROP INDEX CONCURRENTLY IF EXISTS orders_channel"}
    planned = world.plan("sql.execute", arguments, probe=probe, undo=undo)
    assert "outside of a transaction" in planned.draft.requires[0]
    planned.apply()
    planned.inverse.apply()
    broken = world.plan(
        "sql.execute", {**arguments, "statement": "CREATE INDEX CONCURRENTLY x ON nowhere (y)"}, undo=undo
    )
    with pytest.raises(EffectFailed, match="a part of it may be left"):
        broken.do()


def test_killed_writer_leaves_nothing_in_sqlite(world: World, lite: Place) -> None:
    """A process that dies in its transaction: the next look rolls it back and sees the old state."""
    planned = fill(world, lite)
    child = os.fork()
    if child == 0:
        connection = sqlite3.connect(lite.name, isolation_level=None)
        connection.execute("PRAGMA cache_spill = ON")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE orders SET channel = 'web; drop'")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert planned.found() is Found.not_done


def test_database_that_is_not_there_is_no_database(world: World, tmp_path: Path) -> None:
    """A mistyped file makes no new one; an unknown secret or another kind of URL is said."""
    place = Place(str(tmp_path / "typo.db"), lambda _: [])
    planned = fill(world, place)
    assert planned.found() is Found.unknown and "cannot be asked" in planned.check()[0]
    with pytest.raises(EffectNotBegun):
        planned.do()
    assert not (tmp_path / "typo.db").exists()
    remote = fill(world, Place("orders-db-url", lambda _: []))
    assert "No secret named" in remote.check()[0]
    world.secrets["orders-db-url"] = "mysql://x"
    assert "holds no URL" in remote.check()[0]
    world.secrets["orders-db-url"] = "postgresql://me:hunter2@127.0.0.1:1/x"
    assert remote.found() is Found.unknown and "hunter2" not in remote.check()[0]
    with pytest.raises(EffectNotBegun, match="Nothing was sent"):
        remote.do()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arguments": {"statement": "SELECT 1; SELECT 2"}}, "holds 2 statements"),
        ({"arguments": {"statement": "COMMIT"}}, "begins with COMMIT"),
        ({"arguments": {"statement": "/* x */ begin"}}, "begins with BEGIN"),
        ({"arguments": {"statement": " "}}, "one SQL statement"),
        ({"arguments": {"database": "postgresql://me:x@h/d"}}, "a plan shows everything"),
        ({"arguments": {"database": "./x.db"}}, "absolute path"),
        ({"arguments": {"parameters": [0.5]}}, "whole numbers"),
        ({"arguments": {"rows": "one"}}, "how many rows"),
        ({"arguments": {"statment": "x"}}, "Did you mean 'statement'"),
        ({"probe": {"sql": "x"}}, "expected a query"),
        ({"undo": None}, "none_needed"),
        ({"undo": {"statement": "SELECT 1", "onlyif": "x"}}, "`undo` takes"),
    ],
)
def test_wrong_steps_say_what_was_expected(world: World, lite: Place, change: JsonDict, message: str) -> None:
    """Before the review, in words."""
    with pytest.raises(UserError, match=message):
        fill(world, lite, **change)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO orders VALUES (7, 'a; b'' c') -- d; e",
        "CREATE TRIGGER t AFTER INSERT ON orders BEGIN UPDATE orders SET channel = 'a'; END",
        "UPDATE orders SET channel = 'x' /* ; */;",
    ],
)
def test_semicolons_in_texts_are_no_end(world: World, lite: Place, statement: str) -> None:
    """Texts, comments and a trigger's body may hold semicolons."""
    world.plan("sql.execute", {"database": lite.name, "statement": statement}, undo="none_needed").do()


def test_driver_refuses_what_looked_like_one_statement(world: World, place: Place) -> None:
    """A second statement that the reading missed does not run: both drivers send one."""
    planned = fill(world, place, probe=None)
    planned.body["statement"] = "UPDATE orders SET channel = 'x'; UPDATE orders SET channel = 'y'"
    planned.body["parameters"] = []
    with pytest.raises(EffectNotBegun):
        planned.do()
    assert place.channels() == [None]


def test_backup_is_whole_or_not_there(world: World, lite: Place) -> None:
    """It gets its name when it is complete; a name that is taken is refused; nothing has to be undone."""
    to = world.folder / "before.db"
    arguments = {"database": lite.name, "to": str(to)}
    planned = world.plan("sqlite.backup", arguments)
    assert planned.draft.inverse.none_needed
    (world.folder / ".perdure-before.db").write_text("half of one")
    planned.apply()
    with closing(sqlite3.connect(to)) as connection:
        assert connection.execute("SELECT id FROM orders").fetchall() == [(1,)]
    assert not (world.folder / ".perdure-before.db").exists()
    with pytest.raises(UserError, match="there already"):
        world.plan("sqlite.backup", arguments)
    with pytest.raises(EffectFailed):
        planned.do()
    to.write_text("somebody else's")
    assert planned.found() is Found.foreign and planned.check()


def test_backup_of_something_else_fails(world: World, server: Place) -> None:
    """Another engine has its own program for it."""
    planned = world.plan("sqlite.backup", {"database": server.name, "to": str(world.folder / "x.db")})
    with pytest.raises(EffectNotBegun, match="no SQLite database"):
        planned.do()


def test_lock_that_is_never_free_is_unknown(world: World, server: Place, monkeypatch: Any) -> None:
    """An attempt that still runs on the server: nobody can tell yet."""
    monkeypatch.setattr("perdure.effects.sql_postgres._ENDING_SECONDS", 0.2)
    planned = fill(world, server)
    with psycopg.connect(world.secrets["orders-db-url"]) as first:
        name = f"orders-db-url\n{planned.body['probe']['query']}\n[1]"
        first.execute("SELECT pg_advisory_xact_lock(%s)", [lock_number(name)])
        assert planned.found() is Found.unknown


def test_server_that_cannot_be_asked_leaves_a_doubt(world: World, server: Place, monkeypatch: Any) -> None:
    """The commit's answer is lost and nobody answers afterwards: unknown, for a person."""
    planned = fill(world, server)

    def lose(self: Any) -> None:
        monkeypatch.setattr("perdure.effects.sql_postgres._ENDING_SECONDS", 0.2)
        world.secrets["orders-db-url"] = "postgresql://me@127.0.0.1:1/x"
        monkeypatch.setattr(
            "perdure.effects.sql_postgres._connect", lambda url: psycopg.connect("postgresql://me@127.0.0.1:1/x")
        )
        raise psycopg.OperationalError("cut")

    monkeypatch.setattr(psycopg.Connection, "commit", lose)
    with pytest.raises(EffectUnknown, match="not known"):
        planned.do()
