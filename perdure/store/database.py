"""The ledger's connection: SQLite or PostgreSQL, one writer at a time, every failure told as what to do.

Both databases give one meaning to a write: it begins by taking the only writer's place (SQLite ``BEGIN IMMEDIATE``,
PostgreSQL a transaction-level advisory lock), so that all it reads is the newest state and stays so until it commits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from perdure.errors import SetupError
from perdure.store.trouble import StoreTrouble

PATIENCE = timedelta(seconds=10)
"""How long a write waits for its turn before it says that the ledger is locked."""

_WRITER_LOCK = 0x70657264
"""First key of the advisory lock ("perd"); the second is the schema's hash: two ledgers do not wait on each other."""

_OUR_FAULT = (IntegrityError, ProgrammingError)
"""A broken rule or a wrong statement: these are bugs or a trigger's refusal, and no reason to say "unreachable"."""


class Database:
    """An engine, and the two kinds of transaction the ledger knows. Thread-safe."""

    def __init__(self, url: str, patience: timedelta = PATIENCE) -> None:
        self.engine = _make_engine(url, patience)
        self.name = self.engine.url.render_as_string(hide_password=True)
        self.patience = patience
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self._driver_error: type[Exception] = self.engine.dialect.loaded_dbapi.Error
        # SQLite's own waiting polls and is unfair; threads of one process queue here first.
        self._turn = Lock()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One write transaction; commits at the end, leaves nothing behind when anything raises.

        Raises:
            StoreTrouble: locked for longer than the patience, unreachable, full, or not a ledger.
        """
        with self.explained(), self._queue(), self.engine.connect() as connection:
            connection = connection.execution_options(perdure_write=True)
            with connection.begin():
                if not self.is_sqlite:
                    _take_writer_lock(connection, self.patience)
                yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One read transaction: all its statements see the same state. Raises ``StoreTrouble`` as :meth:`write`."""
        with self.explained(), self.engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    @contextmanager
    def _queue(self) -> Iterator[None]:
        if not self.is_sqlite:
            yield
            return
        if not self._turn.acquire(timeout=self.patience.total_seconds()):
            raise self._unreachable(f"locked for {self.patience.total_seconds():g} s by this process itself")
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn the driver's errors into ``StoreTrouble``."""
        try:
            yield
        except _OUR_FAULT:
            raise
        except PoolTimeout as error:
            raise self._unreachable("all connections are busy") from error
        except DBAPIError as error:
            raise self._unreachable(_one_line(error.orig)) from error
        except self._driver_error as error:  # while a new connection is prepared, SQLAlchemy hands it on as it is
            raise self._unreachable(_one_line(error)) from error

    def _unreachable(self, reason: str) -> StoreTrouble:
        advice = (
            "Check that its disk has space and that no other program holds it"
            if self.is_sqlite
            else "Check that the PostgreSQL server runs and PERDURE_LEDGER_URL is right"
        )
        return StoreTrouble(
            f"Ledger unreachable at {self.name} ({reason}). Nothing was written and no effect starts. {advice}."
        )


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


def _make_engine(url: str, patience: timedelta) -> Engine:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except ArgumentError as error:
        raise SetupError(
            f"The ledger's URL cannot be read: {error}. Expected sqlite:///… or postgresql+psycopg://…."
        ) from error
    if backend == "sqlite":
        return _sqlite_engine(url, patience)
    if backend == "postgresql":
        return _postgresql_engine(url, patience)
    raise SetupError(f"The ledger cannot lie in {backend!r}. Expected sqlite:///… or postgresql+psycopg://….")


def _sqlite_engine(url: str, patience: timedelta) -> Engine:
    if make_url(url).database in (None, "", ":memory:"):
        raise SetupError(f"{url} would forget everything at exit; the ledger needs a file: sqlite:////absolute/path.")
    engine = create_engine(url, connect_args={"timeout": patience.total_seconds()})

    @event.listens_for(engine, "connect")
    def prepare(dbapi: Any, record: Any) -> None:
        # SQLAlchemy begins transactions itself (below); the driver's own guess at where they begin is switched off.
        dbapi.isolation_level = None
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "recursive_triggers=ON", "trusted_schema=OFF"):
            dbapi.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("perdure_write", False):
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:  # takes no lock yet, so nothing can fail that would have to be explained
            connection.connection.cursor().execute("BEGIN")

    return engine


def _postgresql_engine(url: str, patience: timedelta) -> Engine:
    connect_limit = max(2, int(patience.total_seconds()))
    try:
        engine = create_engine(
            make_url(url).set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,  # a server that was restarted is no reason to fail the next write
            pool_timeout=patience.total_seconds(),
            connect_args={"connect_timeout": connect_limit, "application_name": "perdure"},
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise SetupError("A PostgreSQL ledger needs its driver: install perdure[postgres].") from error

    @event.listens_for(engine, "connect")
    def prepare(dbapi: Any, record: Any) -> None:
        # Never weaker than "on": an acknowledged intent must be there after a crash. Stronger settings stay.
        dbapi.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )
        dbapi.commit()

    return engine


def _take_writer_lock(connection: Connection, patience: timedelta) -> None:
    # No right on any table is needed for it, so that the role may be allowed no more than INSERT on the evidence.
    limit = f"{int(patience.total_seconds() * 1000)}ms"
    connection.execute(text("SELECT set_config('lock_timeout', :limit, true)"), {"limit": limit})
    connection.execute(text("SELECT pg_advisory_xact_lock(:key, hashtext(current_schema()))"), {"key": _WRITER_LOCK})


def sqlite_path(url: str) -> Path | None:
    """Return the file of an SQLite ledger, ``None`` for another database."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return None
    return Path(parsed.database)
