"""Sees every ledger event within a few milliseconds of its commit, from outside: a reader of the SQLite file."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOOK_SECONDS = 0.002


@dataclass(frozen=True)
class Seen:
    """One event and when it was visible (``time.time``). Its own ``at`` may be older: stages write their round's."""

    position: int
    kind: str
    job_id: str
    workflow_id: str
    body: dict[str, Any]
    seen: float

    def says(self, **said: Any) -> bool:
        """Whether the body holds these values."""
        return all(self.body.get(name) == value for name, value in said.items())


class LedgerWatch:
    """A thread that reads new events as they are committed. Use it as a context manager."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._events: list[Seen] = []
        self._news = threading.Condition()
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ledger-watch")

    def __enter__(self) -> LedgerWatch:
        self._thread.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait(self, job_id: str, kind: str, *, limit: float = 90.0, **said: Any) -> Seen:
        """Return the first event of a job of that kind that says so, now or when it comes.

        Raises:
            RuntimeError: it did not come, or the job ended badly before.
        """

        def found() -> Seen | None:
            mine = [event for event in self._events if event.job_id == job_id]
            for event in mine:
                if event.kind == kind and event.says(**said):
                    return event
            ends = [e for e in mine if e.kind == "job.phase" and e.body.get("phase") in ("failed", "stuck", "rejected")]
            if ends:
                raise RuntimeError(f"{job_id} is {ends[0].body}")
            return None

        return self._until(found, f"{kind} {said} of {job_id}", limit)

    def wait_request(self, request: str, *, limit: float = 90.0) -> str:
        """Return the id of the job that a client sent under its request id, once it is admitted."""

        def found() -> Seen | None:
            admitted = (event for event in self._events if event.kind == "job.admitted")
            return next((event for event in admitted if event.job_id.endswith(f"/{request}")), None)

        return self._until(found, f"job {request}", limit).job_id

    def events(self, job_id: str) -> list[Seen]:
        """What was seen of a job, oldest first."""
        with self._news:
            return [event for event in self._events if event.job_id == job_id]

    def _until(self, look: Callable[[], Seen | None], what: str, limit: float) -> Seen:
        deadline = time.monotonic() + limit
        with self._news:
            while (event := look()) is None:
                left = deadline - time.monotonic()
                if self._failure is not None or left <= 0:
                    raise RuntimeError(f"waited for {what}: {self._failure or 'it did not come'}")
                self._news.wait(left)
            return event

    def _run(self) -> None:
        try:
            self._look_for_ever()
        except BaseException as failure:
            with self._news:
                self._failure = failure
                self._news.notify_all()
            raise

    def _look_for_ever(self) -> None:
        database = sqlite3.connect(f"file:{self._ledger}?mode=ro", uri=True, timeout=30)
        version = -1
        try:
            while not self._stop.wait(LOOK_SECONDS):
                now = database.execute("PRAGMA data_version").fetchone()[0]
                if now != version:
                    version = now
                    self._read(database)
        finally:
            database.close()

    def _read(self, database: sqlite3.Connection) -> None:
        seen = time.time()
        last = self._events[-1].position if self._events else 0
        rows = database.execute(
            "SELECT position, kind, job_id, workflow_id, body FROM events JOIN contents USING (position) "
            "WHERE position > ? ORDER BY position",
            (last,),
        ).fetchall()
        with self._news:
            self._events += [
                Seen(position, kind, job, workflow or "", json.loads(body), seen)
                for position, kind, job, workflow, body in rows
            ]
            self._news.notify_all()
