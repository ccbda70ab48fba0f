"""Bringing a ledger's tables to this version: once, under a lock, all or nothing."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from perdure.errors import SetupError
from perdure.store.database import Database, sqlite_path

HEAD_REVISION = "0006"
"""The newest migration; a test compares it with the folder."""

MIGRATIONS = Path(__file__).with_name("migrations")


def prepare_ledger(database: Database) -> None:
    """Make the ledger if it is not there and bring it to the newest version.

    Raises:
        SetupError: it cannot be opened or written, or was written by a newer Perdure.
    """
    path = sqlite_path(str(database.engine.url))
    if path is None:
        _upgrade(database)
        return
    _make_private_file(path)
    with _only_one(path, database):
        _use_wal(database)
        _upgrade(database)


def _upgrade(database: Database) -> None:
    with database.read() as connection:
        if _revision(connection) == HEAD_REVISION:
            return  # the usual start: Alembic is not even imported
    with database.write() as connection:
        _refuse_newer(connection, database.name)
        _run_alembic(connection)


def _revision(connection: Connection) -> str:
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")


def _refuse_newer(connection: Connection, name: str) -> None:
    found = _revision(connection)
    known = {path.name.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py")}
    if found and found not in known:
        raise SetupError(
            f"The ledger {name} has version {found}; this Perdure knows up to {HEAD_REVISION}. "
            "It was written by a newer Perdure: use that one. Nothing was changed."
        )


def _run_alembic(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _make_private_file(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise SetupError(
            f"Ledger unreachable at {path} ({error.strerror}). Check the folder's owner, mode and free space."
        ) from error


def _use_wal(database: Database) -> None:
    """Switch to write-ahead logging; it stays in the file. The lock is needed: the switch does not wait for others."""
    with database.explained():
        raw = database.engine.raw_connection()
        try:
            mode = raw.cursor().execute("PRAGMA journal_mode=WAL").fetchone()[0]
        finally:
            raw.close()
    if mode != "wal":
        raise SetupError(
            f"The file system of {database.name} cannot hold a ledger (SQLite's WAL gave {mode!r}). "
            "Put the data folder on a local disk."
        )


@contextmanager
def _only_one(path: Path, database: Database) -> Iterator[None]:
    """Hold ``<ledger>.lock`` so that of several processes that start at once one makes the tables."""
    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _take(descriptor, path, database.patience.total_seconds())
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, patience: float) -> None:
    limit = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > limit:
                raise SetupError(
                    f"Ledger unreachable at {path} (another process has been opening it for {patience:g} s). "
                    f"Nothing was written. See which one holds {path.name}.lock: `fuser {path}.lock`."
                ) from None
            time.sleep(0.02)
