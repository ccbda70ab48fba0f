"""What the end of a scheduled job says about its schedule: failures in a row are said once, and once when they end."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select, update

from perdure.contracts.job import JobPhase
from perdure.store import schema
from perdure.store.events import append_event

FAILED = frozenset({JobPhase.failed, JobPhase.stuck})
WENT_WELL = frozenset({JobPhase.done, JobPhase.nothing_to_do})
"""Other ends (rejected, expired, superseded, cancelled) are people's or the clock's, and say nothing about it."""


def settle_fire(connection: Connection, job_id: str, phase: JobPhase, summary: str, at: datetime) -> None:
    """Count the end of a job that a schedule started; nothing for any other job."""
    fires, schedules = schema.fires, schema.schedules
    query = select(schedules).join(fires, fires.c.schedule == schedules.c.name).where(fires.c.job_id == job_id)
    schedule = connection.execute(query).one_or_none()
    if schedule is None:
        return
    if phase in FAILED:
        _count_failure(connection, schedule, job_id, summary, at)
    elif phase in WENT_WELL:
        if schedule.alerted:
            detail = f"goes well again, after {schedule.failures} failures in a row"
            _say(connection, schedule, "recovered", job_id, detail, at)
        _set(connection, schedule.name, failures=0, alerted=False, trouble="")


def _count_failure(connection: Connection, schedule: Row[Any], job_id: str, summary: str, at: datetime) -> None:
    failures = schedule.failures + 1
    is_news = failures >= schedule.alert_after and not schedule.alerted
    trouble = f"failed {failures} times in a row: {summary}"[:500]
    if is_news:
        _say(connection, schedule, "alert", job_id, trouble, at)
    _set(connection, schedule.name, failures=failures, alerted=schedule.alerted or is_news, trouble=trouble)


def _say(connection: Connection, schedule: Row[Any], kind: str, job_id: str, detail: str, at: datetime) -> None:
    append_event(
        connection,
        thread=schedule.thread,
        kind=f"schedule.{kind}",
        actor="perdure",
        body={"schedule": schedule.name, "detail": detail},
        job_id=job_id,
        workflow_id=f"schedule/{schedule.name}",
        step=f"{kind}.{job_id}",
        at=at,
    )


def _set(connection: Connection, name: str, **values: Any) -> None:
    schedules = schema.schedules
    connection.execute(update(schedules).where(schedules.c.name == name).values(**values))
