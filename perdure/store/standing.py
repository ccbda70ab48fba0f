"""How jobs, gates and applications stand, by the ledger: what a workflow asks after somebody told it something."""

from __future__ import annotations

from itertools import takewhile

from sqlalchemy import Connection, select

from perdure.contracts import names
from perdure.contracts.application import ApplicationStanding
from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.job import AppliedPart, JobState, PlanRef
from perdure.store import intents, schema
from perdure.store.arbiter import GOES_ON
from perdure.store.events import bodies_of, find_event
from perdure.store.jobs import is_final
from perdure.store.permits import find_permit, permit_of
from perdure.store.plans import plan_row


def application_standing(connection: Connection, application_id: str) -> ApplicationStanding:
    """Return how an application stands; ``open`` also when nobody has heard of it.

    One that was permitted ends on its permit. One that was refused before that has only the record of it.
    """
    permit = permit_of(connection, application_id)
    closed = _last_close(connection, application_id)
    state = permit.closed if permit is not None else closed.get("state", "")
    detail = closed.get("detail", "") if closed.get("state") == state else ""
    return ApplicationStanding.model_validate(
        {"state": state or "open", "reached": _reached(connection, application_id), "detail": detail}
    )


def job_state(connection: Connection, job_id: str) -> JobState | None:
    """Return where a job stands, as what its workflow is started with; ``None`` when it has ended or there is none.

    Reviewers' edits are not in it: whether they count is not for the ledger to say.
    """
    jobs = schema.jobs
    job = connection.execute(select(jobs).where(jobs.c.job_id == job_id)).one_or_none()
    if job is None or is_final(job):
        return None
    spec = BlobRef(sha256=job.spec_sha256, size_bytes=job.spec_size)
    begun = JobState(job_id=job_id, spec=spec, step=_last_step(connection, job_id))
    plans = _asked_plans(connection, job_id)
    if not plans:
        return begun
    *earlier, (last, gate) = plans
    end = _end_of(connection, last)
    parts = [part for plan, _ in plans if (part := _part(connection, plan)) is not None]
    if gate == "changes_requested" or end in ("drift", "refused"):  # the next round was being prepared
        return begun.model_copy(update={"round": last.round + 1, "previous": last.digest, "parts": parts})
    previous = earlier[-1][0].digest if earlier else ""
    return begun.model_copy(update={"round": last.round, "plan": last, "previous": previous, "parts": parts})


def gate_detail(connection: Connection, digest: str) -> str:
    """Return what was written about the end of a plan's gate; empty while it is open."""
    plan = plan_row(connection, digest)
    closed = find_event(connection, plan.gate_id, "close") if plan.gate_id else None
    body = bodies_of(connection, [closed.position]).get(closed.position, {}) if closed is not None else {}
    return str(body.get("detail", ""))


def _asked_plans(connection: Connection, job_id: str) -> list[tuple[PlanRef, str]]:
    """Plans with how their gate stands, oldest first; without those that were replaced before anybody was asked."""
    plans = schema.plans
    was_asked = (plans.c.state != "superseded") | (plans.c.gate_id != "")  # a later fire's plan supersedes open ones
    query = select(plans).where(plans.c.job_id == job_id, was_asked, plans.c.round < names.CALL_ROUNDS)
    rows = connection.execute(query.order_by(plans.c.round, plans.c.position)).all()
    bodies = bodies_of(connection, [row.position for row in rows])
    return [(PlanRef.model_validate(bodies[row.position]["plan"]), row.state) for row in rows]


def _end_of(connection: Connection, plan: PlanRef) -> str:
    permit = find_permit(connection, plan.digest)
    return permit.closed if permit is not None else ""


def _part(connection: Connection, plan: PlanRef) -> AppliedPart | None:
    """The first effects of a plan, when it stopped half-way and they still stand."""
    permit = find_permit(connection, plan.digest)
    if permit is None or permit.closed not in ("drift", "refused"):
        return None
    reached = _reached(connection, permit.application_id)
    return AppliedPart(application_id=permit.application_id, plan=plan, reached=reached) if reached else None


def _last_step(connection: Connection, job_id: str) -> int:
    """The highest number under which the job's workflow has noted a phase: the next ones go on from there."""
    events = schema.events
    query = select(events.c.step).where(events.c.workflow_id == job_id, events.c.step.startswith("phase."))
    return max((int(step.removeprefix("phase.")) for step in connection.execute(query).scalars()), default=0)


def _reached(connection: Connection, application_id: str) -> int:
    rows = intents.list_intents(connection, application_id=application_id)
    ends = {row.index: row.state for row in rows if row.direction == "do"}
    return len(list(takewhile(lambda index: ends.get(index) in GOES_ON, range(len(ends)))))


def _last_close(connection: Connection, application_id: str) -> JsonDict:
    events = schema.events
    query = select(events.c.position).where(
        events.c.workflow_id == application_id, events.c.kind == "application.closed"
    )
    position = connection.execute(query.order_by(events.c.position.desc()).limit(1)).scalar_one_or_none()
    return bodies_of(connection, [position]).get(position, {}) if position is not None else {}
