"""The ledger's side of schedules: one transaction a call, as in :mod:`perdure.store.ledger`."""

from __future__ import annotations

from datetime import datetime

from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import SignedDecision
from perdure.contracts.http import EventView
from perdure.contracts.schedules import ScheduleWord
from perdure.store import fires, schedules
from perdure.store.database import Database
from perdure.store.fires import FireStanding, FireTake
from perdure.store.schedules import AskedFor, ScheduleRow


class Schedules:
    """All that is asked of the ledger about schedules."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(
        self, signed: SignedDecision, word: ScheduleWord, ref: BlobRef, *, at: datetime, skipped: str = ""
    ) -> bool:
        """Write a person's word; ``False`` when it was written before. Raises as ``schedules.record_word``."""
        with self._database.write() as connection:
            return schedules.record_word(connection, signed, word, ref, at, skipped)

    def find(self, name: str) -> ScheduleRow:
        """Return a schedule, also a deleted one. Raises ``NotFound`` with the nearest names."""
        with self._database.read() as connection:
            return schedules.find_schedule(connection, name)

    def every(self, *, thread: str | None = None, with_deleted: bool = False) -> list[ScheduleRow]:
        """Return schedules by name."""
        with self._database.read() as connection:
            return schedules.list_schedules(connection, thread=thread, with_deleted=with_deleted)

    def asked_for(self, name: str) -> list[AskedFor]:
        """Return the words that ask for fires, oldest first. Whether they are signed is for the caller to see."""
        with self._database.read() as connection:
            return schedules.asked_for(connection, name)

    def untold(self) -> list[tuple[str, str, str]]:
        """Return (decision id, schedule, kind) of words that are not passed on yet, oldest first."""
        with self._database.read() as connection:
            return schedules.untold_words(connection)

    def standing(self, name: str, *, at: datetime, cost_days: int, with_taken: bool) -> FireStanding:
        """Return how a schedule's fires stand."""
        with self._database.read() as connection:
            return fires.read_standing(connection, name, at, cost_days, with_taken=with_taken)

    def spending(self, name: str, since: datetime) -> tuple[int, bool]:
        """Return (microdollars, whether a part is unknown) that a schedule's jobs have spent since then."""
        with self._database.read() as connection:
            return fires.read_spending(connection, name, since)

    def take(self, take: FireTake, *, at: datetime) -> None:
        """Write one step of a schedule. Raises ``Conflict`` when it was chosen on what is not so any more."""
        with self._database.write() as connection:
            fires.take_fire(connection, take, at)

    def drop(self, name: str, key: str, detail: str, *, at: datetime) -> None:
        """Write that a fire is none, once for each key."""
        with self._database.write() as connection:
            body = {"key": key, "detail": detail}
            schedules.note_schedule(connection, name, "dropped", key, body, at)

    def jobs(self, name: str, limit: int) -> list[tuple[str, str]]:
        """Return (key, job id) of a schedule's newest jobs, newest first."""
        with self._database.read() as connection:
            return fires.newest_jobs(connection, name, limit)

    def events(self, name: str, limit: int) -> list[EventView]:
        """Return the newest records about a schedule, newest first."""
        with self._database.read() as connection:
            return fires.schedule_events(connection, name, limit)
