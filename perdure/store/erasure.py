"""Forgetting what a thread's records say, without breaking the chain that says that they were."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select, update

from perdure.errors import Conflict, NotFound
from perdure.store import schema
from perdure.store.database import Database
from perdure.store.events import INSTALLATION, append_event
from perdure.store.evidence import ERASED
from perdure.store.jobs import is_final
from perdure.store.threads import list_threads, set_state


def delete_thread(database: Database, thread: str, *, by: str, at: datetime) -> int:
    """Erase what a thread's records say and archive it, both or neither; return how many contents went.

    A second time only erases what was recorded since. Raises what :func:`erase_thread` does.
    """
    with database.write() as connection:
        erased = erase_thread(connection, thread, by, at)
        rows = {row.thread: row for row in list_threads(connection)}
        if thread in rows and rows[thread].state != "archived":
            set_state(connection, thread, "archived", "", by, at)
        return erased


def erase_thread(connection: Connection, thread: str, by: str, at: datetime) -> int:
    """Delete the contents of a thread's records and the texts beside them; return how many contents went.

    Names of jobs, kinds, times and actors stay: the chain's hashes cover them.

    Raises:
        NotFound: no record is in such a thread.
        Conflict: a job of the thread is not finished, or a schedule of it may start one.
    """
    _refuse_living(connection, thread)
    events, contents, jobs = schema.events, schema.contents, schema.jobs
    positions = select(events.c.position).where(events.c.thread == thread)
    erased = connection.execute(delete(contents).where(contents.c.position.in_(positions))).rowcount
    connection.execute(update(jobs).where(jobs.c.thread == thread).values(summary=""))
    job_ids = select(jobs.c.job_id).where(jobs.c.thread == thread)
    connection.execute(update(schema.plans).where(schema.plans.c.job_id.in_(job_ids)).values(title=""))
    connection.execute(update(schema.intents).where(schema.intents.c.job_id.in_(job_ids)).values(detail=""))
    _erase_agents(connection, thread, job_ids)
    _erase_words(connection, thread)
    body = {"thread": thread, "contents": erased}
    append_event(connection, thread=INSTALLATION, kind=ERASED, actor=by, body=body, at=at)
    return erased


def _erase_agents(connection: Connection, thread: str, job_ids: Any) -> None:
    """Delete what agents of the thread said, did and noted; that there were agents, and what they cost, stays."""
    agents = select(schema.agents.c.agent_id).where(schema.agents.c.job_id.in_(job_ids))
    for table in (schema.transcript, schema.agent_summaries, schema.agent_turns, schema.agent_calls):
        connection.execute(delete(table).where(table.c.agent_id.in_(agents)))
    connection.execute(update(schema.agents).where(schema.agents.c.job_id.in_(job_ids)).values(end_sentence=""))
    connection.execute(delete(schema.notes).where(schema.notes.c.thread == thread))


def _erase_words(connection: Connection, thread: str) -> None:
    """Empty what people said about the thread and its schedules, and what went wrong with those."""
    threads, schedules = schema.threads, schema.schedules
    connection.execute(update(threads).where(threads.c.thread == thread).values(note=""))
    connection.execute(update(schedules).where(schedules.c.thread == thread).values(note="", trouble=""))


def _refuse_living(connection: Connection, thread: str) -> None:
    events, jobs = schema.events, schema.jobs
    if connection.execute(select(events.c.position).where(events.c.thread == thread).limit(1)).first() is None:
        raise NotFound(f"The ledger holds nothing of a thread {thread!r}.")
    if thread == INSTALLATION:
        raise Conflict("The installation's own records say who was trusted with what; they are not erased.")
    for job in connection.execute(select(jobs).where(jobs.c.thread == thread)):
        if not is_final(job):
            raise Conflict(f"{thread}/{job.sequence} is not finished ({job.phase}); erase its thread afterwards.")
    schedules = schema.schedules
    live = select(schedules.c.name).where(schedules.c.thread == thread, schedules.c.state != "deleted")
    names = list(connection.execute(live.order_by(schedules.c.name)).scalars())
    if names:
        raise Conflict(
            f"Schedule {names[0]} may still start jobs in {thread}; `perdure schedule delete {names[0]}` first. "
            "Nothing was erased."
        )
