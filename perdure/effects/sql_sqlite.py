"""SQLite: a file and its locks. What a killed process had begun, the next one to open the file rolls back."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from perdure.contracts.base import JsonDict
from perdure.effects.sql_place import Writing, named_rows, plain_rows
from perdure.errors import EffectFailed, EffectNotBegun, EffectUnknown

_PATIENCE_SECONDS = 10.0
_STEPS = 10_000
"""Virtual machine steps between two looks at the clock."""


class SqliteSession:
    """One connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def ask(self, query: str, parameters: Sequence[Any]) -> list[list[Any]]:
        """Rows of a query."""
        return plain_rows(self._connection.execute(query, _named(parameters)).fetchall())

    def ask_named(self, query: str, parameters: Sequence[Any]) -> list[JsonDict]:
        """Rows of a query by column."""
        found = self._connection.execute(query, _named(parameters))
        return named_rows([column[0] for column in found.description or ()], found.fetchall())

    def run(self, statement: str, parameters: Sequence[Any]) -> int:
        """Run one statement; the driver refuses several."""
        return self._connection.execute(statement, _named(parameters)).rowcount


@contextmanager
def open_reading(file: Path) -> Iterator[SqliteSession]:
    """Open for questions. Not read-only to the system: a killed writer's journal has to be rolled back first."""
    try:
        with closing(_connect(file)) as connection:
            connection.execute("PRAGMA query_only = ON")
            yield SqliteSession(connection)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise EffectUnknown(f"{file} cannot be asked: {error}") from None


@contextmanager
def open_writing(file: Path, how: Writing) -> Iterator[SqliteSession]:
    """One transaction, from a lock that nobody else writes beside; DDL is part of it."""
    deadline = time.monotonic() + how.limit.total_seconds()
    try:
        with closing(_connect(file)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            if how.alone:
                yield SqliteSession(connection)
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteSession(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
    except (sqlite3.Error, sqlite3.Warning) as error:
        if how.alone:
            raise EffectFailed(f"{file}: {error}.") from None
        raise EffectNotBegun(f"{file}: {error}. It was rolled back: nothing of this step is committed.") from None


def _connect(file: Path) -> sqlite3.Connection:
    """Open an existing file; a mistyped name makes no new one."""
    address = f"file:{quote(str(file))}?mode=rw"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=_PATIENCE_SECONDS)


def _named(parameters: Sequence[Any]) -> dict[str, Any]:
    return {str(number): value for number, value in enumerate(parameters, 1)}
