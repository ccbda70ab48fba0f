"""Jobs in the ledger: admission, phases, and how people name them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from perdure.contracts.base import JsonDict
from perdure.contracts.http import JobView
from perdure.contracts.job import Admission, AdmitInput, JobPhase, NoteInput
from perdure.contracts.names import CALL_ROUNDS, JobId
from perdure.errors import Conflict, NotFound, UserError
from perdure.store import schema
from perdure.store.chain import time_of, time_text
from perdure.store.events import append_event, bodies_of, clean, find_event
from perdure.store.fire_ends import settle_fire
from perdure.store.threads import refuse_resting

LAST = "@last"

_REQUEST = "request"


def request_job(connection: Connection, job: AdmitInput, at: datetime) -> None:
    """Write that a front door was asked for a job, by somebody who may; a no-op when it was asked for exactly this.

    Raises:
        Conflict: its id was used to ask for something else; or its thread is paused or archived.
    """
    if find_event(connection, job.job_id, _REQUEST) is None:
        refuse_resting(connection, _thread_of(job.job_id))
    _, is_new = append_event(
        connection,
        thread=_thread_of(job.job_id),
        kind="job.requested",
        actor=job.requester,
        body=_request_of(job),
        job_id=job.job_id,
        workflow_id=job.job_id,
        step=_REQUEST,
        at=at,
    )
    if not is_new and not was_requested(connection, job):
        raise Conflict(f"{job.job_id} was used to ask for another job. Use a new request id for a new job.")


def was_requested(connection: Connection, job: AdmitInput) -> bool:
    """Whether a front door was asked for exactly this job. What only a workflow was told does not count."""
    found = find_event(connection, job.job_id, _REQUEST)
    if found is None or found.actor != clean(job.requester):
        return False
    return bodies_of(connection, [found.position]).get(found.position) == _request_of(job)


def admit_job(connection: Connection, job: AdmitInput, at: datetime) -> Admission:
    """Give a job its numbers. The same job again gives the same numbers; another one under its id is refused."""
    found = _by_id(connection, job.job_id)
    if found is not None:
        return _admitted_before(found, job)
    thread = _thread_of(job.job_id)
    number = _next(connection, schema.jobs.c.number)
    sequence = _next(connection, schema.jobs.c.sequence, schema.jobs.c.thread == thread)
    connection.execute(
        insert(schema.jobs).values(
            job_id=job.job_id,
            number=number,
            thread=thread,
            sequence=sequence,
            template=clean(job.template),
            requester=clean(job.requester),
            spec_sha256=job.spec.sha256,
            spec_size=job.spec.size_bytes,
            phase=JobPhase.queued.value,
            summary=clean(job.summary),
            created_at=time_text(at),
            updated_at=time_text(at),
            cancelled_by="",
        )
    )
    append_event(
        connection,
        thread=thread,
        kind="job.admitted",
        actor=job.requester,
        body={
            "number": number,
            "sequence": sequence,
            "template": clean(job.template),
            "spec": job.spec.model_dump(mode="json"),
            "summary": clean(job.summary),
        },
        job_id=job.job_id,
        workflow_id=job.job_id,
        step="admit",
        at=at,
    )
    return Admission(job_id=job.job_id, number=number, sequence=sequence)


def note_job(connection: Connection, note: NoteInput, workflow_id: str, at: datetime) -> None:
    """Write a change of phase; a no-op when this (workflow id, step) was noted before."""
    job = job_row(connection, note.job_id)
    _, is_new = append_event(
        connection,
        thread=job.thread,
        kind="job.phase",
        actor="perdure",
        body={"phase": note.phase.value, "summary": clean(note.summary)},
        job_id=note.job_id,
        workflow_id=workflow_id,
        step=f"phase.{note.step}",
        at=at,
    )
    if is_new:
        values = {"phase": note.phase.value, "updated_at": time_text(at)}
        if note.summary:
            values["summary"] = clean(note.summary)
        connection.execute(update(schema.jobs).where(schema.jobs.c.job_id == note.job_id).values(**values))
        if note.phase.is_final:
            settle_fire(connection, note.job_id, note.phase, clean(note.summary), at)


def job_row(connection: Connection, job_id: str) -> Row[Any]:
    """Return a job's row by its whole id. Raises ``NotFound``."""
    row = _by_id(connection, job_id)
    if row is None:
        raise NotFound(f"There is no job {job_id!r} in the ledger. `perdure jobs` lists them.")
    return row


def find_job(connection: Connection, ref: str) -> JobView:
    """Return the job that ``ref`` names: whole id, number, ``<thread>/<sequence>`` or ``@last``.

    Raises:
        NotFound: with the nearest names.
    """
    jobs = schema.jobs
    thread, slash, sequence = ref.rpartition("/")
    query = select(jobs).where(jobs.c.job_id == ref)
    if ref == LAST:
        query = select(jobs).order_by(jobs.c.number.desc()).limit(1)
    elif _is_number(ref):
        query = select(jobs).where(jobs.c.number == int(ref))
    elif slash and _is_number(sequence) and "/" not in thread:
        query = select(jobs).where(jobs.c.thread == thread, jobs.c.sequence == int(sequence))
    row = connection.execute(query).one_or_none()
    if row is None:
        raise _not_found(connection, ref)
    return _views(connection, [row])[0]


def list_jobs(
    connection: Connection, *, thread: str | None, open_only: bool, limit: int, phases: Collection[JobPhase] = ()
) -> list[JobView]:
    """Return jobs, newest first; ``phases``: those in one of these."""
    jobs = schema.jobs
    query = select(jobs)
    if thread is not None:
        query = query.where(jobs.c.thread == thread)
    if open_only:
        query = query.where(jobs.c.phase.not_in([phase.value for phase in JobPhase if phase.is_final]))
    if phases:
        query = query.where(jobs.c.phase.in_([phase.value for phase in phases]))
    rows = connection.execute(query.order_by(jobs.c.number.desc()).limit(limit)).all()
    return _views(connection, rows)


def is_final(job: Row[Any]) -> bool:
    """Whether nothing more will happen to a job by itself."""
    return JobPhase(job.phase).is_final


def _request_of(job: AdmitInput) -> JsonDict:
    return {"spec": job.spec.model_dump(mode="json"), "template": clean(job.template)}


def _by_id(connection: Connection, job_id: str) -> Row[Any] | None:
    return connection.execute(select(schema.jobs).where(schema.jobs.c.job_id == job_id)).one_or_none()


def _admitted_before(found: Row[Any], job: AdmitInput) -> Admission:
    if found.spec_sha256 != job.spec.sha256:
        raise Conflict(
            f"{job.job_id} was admitted before as job {found.number} made from other inputs or another template. "
            "Use a new request id for a new job."
        )
    return Admission(job_id=found.job_id, number=found.number, sequence=found.sequence, already=True)


def _thread_of(job_id: str) -> str:
    try:
        return JobId.parse(job_id).thread
    except ValueError as error:
        raise UserError(str(error)) from error


def _next(connection: Connection, column: Any, *where: Any) -> int:
    return int(connection.execute(select(func.coalesce(func.max(column), 0)).where(*where)).scalar_one()) + 1


def _is_number(text: str) -> bool:
    # Larger ones fit no column; and "²" is a digit to str.isdigit.
    return text.isascii() and text.isdigit() and len(text) <= 9


def _not_found(connection: Connection, ref: str) -> NotFound:
    jobs = schema.jobs
    rows: Sequence[Row[Any]] = connection.execute(select(jobs).order_by(jobs.c.number.desc()).limit(200)).all()
    if not rows:
        return NotFound(f"There is no job {ref!r}: the ledger holds none yet. `perdure run TEMPLATE` starts one.")
    names = [_name(row) for row in rows]
    near = difflib.get_close_matches(ref, names, n=3, cutoff=0.5) or names[:3]
    return NotFound(f"There is no job {ref!r}. Nearest: {', '.join(near)}. `perdure jobs` lists them all.")


def _name(row: Row[Any]) -> str:
    return f"{row.thread}/{row.sequence}"


def _views(connection: Connection, rows: Sequence[Row[Any]]) -> list[JobView]:
    ids = [row.job_id for row in rows]
    plans, undone = _newest_plans(connection, ids), _undone_by(connection, ids)
    return [_view(row, plans.get(row.job_id), undone.get(row.job_id, "")) for row in rows]


def _newest_plans(connection: Connection, job_ids: list[str]) -> dict[str, Row[Any]]:
    plans = schema.plans
    # A call of an agent is shown while a person must decide on it; afterwards the job's own plan is its newest.
    shown = (plans.c.round < CALL_ROUNDS) | (plans.c.state == "open")
    query = select(plans).where(plans.c.job_id.in_(job_ids), shown).order_by(plans.c.position)
    return {row.job_id: row for row in connection.execute(query)}


def _undone_by(connection: Connection, job_ids: list[str]) -> dict[str, str]:
    """Names of the finished jobs that took these back, by the id of the job taken back."""
    plans, jobs = schema.plans, schema.jobs
    query = (
        select(plans.c.undoes, jobs.c.thread, jobs.c.sequence)
        .join(jobs, jobs.c.job_id == plans.c.job_id)
        .where(plans.c.undoes.in_(job_ids), jobs.c.phase == JobPhase.done.value)
        .order_by(jobs.c.number)
    )
    return {row.undoes: f"{row.thread}/{row.sequence}" for row in connection.execute(query)}


def _view(row: Row[Any], plan: Row[Any] | None, undone_by: str) -> JobView:
    return JobView(
        job_id=row.job_id,
        number=row.number,
        name=_name(row),
        thread=row.thread,
        template=row.template,
        phase=JobPhase(row.phase),
        summary=row.summary,
        requester=row.requester,
        created_at=time_of(row.created_at),
        updated_at=time_of(row.updated_at),
        digest=plan.digest if plan else "",
        round=plan.round if plan else 0,
        title=plan.title if plan else "",
        expires_at=time_of(plan.expires_at) if plan else None,
        undone_by=undone_by,
    )
