"""Facts of a plan that are no git history: a link, rows of a query, an answer over HTTP."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import EffectUnknown, PerdureError, UserError
from perdure.rules.base import RuleContext
from perdure.rules.registry import default_rules
from perdure.store.blobs import BlobStore
from perdure.testing.postgres import fresh_database, postgres_server
from tests.support.records import serve_records


def gather(folder: Path, name: str, secrets: dict[str, str] | None = None, **arguments: Any) -> Any:
    """The value of a source; secrets are found by their marked names."""
    known = secrets or {}

    def look_up(wanted: list[str]) -> dict[str, str]:
        return {way[7:]: known[way[7:]] for way in wanted if way[7:] in known}

    context = RuleContext(BlobStore(folder / "blobs"), datetime.now(UTC), {}, {}, secrets=look_up)
    return default_rules()[name].run(arguments, context).value


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A SQLite file with one table."""
    file = tmp_path / "orders.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE orders (id integer, price real)")
        connection.execute("INSERT INTO orders VALUES (1, 2.5)")
    return file


def test_link_says_where_it_points(tmp_path: Path) -> None:
    """Its target as it is written; null where nothing is; a file in its place is refused."""
    (tmp_path / "current").symlink_to("blue")
    (tmp_path / "file").touch()
    assert gather(tmp_path, "files.link", path=str(tmp_path / "current"))["target"] == "blue"
    assert gather(tmp_path, "files.link", path=str(tmp_path / "none"))["target"] is None
    for path in (str(tmp_path / "file"), "current", "/nowhere/at-all/x"):
        with pytest.raises(UserError, match="expected"):
            gather(tmp_path, "files.link", path=path)


def test_query_gives_rows_by_column(tmp_path: Path, orders: Path) -> None:
    """Fractions are texts; parameters stand for $1, $2."""
    query = "SELECT id, price FROM orders WHERE id = $1"
    found = gather(tmp_path, "sql.query", database=str(orders), query=query, parameters=[1])
    assert found["rows"] == [{"id": 1, "price": "2.5"}]


def test_query_changes_nothing(tmp_path: Path, orders: Path) -> None:
    """A statement that writes fails, and so does a second one."""
    for query in ("DELETE FROM orders", "SELECT 1; DELETE FROM orders"):
        with pytest.raises(PerdureError):
            gather(tmp_path, "sql.query", database=str(orders), query=query)
    assert len(gather(tmp_path, "sql.query", database=str(orders), query="SELECT id FROM orders")["rows"]) == 1


def test_query_asks_postgresql_by_the_name_of_a_secret(tmp_path: Path) -> None:
    """The URL comes from the secret and is in nothing that is given back; an unknown name says where to put it."""
    with postgres_server(tmp_path / "server") as server:
        url = fresh_database(server)
        secrets = {"orders-db": url}
        query = "SELECT 41 AS version, 1.5 AS price"
        found = gather(tmp_path, "sql.query", secrets, database="orders-db", query=query)
        assert found == {"rule": "sql.query", "rows": [{"version": 41, "price": "1.5"}]}
        with pytest.raises(EffectUnknown, match="cannot be asked"):
            gather(tmp_path, "sql.query", secrets, database="orders-db", query="CREATE TABLE x (a int)")
    with pytest.raises(UserError, match="secrets/orders-db"):
        gather(tmp_path, "sql.query", database="orders-db", query="SELECT 1")


def test_answer_of_a_server_is_a_fact(tmp_path: Path) -> None:
    """Status, JSON with fractions as texts, and the text; of whoever does not answer nothing is known."""
    with serve_records() as records:
        records.held["a"] = {"load": 0.5}
        found = gather(tmp_path, "http.get", url=f"{records.url}/records/a")
        assert (found["status"], found["json"]) == (200, {"load": "0.5"})
        assert gather(tmp_path, "http.get", url=f"{records.url}/records/b")["status"] == 404
    with pytest.raises(EffectUnknown):
        gather(tmp_path, "http.get", url=f"{records.url}/records/a")
    with pytest.raises(UserError, match="expected a URL"):
        gather(tmp_path, "http.get", url="ftp://x")
