"""The PostgreSQL server that tests run on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

from perdure.testing.postgres import fresh_database, postgres_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres_server(tmp_path_factory.mktemp("server")) as url:
        yield url


def test_server_answers_over_its_socket(server: str) -> None:
    """The URL opens a PostgreSQL 18 database."""
    engine = sqlalchemy.create_engine(server)
    with engine.connect() as connection:
        assert str(connection.execute(sqlalchemy.text("select version()")).scalar()).startswith("PostgreSQL 18")
    engine.dispose()


def test_fresh_databases_do_not_see_each_other(server: str) -> None:
    """A table made in one fresh database is not in another one."""
    first, second = (sqlalchemy.create_engine(fresh_database(server)) for _ in range(2))
    with first.begin() as connection:
        connection.execute(sqlalchemy.text("create table seen (id int)"))
    assert sqlalchemy.inspect(first).get_table_names() == ["seen"]
    assert sqlalchemy.inspect(second).get_table_names() == []
    first.dispose()
    second.dispose()


def test_nothing_runs_after_the_server_was_left(tmp_path: Path) -> None:
    """Leaving the context ends the server: its process file is gone and so is its socket folder."""
    with postgres_server(tmp_path) as url:
        assert (tmp_path / "postgres" / "postmaster.pid").exists()
        socket = Path(str(sqlalchemy.make_url(url).query["host"]))
        assert socket.exists()
    assert not (tmp_path / "postgres" / "postmaster.pid").exists()
    assert not socket.exists()
