"""The world of each example runbook: what it is about, and how it looks before and after."""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psycopg

from perdure.testing.postgres import fresh_database
from tests.support.installation import ROOT, Installation
from tests.support.records import Records

RUNBOOKS = ROOT / "examples" / "runbooks"
_TABLES = (
    "CREATE TABLE schema_version (version integer)",
    "INSERT INTO schema_version VALUES (41)",
    "CREATE TABLE orders (name text)",
    "INSERT INTO orders VALUES ('one'), ('two')",
)
_ROWS = [("one", "web"), ("two", "web")]


class Play(Protocol):
    """One runbook in a world of its own."""

    name: str
    """The template's."""

    @property
    def inputs(self) -> dict[str, Any]:
        """What it is started with."""
        ...

    def look(self) -> Any:
        """The world, as far as the runbook changes it and takes it back."""
        ...

    def assert_applied(self) -> None:
        """All of it is there, once."""
        ...


@dataclass(frozen=True)
class Credentials:
    """Two files of credentials, a link, and a reader that notes what it read."""

    folder: Path
    name: str = "rotate-credentials"

    @classmethod
    def make(cls, folder: Path) -> Credentials:
        """The old one is in use."""
        (folder / "retired").mkdir(parents=True)
        for key in ("old", "new"):
            (folder / key).write_text(key)
        (folder / "current").symlink_to("old")
        return cls(folder)

    @property
    def inputs(self) -> dict[str, Any]:
        reads = f"cat {self.folder}/current > {self.folder}/read"
        works = f"cmp {self.folder}/read {self.folder}/current"
        given = {"service": self.folder.name, "folder": str(self.folder), "new": "new"}
        return {**given, "reload": ["sh", "-c", reads], "works": ["sh", "-c", works]}

    def look(self) -> Any:
        there = sorted(path.name for path in self.folder.iterdir() if path.name != "read")
        return str((self.folder / "current").readlink()), there, sorted((self.folder / "retired").iterdir())

    def assert_applied(self) -> None:
        assert (self.folder / "current").readlink() == Path("new")
        assert (self.folder / "read").read_text() == "new"
        assert (self.folder / "retired" / "old").read_text() == "old"
        assert not (self.folder / "old").exists()


@dataclass(frozen=True)
class Sqlite:
    """A database file of version 41."""

    folder: Path
    name: str = "migrate-sqlite"

    @classmethod
    def make(cls, folder: Path) -> Sqlite:
        """Two orders without a channel."""
        (folder / "backups").mkdir(parents=True)
        with closing(sqlite3.connect(folder / "orders.db")) as connection, connection:
            for statement in _TABLES:
                connection.execute(statement)
        return cls(folder)

    @property
    def inputs(self) -> dict[str, Any]:
        return {"database": str(self.folder / "orders.db"), "backups": str(self.folder / "backups")}

    def look(self) -> Any:
        with closing(sqlite3.connect(self.folder / "orders.db")) as connection:
            schema = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'orders'").fetchall()
            return schema, connection.execute("SELECT version FROM schema_version").fetchall()

    def assert_applied(self) -> None:
        with closing(sqlite3.connect(self.folder / "orders.db")) as connection:
            assert connection.execute("SELECT name, channel FROM orders").fetchall() == _ROWS
            assert connection.execute("SELECT version FROM schema_version").fetchall() == [(41,), (42,)]
        for backup in (self.folder / "backups").iterdir():
            with closing(sqlite3.connect(backup)) as connection:
                assert connection.execute("SELECT max(version) FROM schema_version").fetchall() == [(41,)]


@dataclass(frozen=True)
class BlueGreen:
    """A link, two builds, and a service that is healthy while it serves what the link says."""

    folder: Path
    records: Records
    name: str = "blue-green"

    @classmethod
    def make(cls, folder: Path, records: Records) -> BlueGreen:
        """Blue serves."""
        for build in ("blue", "green"):
            (folder / build).mkdir(parents=True)
        (folder / "current").symlink_to(folder / "blue")
        records.held["health"] = {"plan": "none"}
        return cls(folder, records)

    @property
    def inputs(self) -> dict[str, Any]:
        reload = ["sh", "-c", f"readlink {self.folder}/current >> {self.folder}/reloads"]
        given = {"link": str(self.folder / "current"), "build": str(self.folder / "green"), "reload": reload}
        return {**given, "health": f"{self.records.url}/records/health"}

    def look(self) -> Any:
        return (self.folder / "current").readlink()

    def assert_applied(self) -> None:
        assert (self.folder / "current").readlink() == self.folder / "green"
        assert (self.folder / "reloads").read_text().splitlines()[-1] == str(self.folder / "green")


@dataclass(frozen=True)
class Bulk:
    """Customers of two plans."""

    records: Records
    name: str = "bulk-update"

    @classmethod
    def make(cls, records: Records) -> Bulk:
        """Two of three are moved."""
        for key, plan in (("ann", "basic"), ("bob", "gold"), ("cid", "basic")):
            records.held[key] = {"plan": plan, "name": key}
        return cls(records)

    @property
    def inputs(self) -> dict[str, Any]:
        return {"url": self.records.url, "from": "basic", "to": "plus"}

    def look(self) -> Any:
        return {key: dict(value) for key, value in self.records.held.items()}

    def assert_applied(self) -> None:
        plans = {key: value["plan"] for key, value in self.records.held.items() if "name" in value}
        assert plans == {"ann": "plus", "bob": "gold", "cid": "plus"}


@dataclass(frozen=True)
class Postgresql:
    """A database of version 41, named by a secret."""

    url: str
    secret: str
    name: str = "migrate-postgresql"

    @classmethod
    def make(cls, server: str, home: Installation) -> Postgresql:
        """Two orders without a channel."""
        url, secret = fresh_database(server).replace("+psycopg", ""), f"db-{uuid.uuid4().hex[:8]}"
        with psycopg.connect(url) as connection:
            for statement in _TABLES:
                connection.execute(statement)
        file = home.settings.data / "secrets" / secret
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.touch(0o600)
        file.write_text(url)
        return cls(url, secret)

    @property
    def inputs(self) -> dict[str, Any]:
        return {"database": self.secret}

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]

    def look(self) -> Any:
        columns = self._ask("SELECT column_name FROM information_schema.columns WHERE table_name = 'orders'")
        indexes = self._ask("SELECT indexname FROM pg_indexes WHERE tablename = 'orders'")
        return columns, indexes, self._ask("SELECT version FROM schema_version")

    def assert_applied(self) -> None:
        assert self._ask("SELECT name, channel FROM orders ORDER BY name") == _ROWS
        assert self._ask("SELECT version FROM schema_version ORDER BY 1") == [(41,), (42,)]
        assert self._ask("SELECT indexname FROM pg_indexes WHERE tablename = 'orders'") == [("orders_channel",)]
