"""Fires in the ledger: each becomes one job or none, once for ever; a newer plan takes an untouched one's place."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import CloseGateInput, GateInput
from perdure.contracts.http import EventView
from perdure.contracts.job import AdmitInput, JobPhase
from perdure.contracts.names import CALL_ROUNDS
from perdure.contracts.schedules import FiredJob
from perdure.errors import Conflict
from perdure.store import schema
from perdure.store.chain import time_of, time_text
from perdure.store.events import view_of
from perdure.store.fire_ends import WENT_WELL
from perdure.store.jobs import admit_job, request_job
from perdure.store.plans import OPEN, close_gate, plan_row
from perdure.store.schedules import find_schedule, note_schedule
from perdure.store.threads import state_of

AT_WORK = frozenset(
    {
        JobPhase.queued,
        JobPhase.gathering,
        JobPhase.analyzing,
        JobPhase.drafting,
        JobPhase.verifying,
        JobPhase.applying,
        JobPhase.undoing,
    }
)
"""Phases in which nobody is waited for: such a job holds the next fire. One that waits for a person never does."""


@dataclass(frozen=True)
class FireStanding:
    """What a choice is made on."""

    handled_until: datetime
    delivered_until: datetime
    """Due time of the last fire whose job went well; when the schedule was made, where none has."""
    taken: frozenset[str]
    """Keys of all fires there were; empty when nobody asked for any."""
    busy: str
    """Name of the job that is at work; empty: none is."""
    spent_microdollars: int
    spent_unknown: bool
    rests: bool
    """Its thread is paused or archived: nothing new begins there."""
    queued: tuple[FiredJob, ...]
    """Jobs that were admitted and whose workflow may not have begun."""


@dataclass(frozen=True)
class FireTake:
    """One step of a schedule, written whole or not at all."""

    schedule: str
    expected: datetime
    """``handled_until`` as it was when the step was chosen."""
    handled_until: datetime
    key: str = ""
    kind: str = "timed"
    due_at: datetime | None = None
    job: AdmitInput | None = None
    """``None`` with a key: the fire is given up."""
    notes: tuple[tuple[str, dict[str, Any]], ...] = field(default=())
    """(kind, body) of the records, keyed by the fire."""
    trouble: str = ""


def read_standing(connection: Connection, name: str, at: datetime, cost_days: int, *, with_taken: bool) -> FireStanding:
    """Return how a schedule's fires stand; ``with_taken``: with the keys of all that there ever were."""
    schedule = find_schedule(connection, name)
    fires = schema.fires
    keys = select(fires.c.key).where(fires.c.schedule == name)
    rows = connection.execute(keys).scalars() if with_taken else ()
    spent, unknown = read_spending(connection, name, at - timedelta(days=cost_days))
    return FireStanding(
        handled_until=schedule.handled_until,
        delivered_until=_delivered_until(connection, name) or schedule.created_at,
        taken=frozenset(rows),
        busy=_busy(connection, name),
        spent_microdollars=spent,
        spent_unknown=unknown,
        rests=state_of(connection, schedule.thread)[0] != "active",
        queued=tuple(
            FiredJob(job_id=row.job_id, spec=BlobRef(sha256=row.spec_sha256, size_bytes=row.spec_size))
            for row in connection.execute(_jobs_of(name).where(schema.jobs.c.phase == JobPhase.queued.value))
        ),
    )


def read_spending(connection: Connection, name: str, since: datetime) -> tuple[int, bool]:
    """Return what a schedule's jobs have spent on models since then, and whether a part of it is unknown."""
    fires, agents = schema.fires, schema.agents
    query = (
        select(func.coalesce(func.sum(agents.c.cost_microdollars), 0), func.max(agents.c.unknown_cost))
        .join(fires, fires.c.job_id == agents.c.job_id)
        .where(fires.c.schedule == name, agents.c.started_at >= time_text(since))
    )
    if connection.dialect.name == "postgresql":
        query = query.with_only_columns(
            func.coalesce(func.sum(agents.c.cost_microdollars), 0), func.bool_or(agents.c.unknown_cost)
        )
    spent, unknown = connection.execute(query).one()
    return int(spent), bool(unknown)


def take_fire(connection: Connection, take: FireTake, at: datetime) -> None:
    """Write one step: the fire, its job, what is to be known about it.

    Raises:
        Conflict: somebody changed the schedule since the step was chosen, or the fire is there; choose again.
    """
    schedule = find_schedule(connection, take.schedule)
    if schedule.handled_until != take.expected:
        raise Conflict(f"Schedule {take.schedule!r} was changed meanwhile. Nothing was written.")
    if take.key:
        _insert_fire(connection, take, at)
    if take.job is not None:
        request_job(connection, take.job, at)
        admit_job(connection, take.job, at)
    job_id = take.job.job_id if take.job else ""
    for kind, body in take.notes:
        note_schedule(connection, take.schedule, kind, take.key or time_text(take.handled_until), body, at, job_id)
    schedules = schema.schedules
    values: dict[str, Any] = {"handled_until": time_text(take.handled_until)}
    if take.trouble:
        values["trouble"] = take.trouble
    connection.execute(update(schedules).where(schedules.c.name == take.schedule).values(**values))


def supersede_older(connection: Connection, gate: GateInput, at: datetime) -> list[str]:
    """Close the open plans of earlier fires that nobody has touched; return the gates that must look, each time.

    Any decision of a person about a job, a comment too, means that somebody works with it: it stays.
    """
    fires = schema.fires
    mine = connection.execute(select(fires).where(fires.c.job_id == gate.job_id)).one_or_none()
    if mine is None or plan_row(connection, gate.digest).round >= CALL_ROUNDS:
        return []
    if _newer_plan(connection, mine.schedule) != "supersedes":
        return []
    told = []
    for row in connection.execute(_asked_plans(mine.schedule)).all():
        if row.due_at >= mine.due_at or row.job_id == gate.job_id:
            continue
        if row.state == OPEN and not _is_touched(connection, row.job_id):
            _supersede(connection, row, gate, at)
            told.append(row.gate_id)
        elif row.state == "superseded":  # closed before, by an attempt that told nobody
            told.append(row.gate_id)
    return told


def schedule_of(connection: Connection, job_id: str) -> str:
    """Return the name of the schedule that started a job; empty for any other."""
    fires = schema.fires
    return connection.execute(select(fires.c.schedule).where(fires.c.job_id == job_id)).scalar_one_or_none() or ""


def _insert_fire(connection: Connection, take: FireTake, at: datetime) -> None:
    fires = schema.fires
    found = connection.execute(select(fires).where(fires.c.schedule == take.schedule, fires.c.key == take.key)).first()
    if found is not None:
        raise Conflict(f"{take.schedule} {take.key} has run before: a second fire with that id is the same run.")
    assert take.due_at is not None
    connection.execute(
        insert(fires).values(
            schedule=take.schedule,
            key=take.key,
            job_id=take.job.job_id if take.job else None,
            kind=take.kind,
            due_at=time_text(take.due_at),
            at=time_text(at),
        )
    )


def _supersede(connection: Connection, row: Row[Any], gate: GateInput, at: datetime) -> None:
    close = CloseGateInput(
        gate_id=row.gate_id,
        job_id=row.job_id,
        digest=row.digest,
        outcome="superseded",
        detail=f"The plan of a later fire took its place: {gate.digest[:8]}.",
    )
    close_gate(connection, close, at, weighed=0)


def _asked_plans(schedule: str) -> Any:
    fires, plans, jobs = schema.fires, schema.plans, schema.jobs
    return (
        select(plans, fires.c.due_at)
        .join(fires, fires.c.job_id == plans.c.job_id)
        .join(jobs, jobs.c.job_id == plans.c.job_id)
        .where(
            fires.c.schedule == schedule,
            plans.c.round < CALL_ROUNDS,
            plans.c.gate_id != "",
            plans.c.state.in_((OPEN, "superseded")),
            jobs.c.phase == JobPhase.waiting.value,
        )
    )


def _is_touched(connection: Connection, job_id: str) -> bool:
    decisions = schema.decisions
    return connection.execute(select(decisions.c.id).where(decisions.c.job_id == job_id)).first() is not None


def _newer_plan(connection: Connection, schedule: str) -> str:
    schedules = schema.schedules
    return str(connection.execute(select(schedules.c.newer_plan).where(schedules.c.name == schedule)).scalar_one())


def _delivered_until(connection: Connection, name: str) -> datetime | None:
    fires, jobs = schema.fires, schema.jobs
    query = (
        select(func.max(fires.c.due_at))
        .join(jobs, jobs.c.job_id == fires.c.job_id)
        .where(fires.c.schedule == name, fires.c.kind == "timed", jobs.c.phase.in_([one.value for one in WENT_WELL]))
    )
    found = connection.execute(query).scalar_one_or_none()
    return time_of(found) if found else None


def _busy(connection: Connection, name: str) -> str:
    """Name of a job of the schedule that works. An agent that is parked waits for a person: its job is not at work."""
    jobs, agents = schema.jobs, schema.agents
    parked = select(agents.c.job_id).where(agents.c.parked_at.is_not(None), agents.c.end_reason == "")
    query = _jobs_of(name).where(jobs.c.phase.in_([one.value for one in AT_WORK]), jobs.c.job_id.not_in(parked))
    row = connection.execute(query.order_by(jobs.c.number)).first()
    return f"{row.thread}/{row.sequence}" if row else ""


def _jobs_of(name: str) -> Any:
    fires, jobs = schema.fires, schema.jobs
    return select(jobs).join(fires, fires.c.job_id == jobs.c.job_id).where(fires.c.schedule == name)


def newest_jobs(connection: Connection, name: str, limit: int) -> list[tuple[str, str]]:
    """Return (key, job id) of a schedule's jobs, newest first."""
    fires, jobs = schema.fires, schema.jobs
    query = select(fires.c.key, fires.c.job_id).join(jobs, jobs.c.job_id == fires.c.job_id)
    rows = connection.execute(query.where(fires.c.schedule == name).order_by(jobs.c.number.desc()).limit(limit))
    return [(row.key, row.job_id) for row in rows]


def schedule_events(connection: Connection, name: str, limit: int) -> list[EventView]:
    """Return what was recorded about a schedule's fires, newest first."""
    events, contents = schema.events, schema.contents
    query = (
        select(events, contents.c.body)
        .outerjoin(contents, contents.c.position == events.c.position)
        .where(events.c.workflow_id == f"schedule/{name}")
        .order_by(events.c.position.desc())
        .limit(limit)
    )
    return [view_of(row) for row in connection.execute(query)]
