"""A thread's notes: what agents keep for the jobs that come after. Data, never an instruction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy import delete, insert, select

from perdure.store import schema
from perdure.store.chain import time_text
from perdure.store.database import Database


class ThreadNotes:
    """Notes of one thread by key. Implements ``agent_ports.Notes``."""

    def __init__(self, database: Database, thread: str) -> None:
        self._database = database
        self._thread = thread

    def read(self) -> Mapping[str, str]:
        """All notes by key, sorted."""
        notes = schema.notes
        query = select(notes.c.key, notes.c.text).where(notes.c.thread == self._thread).order_by(notes.c.key)
        with self._database.read() as connection:
            return {row.key: row.text for row in connection.execute(query)}

    def write(self, key: str, text: str) -> None:
        """Keep a note; empty text forgets it."""
        notes = schema.notes
        with self._database.write() as connection:
            connection.execute(delete(notes).where(notes.c.thread == self._thread, notes.c.key == key))
            if text:
                values = {"thread": self._thread, "key": key, "text": text, "at": time_text(datetime.now(UTC))}
                connection.execute(insert(notes).values(**values))
