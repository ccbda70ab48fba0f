"""Threads in the ledger: which there are, how they stand, what a person said about them."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from perdure.contracts.job import JobPhase
from perdure.contracts.schedules import ScheduleState
from perdure.contracts.threads import ThreadRow, ThreadStanding
from perdure.errors import Conflict, NotFound
from perdure.store import schema
from perdure.store.chain import time_of, time_text
from perdure.store.database import Database
from perdure.store.events import append_event, clean

_FINAL = [phase.value for phase in JobPhase if phase.is_final]
_LIVE: tuple[ScheduleState, ...] = ("active", "paused")


class Threads:
    """All that is asked of the ledger about threads; one transaction a call."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def every(self) -> list[ThreadRow]:
        """Return threads by name, archived ones too."""
        with self._database.read() as connection:
            return list_threads(connection)

    def find(self, thread: str) -> ThreadRow:
        """Return one. Raises ``NotFound`` with the nearest names."""
        with self._database.read() as connection:
            return find_thread(connection, thread)

    def set_state(self, thread: str, state: ThreadStanding, note: str, *, by: str, at: datetime) -> None:
        """Pause, resume or archive a thread. Raises ``NotFound``, ``Conflict`` when something of it is still open."""
        with self._database.write() as connection:
            set_state(connection, thread, state, note, by, at)

    def decided(self, job_ids: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
        """Return (kind, who) of the decisions on each of these jobs, in order."""
        with self._database.read() as connection:
            return decisions_of(connection, job_ids)

    def fired_by(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Return the schedule that started each of these jobs, where one did."""
        fires = schema.fires
        query = select(fires.c.job_id, fires.c.schedule).where(fires.c.job_id.in_(job_ids))
        with self._database.read() as connection:
            return {row.job_id: row.schedule for row in connection.execute(query)}


def list_threads(connection: Connection) -> list[ThreadRow]:
    """Return every thread that has a job or a schedule, by name."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    jobs, schedules, threads = schema.jobs, schema.schedules, schema.threads
    for row in connection.execute(select(jobs.c.thread, func.count(), func.max(jobs.c.number)).group_by(jobs.c.thread)):
        found[row[0]] |= {"jobs": row[1], "last": row[2]}
    still = select(jobs.c.thread, func.count()).where(jobs.c.phase.not_in(_FINAL)).group_by(jobs.c.thread)
    for row in connection.execute(still):
        found[row[0]]["open"] = row[1]
    for row in connection.execute(select(jobs.c.thread, jobs.c.template).distinct().order_by(jobs.c.template)):
        found[row[0]].setdefault("templates", []).append(row[1])
    live = select(schedules.c.thread, func.count()).where(schedules.c.state.in_(_LIVE)).group_by(schedules.c.thread)
    for row in connection.execute(live):
        found[row[0]]["schedules"] = row[1]
    for row in connection.execute(select(threads)):
        if row.thread in found:
            found[row.thread] |= {"state": row.state, "note": row.note}
    _add_last(connection, found)
    return [ThreadRow(thread=name, **found[name]) for name in sorted(found)]


def find_thread(connection: Connection, thread: str) -> ThreadRow:
    """Return one thread. Raises ``NotFound``."""
    every = {row.thread: row for row in list_threads(connection)}
    if thread in every:
        return every[thread]
    near = difflib.get_close_matches(thread, every, n=3, cutoff=0.4)
    advice = f"Nearest: {', '.join(near)}." if near else "`perdure threads list` shows what there is."
    raise NotFound(f"There is no thread {thread!r}. {advice}")


def state_of(connection: Connection, thread: str) -> tuple[ThreadStanding, str]:
    """Return (state, note) of a thread; one that nobody spoke of is active."""
    threads = schema.threads
    row = connection.execute(select(threads).where(threads.c.thread == thread)).one_or_none()
    return (row.state, row.note) if row is not None else ("active", "")


def refuse_resting(connection: Connection, thread: str) -> None:
    """Raise ``Conflict`` when nothing new may begin in a thread."""
    state, note = state_of(connection, thread)
    if state != "active":
        why = f": {note}" if note else ""
        raise Conflict(f"Thread {thread} is {state}{why}. Nothing was started. `perdure threads resume {thread}`.")


def set_state(connection: Connection, thread: str, state: ThreadStanding, note: str, by: str, at: datetime) -> None:
    """Write how a thread is to stand."""
    row = find_thread(connection, thread)
    if row.state == state:
        raise Conflict(f"Thread {thread} is {state} already. Nothing was changed.")
    if state == "archived" and (row.open or row.schedules):
        raise Conflict(
            f"Thread {thread} has {row.open} open jobs and {row.schedules} schedules; it is archived when they have "
            f"ended: `perdure jobs --open --thread {thread}`, `perdure schedule list --thread {thread}`."
        )
    body = {"thread": thread, "note": clean(note)}
    append_event(connection, thread=thread, kind=f"thread.{state}", actor=by, body=body, at=at)
    threads = schema.threads
    values = {"state": state, "note": clean(note), "by": by, "at": time_text(at)}
    changed = connection.execute(update(threads).where(threads.c.thread == thread).values(**values))
    if not changed.rowcount:
        connection.execute(insert(threads).values(thread=thread, **values))


def decisions_of(connection: Connection, job_ids: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return (kind, who) of the decisions on each job, in order."""
    decisions = schema.decisions
    query = select(decisions).where(decisions.c.job_id.in_(job_ids)).order_by(decisions.c.position)
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in connection.execute(query):
        found[row.job_id].append((row.kind, row.by))
    return found


def _add_last(connection: Connection, found: dict[str, dict[str, Any]]) -> None:
    jobs = schema.jobs
    numbers = [about.pop("last") for about in found.values() if "last" in about]
    for row in connection.execute(select(jobs).where(jobs.c.number.in_(numbers))):
        last = {"last_job": f"{row.thread}/{row.sequence}", "last_phase": row.phase, "last_at": time_of(row.updated_at)}
        found[row.thread] |= last
