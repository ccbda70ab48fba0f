"""sqlite.backup: a whole copy of a SQLite database in a new file, taken while others go on writing."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import know_arguments, text_argument
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Found, Probe, problems_of
from perdure.effects.sql_place import database_in, read_database, ways_to
from perdure.errors import EffectFailed, EffectNotBegun, UserError


class SqliteBackup:
    """Nothing has to be undone: it only adds a file, and never replaces one."""

    kind: ClassVar[str] = "sqlite.backup"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = True
    settle: ClassVar[timedelta] = timedelta(0)

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: database (a SQLite file, or a secret's name with sqlite:////path), to (a new file)."""
        know_arguments(request, self.kind, ("database", "to"))
        database, to = read_database(request), Path(text_argument(request, "to"))
        if not to.is_absolute() or not to.parent.is_dir():
            raise UserError(f"Step {request.id!r}: `to` is {str(to)!r}; expected an absolute path in a folder.")
        to = to.parent.resolve() / to.name
        if os.path.lexists(to):
            raise UserError(f"Step {request.id!r}: {to} is there already. Give each backup a name of its own.")
        return EffectDraft(
            body={"database": database, "to": str(to)},
            summary=f"{database} → {to}",
            target=f"files:{to}",
            inverse=Inverse(none_needed="it only adds a file"),
            requires=[f"{to} is not there"],
            ways_out=ways_to(database),
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """Nothing lies at the new file's place."""
        probe = self.probe(body, context)
        return [] if probe.found in (Found.done, Found.not_done) else [probe.detail]

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """A file that is a whole database is the backup: it gets its name only when it is complete."""
        to = Path(body["to"])
        if not os.path.lexists(to):
            return Probe(Found.not_done, f"{to} is not there")
        problem = _damage(to)
        return Probe(Found.foreign, f"{to}: {problem}") if problem else Probe(Found.done, f"{to} is a whole database")

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Copy into a file of another name beside it, look through it whole, make it durable, give it its name."""
        source, to = database_in(body, context).file, Path(body["to"])
        if source is None:
            raise EffectNotBegun(f"{body['database']} is no SQLite database. Use the backup program of its engine.")
        spare = to.with_name(f".perdure-{to.name}"[:200])
        try:
            spare.unlink(missing_ok=True)  # left by an attempt that was killed
            _copy(source, spare)
            if problem := _damage(spare):
                raise EffectFailed(f"The copy of {source} is not whole: {problem}")
            os.link(spare, to)  # refuses a file that is there
            _make_durable(to)
        except (sqlite3.Error, OSError) as error:
            raise EffectFailed(f"{source} could not be copied to {to}: {error}") from None
        finally:
            with suppress(OSError):
                spare.unlink(missing_ok=True)
        return {"path": str(to), "size_bytes": to.stat().st_size}

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """It is there and whole."""
        return problems_of(self.probe(body, context))


def _copy(source: Path, target: Path) -> None:
    with (
        closing(sqlite3.connect(f"file:{quote(str(source))}?mode=rw", uri=True, timeout=10)) as there,
        closing(sqlite3.connect(target)) as here,
    ):
        there.backup(here)


def _damage(file: Path) -> str:
    """What is wrong with a database file; empty when it is whole."""
    try:
        if not file.is_file() or file.is_symlink():
            return "it is no regular file"
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro&immutable=1", uri=True)) as connection:
            said = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return f"it is no SQLite database ({error})"
    return "" if said == "ok" else said


def _make_durable(file: Path) -> None:
    for path in (file, file.parent):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
