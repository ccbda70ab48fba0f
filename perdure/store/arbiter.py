"""Whether an effect may start, and how it ended. Every function runs inside one write transaction: the only writer."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from perdure.contracts.application import CloseApplicationInput, Direction, Receipt
from perdure.contracts.base import BlobRef
from perdure.contracts.names import job_of
from perdure.errors import Conflict, Refused
from perdure.store import intents, schema
from perdure.store.agent_rows import has_open_agent, undelivered
from perdure.store.chain import time_text
from perdure.store.decisions import resolution_after
from perdure.store.events import append_event, clean
from perdure.store.jobs import is_final, job_row
from perdure.store.permits import find_permit, permit_of, spend_permit
from perdure.store.plans import plan_row
from perdure.store.rows import BeginEffect, IntentRow, OpenEnd, PermitRow, TargetBusy

NOT_BEGUN = ("already", "drift", "refused", "stopped")
"""How an effect may end without an intent: it was never begun."""

GOES_ON = ("done", "already", "failed")
"""How the effects before may have ended when the next one starts; ``failed`` under ``on_failure: report``."""

_WAY_ON = {
    "unknown": " says what to look at, `perdure resolve` answers, `perdure cancel` takes it back",
    "paused": " says what it waits for, `perdure resume` goes on, `perdure cancel` takes it back",
    "waiting_for_merge": " says what it waits for, `perdure cancel` takes it back",
}
"""What lets a parked holder go on, by its phase: its lock is let go of with it, and by nothing else."""


def begin_effect(connection: Connection, begin: BeginEffect, at: datetime) -> IntentRow:
    """Write the intent of one effect, or count one more attempt of it, when every rule allows it.

    Raises:
        Refused: a rule does not; nothing was written. ``TargetBusy`` when another application holds the target.
    """
    permit = _rightful_permit(connection, begin)
    job = job_row(connection, begin.job_id)
    if job.thread != begin.thread:
        raise Refused(f"{_name(begin)} may not start: {begin.job_id} belongs to thread {job.thread!r}.")
    earlier = intents.list_intents(connection, application_id=begin.application_id)
    found = next((row for row in earlier if (row.index, row.direction) == (begin.index, begin.direction)), None)
    _refuse_ended(connection, begin, found)
    if begin.direction == "do":
        _refuse_forward(connection, begin, job, earlier)
    else:
        _refuse_backward(begin, earlier)
    _hold(connection, f"{_name(begin)} may not start", begin.target, permit, at)
    spend_permit(connection, permit, begin.thread, at)
    if found is None:
        _write_intent(connection, begin, at)
    else:
        intents.count_attempt(connection, found, at)
    return intents.get_intent(connection, begin.application_id, begin.index, begin.direction)


def take_target(connection: Connection, application_id: str, digest: str, target: str, at: datetime) -> None:
    """Take the target of a whole plan for its application, before its first effect; a no-op when it is ours already.

    Raises:
        Refused: nobody permitted this application, or its job was cancelled. ``TargetBusy``: another one holds it.
    """
    what = f"Plan {digest[:8]} may not start"
    permit = find_permit(connection, digest)
    if permit is None or permit.application_id != application_id or permit.closed:
        raise Refused(f"{what}: {application_id} has no permit for it.")
    _refuse_cancelled(what, job_row(connection, permit.job_id))
    _hold(connection, what, target, permit, at)


def finish_effect(connection: Connection, receipt: Receipt, ref: BlobRef, at: datetime) -> None:
    """Write how an effect ended; a no-op when it is written that it ended so.

    Raises:
        Conflict: another end is written already, or it ended as only a begun effect can without having been begun.
    """
    found = intents.find_intent(connection, receipt.application_id, receipt.index, receipt.direction)
    if found is None:
        _write_unbegun(connection, receipt)
        found = intents.get_intent(connection, receipt.application_id, receipt.index, receipt.direction)
    elif found.state == receipt.state:
        return
    elif found.is_final:
        raise Conflict(
            f"Effect {receipt.index + 1} ({receipt.direction}) of {receipt.application_id} ended as {found.state!r}; "
            f"it cannot end as {receipt.state!r} as well. Nothing was recorded."
        )
    job = job_row(connection, found.job_id)
    position, _ = append_event(
        connection,
        thread=job.thread,
        kind="effect.receipt",
        actor="perdure",
        body={
            "application_id": found.application_id,
            "digest": found.digest,
            "index": found.index,
            "direction": found.direction,
            "effect_id": found.effect_id,
            "kind": receipt.kind,
            "state": receipt.state,
            "detail": clean(receipt.detail),
            "receipt": ref.model_dump(mode="json"),
        },
        job_id=found.job_id,
        at=at,
    )
    intents.write_end(connection, found, receipt, ref, position, at)


def note_process(
    connection: Connection, application_id: str, index: int, direction: Direction, pgid: int, boot_id: str
) -> None:
    """Remember the process group that runs an attempt, so that a later one can end it."""
    intents.get_intent(connection, application_id, index, direction)
    values = {"pgid": pgid, "boot_id": boot_id}
    connection.execute(update(schema.intents).where(intents.key(application_id, index, direction)).values(**values))


def close_application(connection: Connection, close: CloseApplicationInput, at: datetime) -> None:
    """Release the target locks and write the end; a no-op when it ended so before.

    Raises:
        Conflict: it ended otherwise before, or nobody was permitted to apply what is said to be applied or undone.
        OpenEnd: it would end as ``applied``, ``undone`` or ``drift`` while the end of an effect is not written.
    """
    permit = permit_of(connection, close.application_id)
    if permit is None:
        _refuse_unpermitted_end(close)
    else:
        if permit.closed == close.state:
            return
        if permit.closed and not _takes_back_a_part(permit, close):
            raise Conflict(
                f"{close.application_id} ended as {permit.closed!r}; it cannot end as {close.state!r} as well."
            )
        _refuse_open_end(connection, permit, close)
    _, is_new = append_event(
        connection,
        thread=job_row(connection, close.job_id).thread,
        kind="application.closed",
        actor="perdure",
        body={
            "application_id": close.application_id,
            "digest": close.digest,
            "state": close.state,
            "detail": clean(close.detail),
        },
        job_id=close.job_id,
        workflow_id=close.application_id,
        step=f"close/{close.state}",
        at=at,
    )
    if is_new and permit is not None:
        connection.execute(
            update(schema.permits).where(schema.permits.c.digest == permit.digest).values(closed=close.state)
        )
    locks = schema.target_locks
    connection.execute(delete(locks).where(locks.c.application_id == close.application_id))


def _takes_back_a_part(permit: PermitRow, close: CloseApplicationInput) -> bool:
    """An application that stopped at a drift half-way may be taken back when the rest of its plan comes to nothing."""
    return permit.closed == "drift" and close.state in ("undone", "stuck")


def _rightful_permit(connection: Connection, begin: BeginEffect) -> PermitRow:
    what = f"{_name(begin)} may not start"
    permit = find_permit(connection, begin.digest)
    if permit is None:
        raise Refused(f"{what}: nobody was permitted to apply plan {begin.digest[:8]}.")
    if permit.state == "withdrawn":
        raise Refused(f"{what}: the approval of plan {begin.digest[:8]} was withdrawn by {permit.withdrawn_by}.")
    if (permit.application_id, permit.job_id) != (begin.application_id, begin.job_id):
        raise Refused(f"{what}: the permit for plan {begin.digest[:8]} belongs to {permit.application_id}.")
    if permit.closed and not (permit.closed == "drift" and begin.direction == "undo"):
        raise Refused(f"{what}: {begin.application_id} has ended as {permit.closed!r}.")
    plan = plan_row(connection, begin.digest)
    if not 0 <= begin.index < plan.effects:
        raise Refused(f"{what}: plan {begin.digest[:8]} has {plan.effects} effects.")
    if begin.irreversible and begin.direction == "do" and not plan.needs_gate:
        raise Refused(f"{what}: it cannot be undone, and nobody was asked to approve plan {begin.digest[:8]}.")
    return permit


def _refuse_ended(connection: Connection, begin: BeginEffect, found: IntentRow | None) -> None:
    if found is None:
        return
    what = f"{_name(begin)} may not start again"
    if (found.digest, found.kind, found.target) != (begin.digest, begin.kind, begin.target):
        raise Refused(f"{what}: it was begun as {found.kind} on {found.target}.")
    if found.is_final:
        raise Refused(f"{what}: it ended as {found.state!r}.")
    if found.state == "unknown":
        asked = intents.asked_at(connection, found)
        answer = resolution_after(connection, begin.digest, begin.index, asked)
        if answer is None or answer.decision.answer != "not_done":
            said = (
                f"{answer.decision.by} said {answer.decision.answer!r}" if answer else "nobody said what became of it"
            )
            raise Refused(f"{what}: its fate is unknown and {said}. `perdure resolve` answers.")


def _refuse_forward(connection: Connection, begin: BeginEffect, job: Any, earlier: list[IntentRow]) -> None:
    what = f"{_name(begin)} may not start"
    _refuse_cancelled(what, job)
    if is_final(job):
        raise Refused(f"{what}: job {job.number} has ended as {job.phase!r}.")
    if begin.irreversible and has_open_agent(connection, begin.job_id) and undelivered(connection, begin.job_id):
        raise Refused(f"{what}: a person's message has not reached the agent yet, and this cannot be taken back.")
    if any(row.direction == "undo" for row in earlier):
        raise Refused(f"{what}: {begin.application_id} is being taken back.")
    ends = {row.index: row.state for row in earlier}
    for index in range(begin.index):
        if ends.get(index) not in GOES_ON:
            raise Refused(f"{what}: effect {index + 1} before it is {ends.get(index, 'not begun')!r}.")


def _refuse_cancelled(what: str, job: Any) -> None:
    if job.cancelled_by:
        raise Refused(f"{what}: job {job.number} was cancelled by {job.cancelled_by}.")


def _refuse_backward(begin: BeginEffect, earlier: list[IntentRow]) -> None:
    what = f"{_name(begin)} may not start"
    done = {row.index: row for row in earlier if row.direction == "do"}
    forward = done.get(begin.index)
    if forward is None or forward.state not in ("done", "failed"):
        raise Refused(f"{what}: there is nothing of ours to take back ({forward.state if forward else 'not begun'}).")
    for row in earlier:
        if row.index > begin.index and not row.is_final:
            raise Refused(f"{what}: effect {row.index + 1} ({row.direction}) after it is {row.state!r}; newest first.")


def _hold(connection: Connection, what: str, target: str, permit: PermitRow, at: datetime) -> None:
    """Lock a target for an application; ``what`` may not start is said where another one holds it."""
    locks = schema.target_locks
    holder = connection.execute(select(locks).where(locks.c.target == target)).one_or_none()
    if holder is None:
        values = {"target": target, "application_id": permit.application_id, "job_id": permit.job_id}
        connection.execute(insert(locks).values(**values, taken_at=time_text(at)))
    elif holder.application_id != permit.application_id:
        other = job_row(connection, holder.job_id)
        raise TargetBusy(
            f"{what}: {target} is held by {other.thread}/{other.sequence} ({other.phase.replace('_', ' ')}) since "
            f"{holder.taken_at}. It is free once that job is applied or taken back: `perdure show {other.number}`"
            f"{_WAY_ON.get(other.phase, '')}."
        )


def _write_intent(connection: Connection, begin: BeginEffect, at: datetime) -> None:
    intents.insert_intent(connection, begin, "intent", attempts=1, started_at=time_text(at))
    append_event(
        connection,
        thread=begin.thread,
        kind="effect.intent",
        actor="perdure",
        body={
            "application_id": begin.application_id,
            "digest": begin.digest,
            "index": begin.index,
            "direction": begin.direction,
            "effect_id": begin.effect_id,
            "kind": begin.kind,
            "target": begin.target,
        },
        job_id=begin.job_id,
        workflow_id=begin.application_id,
        step=f"intent.{begin.direction}.{begin.index}",
        at=at,
    )


def _write_unbegun(connection: Connection, receipt: Receipt) -> None:
    if receipt.state not in NOT_BEGUN:
        raise Conflict(
            f"Effect {receipt.index + 1} ({receipt.direction}) of {receipt.application_id} cannot end as "
            f"{receipt.state!r}: it has no intent, so it was never begun. Nothing was recorded."
        )
    permit = permit_of(connection, receipt.application_id)
    begin = BeginEffect(
        application_id=receipt.application_id,
        job_id=job_of(receipt.application_id),
        thread="",
        digest=permit.digest if permit else "",
        index=receipt.index,
        direction=receipt.direction,
        effect_id="",
        kind=receipt.kind,
        target="",
        irreversible=False,
    )
    intents.insert_intent(connection, begin, receipt.state, attempts=0, started_at=None)


def _refuse_unpermitted_end(close: CloseApplicationInput) -> None:
    if close.state in ("applied", "undone"):
        raise Conflict(f"{close.application_id} cannot end as {close.state!r}: nobody was permitted to begin it.")


def _refuse_open_end(connection: Connection, permit: PermitRow, close: CloseApplicationInput) -> None:
    if close.state not in ("applied", "undone", "drift"):
        return  # refused, stuck and cancelled may leave an effect in doubt: a person was told
    rows = intents.list_intents(connection, application_id=close.application_id)
    what = f"{close.application_id} cannot end as {close.state!r}"
    for row in rows:
        if not row.is_final:
            raise OpenEnd(f"{what}: effect {row.index + 1} ({row.direction}) is {row.state!r}.")
    ends = {(row.index, row.direction): row.state for row in rows}
    for index in range(plan_row(connection, permit.digest).effects):
        if close.state == "applied" and ends.get((index, "do")) not in GOES_ON:
            raise OpenEnd(f"{what}: effect {index + 1} is {ends.get((index, 'do'), 'not begun')!r}.")


def _name(begin: BeginEffect) -> str:
    what = "Undoing effect" if begin.direction == "undo" else "Effect"
    return f"{what} {begin.index + 1} ({begin.kind}) of plan {begin.digest[:8]}"
