"""Which database a step means, and a session with it: asked, or changed in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from perdure.contracts.base import JsonDict
from perdure.effects.arguments import text_argument
from perdure.effects.base import SECRET_MARK, EffectContext, EffectRequest
from perdure.errors import EffectNotBegun, UserError

_SCHEMES = ("postgresql://", "postgres://", "postgresql+psycopg://")


class Session(Protocol):
    """A connection, as far as steps need one."""

    def ask(self, query: str, parameters: Sequence[Any]) -> list[list[Any]]:
        """Return rows as lists of texts, whole numbers, booleans and nulls."""
        ...

    def ask_named(self, query: str, parameters: Sequence[Any]) -> list[JsonDict]:
        """Return rows by the names of their columns; of two columns with one name the later counts."""
        ...

    def run(self, statement: str, parameters: Sequence[Any]) -> int:
        """Run one statement; return how many rows it changed, −1 where that says nothing."""
        ...


@dataclass(frozen=True)
class Writing:
    """How a change is made."""

    name: str
    """The same for every attempt at one effect and its undo: while one still runs on the server, no other starts."""
    limit: timedelta
    alone: bool = False
    """Outside of a transaction, since the engine refuses it inside of one."""


@dataclass(frozen=True)
class Database:
    """Where a step's database is: a SQLite file, or a PostgreSQL URL."""

    url: str
    file: Path | None

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that changes nothing.

        Raises:
            EffectUnknown: the database cannot be asked.
        """
        if self.file is not None:
            from perdure.effects.sql_sqlite import open_reading

            with open_reading(self.file) as session:
                yield session
            return
        from perdure.effects.sql_postgres import open_reading as open_remote

        with open_remote(self.url) as session:
            yield session

    @contextmanager
    def writing(self, how: Writing) -> Iterator[Session]:
        """A session in one transaction, committed when the block ends and rolled back when it raises.

        Raises:
            EffectNotBegun: nothing is committed.
            EffectUnknown: whether it is committed cannot be known.
        """
        if self.file is not None:
            from perdure.effects.sql_sqlite import open_writing

            with open_writing(self.file, how) as session:
                yield session
            return
        from perdure.effects.sql_postgres import open_writing as open_remote

        with open_remote(self.url, how) as session:
            yield session


def read_database(request: EffectRequest) -> str:
    """Return a step's ``database``: an absolute path of a SQLite file, or the name of a secret that holds a URL.

    Raises:
        UserError: it is a URL itself, which would show its password to everyone.
    """
    given = text_argument(request, "database")
    if "://" in given:
        raise UserError(
            f"Step {request.id!r}: `database` is a URL, and a plan shows everything in it. Put it into a secret and "
            "name that: `database: orders-db-url`. A SQLite file is given by its absolute path."
        )
    if given.startswith("/"):
        return str(Path(given))
    if "/" in given or given.startswith("."):
        raise UserError(f"Step {request.id!r}: `database` is {given!r}; expected an absolute path, or a secret's name.")
    return given


def ways_to(database: str) -> list[str]:
    """What the reviewer is told that a step reaches."""
    return [] if database.startswith("/") else [f"{SECRET_MARK}{database}"]


def database_in(body: JsonDict, context: EffectContext) -> Database:
    """The database that a body names.

    Raises:
        EffectNotBegun: the secret is not known here, or holds no URL of a kind that is spoken.
    """
    return find_database(body["database"], context.secrets)


def find_database(name: str, secrets: Mapping[str, str]) -> Database:
    """The database of a name that :func:`read_database` gave. Raises ``EffectNotBegun`` like :func:`database_in`."""
    if name.startswith("/"):
        return Database("", Path(name))
    url = secrets.get(name, "").strip()
    if not url:
        raise EffectNotBegun(
            f"No secret named {name!r} is known here. Put the database's URL into the file `secrets/{name}` of "
            "Perdure's data folder, readable by you alone."
        )
    if url.startswith("sqlite:////"):
        return Database("", Path(url.removeprefix("sqlite:///")))
    if not url.startswith(_SCHEMES):
        raise EffectNotBegun(
            f"The secret {name!r} holds no URL of a database; expected postgresql://user:password@host/name, or "
            "sqlite:////absolute/path."
        )
    return Database(url.replace("postgresql+psycopg://", "postgresql://"), None)


def named_rows(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[JsonDict]:
    """Plain values by column."""
    return [dict(zip(names, row, strict=True)) for row in plain_rows(rows)]


def plain_rows(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows of plain values: what is none of them becomes its text."""
    return [[one if isinstance(one, str | int | None) else str(one) for one in row] for row in rows]
