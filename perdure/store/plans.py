"""Plans and their gates in the ledger: frozen, open, decided."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import CloseGateInput, GateInput
from perdure.contracts.job import PlanRef
from perdure.contracts.names import CALL_ROUNDS
from perdure.contracts.plan import Envelope
from perdure.errors import Conflict, NotFound, UserError
from perdure.store import schema
from perdure.store.approvals import use_approval
from perdure.store.chain import time_of, time_text
from perdure.store.events import append_event, clean
from perdure.store.jobs import job_row
from perdure.store.rows import PlanRow

NOT_OPENED = "not_opened"
OPEN = "open"


def record_plan(connection: Connection, job_id: str, plan: PlanRef, envelope: Envelope, at: datetime) -> None:
    """Write a frozen plan; a no-op for a digest already there.

    Earlier plans of the same round that nobody was asked about are superseded: the draft was frozen again.
    """
    _check_plan(job_id, plan, envelope)
    job = job_row(connection, job_id)
    if _row(connection, plan.digest) is not None:
        return
    position, _ = append_event(
        connection,
        thread=job.thread,
        kind="plan.frozen",
        actor="perdure",
        body={"plan": plan.model_dump(mode="json"), "title": clean(envelope.title), "undoes": envelope.undoes},
        job_id=job_id,
        at=at,
    )
    _supersede_unopened(connection, job_id, plan.round)
    connection.execute(
        insert(schema.plans).values(
            digest=plan.digest,
            content=plan.content,
            ref_sha256=plan.ref.sha256,
            ref_size=plan.ref.size_bytes,
            job_id=job_id,
            round=plan.round,
            effects=plan.effects,
            needs_gate=plan.needs_gate,
            state=NOT_OPENED,
            gate_id="",
            title=clean(envelope.title),
            undoes=envelope.undoes,
            expires_at=time_text(plan.expires_at),
            position=position,
        )
    )


def open_gate(connection: Connection, gate: GateInput, at: datetime) -> None:
    """Let people decide on a plan; a no-op when this gate was opened before, also when it has closed since."""
    plan = plan_row(connection, gate.digest)
    if plan.gate_id == gate.gate_id:
        return
    _check_gate(plan, gate.job_id, NOT_OPENED, "A gate cannot open")
    append_event(
        connection,
        thread=job_row(connection, plan.job_id).thread,
        kind="gate.opened",
        actor="perdure",
        body={"gate_id": gate.gate_id, "digest": gate.digest, "expires_at": time_text(gate.expires_at)},
        job_id=plan.job_id,
        workflow_id=gate.gate_id,
        step="open",
        at=at,
    )
    _set_state(connection, gate.digest, OPEN, gate_id=gate.gate_id)


def close_gate(connection: Connection, close: CloseGateInput, at: datetime, weighed: int | None) -> None:
    """Write how a gate ended; a no-op when it ended so before. Raises ``Conflict`` when it ended otherwise.

    ``weighed``: how many decisions on the digest the outcome rests on; one more by now is a ``Conflict``.
    """
    plan = plan_row(connection, close.digest)
    if plan.gate_id == close.gate_id and plan.state == close.outcome:
        return
    _check_gate(plan, close.job_id, OPEN, f"Its gate cannot end as {close.outcome!r}")
    if plan.gate_id != close.gate_id:
        raise Conflict(f"Plan {close.digest[:8]} waits at {plan.gate_id}, not at {close.gate_id}. Nothing was changed.")
    refuse_unweighed(connection, close.digest, weighed)
    thread = job_row(connection, plan.job_id).thread
    for approval in close.standing:
        about = {"thread": thread, "job_id": plan.job_id, "gate_id": close.gate_id, "digest": close.digest}
        use_approval(connection, approval, **about, at=at)
    append_event(
        connection,
        thread=thread,
        kind="gate.closed",
        actor="perdure",
        body={
            "gate_id": close.gate_id,
            "digest": close.digest,
            "outcome": close.outcome,
            "weighed": weighed,
            **({"standing": close.standing} if close.standing else {}),
            "detail": clean(close.detail),
        },
        job_id=plan.job_id,
        workflow_id=close.gate_id,
        step="close",
        at=at,
    )
    _set_state(connection, close.digest, close.outcome)


def refuse_unweighed(connection: Connection, digest: str, weighed: int | None) -> None:
    """Raise ``Conflict`` when other decisions are recorded than were weighed: somebody would go unheard."""
    if weighed is None:
        return
    decisions = schema.decisions
    query = select(func.count()).select_from(decisions).where(decisions.c.digest == digest)
    found = connection.execute(query).scalar_one()
    if found != weighed:
        raise Conflict(
            f"{found} decisions on plan {digest[:8]} are recorded and {weighed} were weighed. Weigh them again."
        )


def plan_row(connection: Connection, digest: str) -> PlanRow:
    """Return the plan of that whole digest. Raises ``NotFound``."""
    row = _row(connection, digest)
    if row is None:
        raise NotFound(f"No plan has the digest {digest[:12]}…. `perdure jobs` shows the plans that wait.")
    return _plan(row)


def plans_like(connection: Connection, prefix: str) -> list[PlanRow]:
    """Return every plan ever whose digest starts with ``prefix`` (hex digits, any case), by digest."""
    wanted = prefix.strip().lower()
    if not wanted or any(char not in "0123456789abcdef" for char in wanted):
        raise UserError(f"{prefix!r} is no digest; expected hexadecimal digits, at least the first eight.")
    plans = schema.plans
    query = select(plans).where(plans.c.digest.startswith(wanted)).order_by(plans.c.digest)
    return [_plan(row) for row in connection.execute(query)]


def job_plans(connection: Connection, job_id: str, *, calls: bool = False) -> list[PlanRow]:
    """Return a job's plans, oldest first; with ``calls`` also those of single calls of its agents, which come last."""
    plans = schema.plans
    query = select(plans).where(plans.c.job_id == job_id).order_by(plans.c.round, plans.c.position)
    if not calls:
        query = query.where(plans.c.round < CALL_ROUNDS)
    return [_plan(row) for row in connection.execute(query)]


def thread_plans(connection: Connection, thread: str, states: Collection[str]) -> list[PlanRow]:
    """Return the plans of a thread's jobs that are in one of these states, oldest first."""
    plans, jobs = schema.plans, schema.jobs
    query = select(plans).join(jobs, jobs.c.job_id == plans.c.job_id)
    query = query.where(jobs.c.thread == thread, plans.c.state.in_(sorted(states)))
    return [_plan(row) for row in connection.execute(query.order_by(plans.c.position))]


def open_plans(connection: Connection, thread: str, before: int, limit: int) -> list[tuple[int, PlanRow]]:
    """Return (position, plan) of the plans that wait for people, newest first, below position ``before`` unless 0."""
    plans, jobs = schema.plans, schema.jobs
    query = select(plans).where(plans.c.state == OPEN)
    if thread:
        query = query.join(jobs, jobs.c.job_id == plans.c.job_id).where(jobs.c.thread == thread)
    if before:
        query = query.where(plans.c.position < before)
    rows = connection.execute(query.order_by(plans.c.position.desc()).limit(limit))
    return [(row.position, _plan(row)) for row in rows]


def all_plans(connection: Connection) -> list[PlanRow]:
    """Return every plan, oldest first."""
    return [_plan(row) for row in connection.execute(select(schema.plans).order_by(schema.plans.c.position))]


GATE_WORDS: Mapping[str, str] = {
    "open": "its gate is open",
    "satisfied": "it is approved already",
    "denied": "it was rejected",
    "changes_requested": "changes were requested, and a newer plan takes its place",
    "expired": "it expired",
    "cancelled": "its job was cancelled",
    "superseded": "a newer plan took its place",
    "not_opened": "its gate was never opened: nobody was asked about it",
}
"""How a plan's gate stands, in words that follow "Plan 7f3a91c2: "."""


def describe_end(plan: PlanRow) -> str:
    """Say in a few words how a plan's gate stands, for an error."""
    return GATE_WORDS.get(plan.state, f"its gate is {plan.state}")


def _check_plan(job_id: str, plan: PlanRef, envelope: Envelope) -> None:
    wrong = []
    if envelope.job_id != job_id:
        wrong.append(f"it belongs to {envelope.job_id}, not to {job_id}")
    if envelope.round != plan.round:
        wrong.append(f"its round is {envelope.round}, not {plan.round}")
    if envelope.expires_at != plan.expires_at:
        wrong.append(f"it expires {envelope.expires_at.isoformat()}, not {plan.expires_at.isoformat()}")
    if envelope.rule.approvals and not plan.needs_gate:
        wrong.append("its rule wants approvals and it says that it needs no gate")
    if wrong:
        raise UserError(f"Plan {plan.digest[:8]} contradicts its envelope: {'; '.join(wrong)}. Nothing was recorded.")


def _check_gate(plan: PlanRow, job_id: str, state: str, what: str) -> None:
    if plan.job_id != job_id:
        raise Conflict(f"Plan {plan.digest[:8]} belongs to {plan.job_id}, not to {job_id}. Nothing was changed.")
    if plan.state != state:
        raise Conflict(f"{what} for plan {plan.digest[:8]}: {describe_end(plan)}. Nothing was changed.")


def _supersede_unopened(connection: Connection, job_id: str, round_number: int) -> None:
    plans = schema.plans
    same_round = (plans.c.job_id == job_id, plans.c.round == round_number, plans.c.state == NOT_OPENED)
    connection.execute(update(plans).where(*same_round).values(state="superseded"))


def void_calls(connection: Connection, job_id: str) -> None:
    """Take back the questions about an agent's calls that nobody has answered: the goal is another one now."""
    plans = schema.plans
    asked = (plans.c.job_id == job_id, plans.c.round >= CALL_ROUNDS, plans.c.state.in_((OPEN, NOT_OPENED)))
    connection.execute(update(plans).where(*asked).values(state="superseded"))


def void_call(connection: Connection, digest: str) -> None:
    """Take back the question about one call: it came to its end another way. A no-op once it was decided."""
    plans = schema.plans
    asked = (plans.c.digest == digest, plans.c.round >= CALL_ROUNDS, plans.c.state.in_((OPEN, NOT_OPENED)))
    connection.execute(update(plans).where(*asked).values(state="superseded"))


def _set_state(connection: Connection, digest: str, state: str, **more: str) -> None:
    connection.execute(update(schema.plans).where(schema.plans.c.digest == digest).values(state=state, **more))


def _row(connection: Connection, digest: str) -> Row[Any] | None:
    return connection.execute(select(schema.plans).where(schema.plans.c.digest == digest)).one_or_none()


def _plan(row: Row[Any]) -> PlanRow:
    return PlanRow(
        digest=row.digest,
        content=row.content,
        ref=BlobRef(sha256=row.ref_sha256, size_bytes=row.ref_size),
        job_id=row.job_id,
        round=row.round,
        state=row.state,
        expires_at=time_of(row.expires_at),
        title=row.title,
        effects=row.effects,
        needs_gate=row.needs_gate,
        undoes=row.undoes,
        gate_id=row.gate_id,
    )
