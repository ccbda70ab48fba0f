"""PostgreSQL: one transaction a step. Nothing is laid into the user's database to tell what happened.

Every attempt takes an advisory lock of the step's first. A dead worker sends nothing more, so once its lock is free its
transaction has ended, and what a probe reads is final. Whether a commit that got no answer took place is asked of the
server by the transaction's id (``pg_xact_status``; PostgreSQL 13 and later).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from perdure.contracts.base import JsonDict
from perdure.effects.sql_place import Writing, named_rows, plain_rows
from perdure.errors import EffectFailed, EffectNotBegun, EffectUnknown, SetupError

if TYPE_CHECKING:
    import psycopg

_CONNECT_SECONDS = 10
_ASKING_MILLISECONDS = 60_000
_ENDING_SECONDS = 20.0
"""How long the end of a transaction whose answer was lost is asked for."""

_NOTICES_DEATH = 140_000
"""Server version from which it looks whether its client still lives while a statement runs."""


class PostgresSession:
    """One connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def ask(self, query: str, parameters: Sequence[Any]) -> list[list[Any]]:
        """Rows of a query."""
        found = self._find(query, parameters)
        return plain_rows(found.fetchall()) if found.description else []

    def ask_named(self, query: str, parameters: Sequence[Any]) -> list[JsonDict]:
        """Rows of a query by column."""
        found = self._find(query, parameters)
        columns = found.description
        return named_rows([column.name for column in columns], found.fetchall()) if columns else []

    def _find(self, query: str, parameters: Sequence[Any]) -> psycopg.Cursor[Any]:
        return self._connection.execute(query.encode(), list(parameters), binary=False, prepare=True)

    def run(self, statement: str, parameters: Sequence[Any]) -> int:
        """Run one statement: prepared, which the server refuses for several."""
        return self._connection.execute(statement.encode(), list(parameters), prepare=True).rowcount


@contextmanager
def open_reading(url: str) -> Iterator[PostgresSession]:
    """A transaction that is read-only."""
    driver = _driver()
    try:
        with closing(_connect(url)) as connection, connection.transaction():
            connection.execute("SET TRANSACTION READ ONLY")
            connection.execute(f"SET LOCAL statement_timeout = {_ASKING_MILLISECONDS}")
            yield PostgresSession(connection)
    except driver.Error as error:
        raise EffectUnknown(f"the database cannot be asked: {_gist(error)}") from None


@contextmanager
def open_writing(url: str, how: Writing) -> Iterator[PostgresSession]:
    """One transaction, or one statement outside of any, while the step's advisory lock is held."""
    driver = _driver()
    try:
        connection = _connect(url)
    except driver.Error as error:
        raise EffectNotBegun(f"the database cannot be reached: {_gist(error)}. Nothing was sent.") from None
    with closing(connection):  # what is not committed by then, the server rolls back
        if how.alone:
            yield from _run_alone(driver, connection, how)
        else:
            yield from _run_whole(driver, url, connection, how)


def _run_whole(driver: Any, url: str, connection: psycopg.Connection[Any], how: Writing) -> Iterator[PostgresSession]:
    try:
        connection.autocommit = False
        _limit(connection, how, "LOCAL")
        connection.execute("SELECT pg_advisory_xact_lock($1)", [lock_number(how.name)])
        yield PostgresSession(connection)
        number = connection.execute("SELECT pg_current_xact_id()::text").fetchone()
    except driver.Error as error:
        raise EffectNotBegun(f"{_gist(error)}. It was rolled back: nothing of this step is committed.") from None
    assert number is not None  # a function gives one row
    try:
        connection.commit()
    except driver.OperationalError as error:
        _ask_how_it_ended(driver, url, str(number[0]), _gist(error))
    except driver.Error as error:  # a constraint that was deferred to the end
        raise EffectNotBegun(f"{_gist(error)}. It was rolled back: nothing of this step is committed.") from None


def _run_alone(driver: Any, connection: psycopg.Connection[Any], how: Writing) -> Iterator[PostgresSession]:
    try:
        _limit(connection, how, "SESSION")
        connection.execute("SELECT pg_advisory_lock($1)", [lock_number(how.name)])
    except driver.Error as error:
        raise EffectNotBegun(f"{_gist(error)}. The statement was not sent.") from None
    try:
        yield PostgresSession(connection)
    except driver.OperationalError as error:
        raise EffectUnknown(f"{_gist(error)}. It ran outside of a transaction.") from None
    except driver.Error as error:
        raise EffectFailed(
            f"{_gist(error)}. It ran outside of a transaction, so that a part of it may be left, such as an invalid "
            "index."
        ) from None


def _ask_how_it_ended(driver: Any, url: str, number: str, cause: str) -> None:
    """Return when the transaction is committed; it was the answer that got lost."""
    deadline = time.monotonic() + _ENDING_SECONDS
    state = "not known"
    while time.monotonic() < deadline:
        with suppress(driver.Error), closing(_connect(url)) as connection:
            found = connection.execute("SELECT pg_xact_status($1::text::xid8)", [number]).fetchone()
            state = str(found[0]) if found else state
        if state == "committed":
            return
        if state == "aborted":
            raise EffectNotBegun(f"{cause}. It was rolled back: nothing of this step is committed.")
        time.sleep(0.2)
    raise EffectUnknown(f"{cause}, just when it was committed. Transaction {number} is {state}.")


def await_lock(url: str, name: str) -> bool:
    """Whether no attempt at a step still runs on the server; it is waited for a while.

    Raises:
        EffectUnknown: the database cannot be asked.
    """
    driver = _driver()
    try:
        with closing(_connect(url)) as connection, connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {int(_ENDING_SECONDS * 1000)}")
            connection.execute("SELECT pg_advisory_xact_lock($1)", [lock_number(name)])
            return True
    except driver.errors.LockNotAvailable:
        return False
    except driver.Error as error:
        raise EffectUnknown(f"the database cannot be asked: {_gist(error)}") from None


def lock_number(name: str) -> int:
    """The advisory lock of a step: a signed number of 64 bits."""
    return int.from_bytes(hashlib.sha256(f"perdure:{name}".encode()).digest()[:8], "big", signed=True)


def _limit(connection: psycopg.Connection[Any], how: Writing, scope: str) -> None:
    milliseconds = max(1, int(how.limit.total_seconds() * 1000))
    connection.execute(f"SET {scope} statement_timeout = {milliseconds}")
    if connection.info.server_version >= _NOTICES_DEATH:
        connection.execute(f"SET {scope} client_connection_check_interval = 1000")


def _connect(url: str) -> psycopg.Connection[Any]:
    driver = _driver()
    connection: psycopg.Connection[Any] = driver.Connection.connect(
        url,
        autocommit=True,
        cursor_factory=driver.RawCursor,
        connect_timeout=_CONNECT_SECONDS,
        application_name="perdure",
    )
    return connection


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise SetupError("Steps on PostgreSQL need its driver. Run: pip install 'perdure[postgres]'") from None
    return psycopg


def _gist(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
