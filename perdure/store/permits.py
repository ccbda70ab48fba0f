"""The one-shot right to apply a digest: granted after the gate, spent by the first effect, or withdrawn before it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from perdure.errors import Conflict, Refused
from perdure.policy.gates import GATE_KINDS
from perdure.store import schema
from perdure.store.events import append_event, bodies_of, find_event
from perdure.store.jobs import job_row
from perdure.store.plans import NOT_OPENED, OPEN, describe_end, plan_row, refuse_unweighed
from perdure.store.rows import PermitRow, PlanRow

SATISFIED = "satisfied"


def grant_permit(
    connection: Connection, digest: str, job_id: str, application_id: str, at: datetime, weighed: int | None
) -> None:
    """Give one application the right to apply ``digest``; a no-op when it has it.

    Raises:
        Refused: the plan is not approved, its approval was withdrawn, or another application has the right.
        Conflict: other decisions are recorded by now than the ``weighed`` ones.
    """
    plan = plan_row(connection, digest)
    found = find_permit(connection, digest)
    if found is not None and found.state == "withdrawn":
        raise Refused(f"The approval of plan {digest[:8]} was withdrawn by {found.withdrawn_by}. Nothing was applied.")
    if found is not None:
        _refuse_other_holder(found, job_id, application_id)
        return
    _refuse_unapproved(connection, plan, job_id, weighed)
    permit = {"digest": digest, "job_id": job_id, "application_id": application_id, "state": "granted"}
    connection.execute(insert(schema.permits).values(**permit, withdrawn_by="", closed=""))
    append_event(
        connection,
        thread=job_row(connection, job_id).thread,
        kind="permit.granted",
        actor="perdure",
        body={"digest": digest, "application_id": application_id},
        job_id=job_id,
        workflow_id=application_id,
        step="permit.granted",
        at=at,
    )


def spend_permit(connection: Connection, permit: PermitRow, thread: str, at: datetime) -> None:
    """Use the right up, in the transaction of the first intent; a no-op when this application did so before."""
    if permit.state == "spent":
        return
    connection.execute(update(schema.permits).where(schema.permits.c.digest == permit.digest).values(state="spent"))
    append_event(
        connection,
        thread=thread,
        kind="permit.spent",
        actor="perdure",
        body={"digest": permit.digest, "application_id": permit.application_id},
        job_id=permit.job_id,
        workflow_id=permit.application_id,
        step="permit.spent",
        at=at,
    )


def refuse_late_withdrawal(connection: Connection, plan: PlanRow, by: str) -> None:
    """Raise ``Conflict`` when there is nothing (left) that this person could withdraw."""
    permit = find_permit(connection, plan.digest)
    if permit is not None and permit.state == "spent":
        raise Conflict(
            f"It is too late to withdraw: plan {plan.digest[:8]} is being applied or was applied. "
            "`perdure cancel` stops it at the next effect; `perdure undo` takes it back."
        )
    if plan.state not in (OPEN, SATISFIED):
        raise Conflict(f"There is nothing to withdraw from plan {plan.digest[:8]}: {describe_end(plan)}.")
    if _last_words(connection, plan.digest).get(by, "withdraw") == "withdraw":
        raise Conflict(f"{by} has no decision on plan {plan.digest[:8]} that could be withdrawn.")


def withdraw_permit(connection: Connection, digest: str, by: str) -> None:
    """Take the right away, or the chance to get it; while the gate is open, weighing hears the withdrawal."""
    if plan_row(connection, digest).state == OPEN:
        return
    permit = find_permit(connection, digest)
    values = {"state": "withdrawn", "withdrawn_by": by}
    if permit is None:
        new = {"digest": digest, "job_id": plan_row(connection, digest).job_id, "application_id": None, "closed": ""}
        connection.execute(insert(schema.permits).values(**new, **values))
    else:
        connection.execute(update(schema.permits).where(schema.permits.c.digest == digest).values(**values))


def find_permit(connection: Connection, digest: str) -> PermitRow | None:
    """Return the permit for a digest, if there is one."""
    return _permit(connection.execute(select(schema.permits).where(schema.permits.c.digest == digest)).one_or_none())


def permit_of(connection: Connection, application_id: str) -> PermitRow | None:
    """Return the permit that an application was granted, if any."""
    query = select(schema.permits).where(schema.permits.c.application_id == application_id)
    return _permit(connection.execute(query).one_or_none())


def all_permits(connection: Connection) -> list[PermitRow]:
    """Return every permit, by digest."""
    rows = connection.execute(select(schema.permits).order_by(schema.permits.c.digest))
    return [permit for permit in map(_permit, rows) if permit is not None]


def _refuse_other_holder(found: PermitRow, job_id: str, application_id: str) -> None:
    if (found.job_id, found.application_id) != (job_id, application_id):
        raise Refused(
            f"The permit for plan {found.digest[:8]} belongs to {found.application_id}; {application_id} has no right "
            "to apply it. Nothing was applied."
        )


def _refuse_unapproved(connection: Connection, plan: PlanRow, job_id: str, weighed: int | None) -> None:
    what = f"Plan {plan.digest[:8]} may not be applied"
    if plan.job_id != job_id:
        raise Refused(f"{what} by {job_id}: it belongs to {plan.job_id}.")
    if plan.needs_gate and plan.state != SATISFIED:
        raise Refused(f"{what}: {describe_end(plan)}.")
    if not plan.needs_gate and plan.state not in (NOT_OPENED, SATISFIED):
        raise Refused(f"{what}: it is {plan.state!r}.")
    refuse_unweighed(connection, plan.digest, weighed)
    if weighed is None and not _was_weighed(connection, plan):
        _refuse_any_no(connection, plan.digest)


def _refuse_any_no(connection: Connection, digest: str) -> None:
    """Nobody compared what was weighed with what is recorded: then any last word that is no "approve" stops it."""
    against = sorted(
        by for by, kind in _last_words(connection, digest).items() if kind not in ("approve", "break_glass")
    )
    if against:
        raise Refused(f"Plan {digest[:8]} may not be applied: the last word of {', '.join(against)} is against it.")


def _was_weighed(connection: Connection, plan: PlanRow) -> bool:
    """Whether the gate closed on exactly the decisions recorded then; a withdrawal since lies on the permit itself."""
    closed = find_event(connection, plan.gate_id, "close") if plan.gate_id else None
    if closed is None:
        return False
    return bodies_of(connection, [closed.position]).get(closed.position, {}).get("weighed") is not None


def _last_words(connection: Connection, digest: str) -> dict[str, str]:
    """The kind of each person's newest decision on a digest, by person."""
    decisions = schema.decisions
    query = select(decisions).where(decisions.c.digest == digest, decisions.c.kind.in_(GATE_KINDS))
    return {row.by: row.kind for row in connection.execute(query.order_by(decisions.c.position))}


def _permit(row: Row[Any] | None) -> PermitRow | None:
    if row is None:
        return None
    return PermitRow(
        digest=row.digest,
        job_id=row.job_id,
        application_id=row.application_id or "",
        state=row.state,
        withdrawn_by=row.withdrawn_by,
        closed=row.closed,
    )
