"""What is written about agents inside somebody's transaction: rows, and records of the chain beside them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from perdure.contracts.agent import AgentEnd
from perdure.contracts.agent_run import AgentSpec, CallRecord
from perdure.contracts.base import BlobRef
from perdure.contracts.job import JobPhase, NoteInput
from perdure.contracts.names import JobId
from perdure.errors import Conflict
from perdure.store import schema
from perdure.store.agent_rows import AgentRow, undelivered
from perdure.store.arbiter import close_application, finish_effect
from perdure.store.chain import time_text
from perdure.store.events import append_event
from perdure.store.jobs import is_final, job_row, note_job
from perdure.store.rows import CallEnding

_AGENT = "agent"

# Made once: building a statement costs more than asking it, and every call asks these.
_ADD_CALL = insert(schema.agent_calls)
_CHANGE_CALL = (
    update(schema.agent_calls)
    .where(schema.agent_calls.c.key == bindparam("call"))
    .values(state=bindparam("new_state"), body=bindparam("new_body"), at=bindparam("new_at"))
)


def insert_agent(connection: Connection, spec: AgentSpec, ref: BlobRef, at: datetime) -> None:
    """Open an agent on its job. Raises ``Conflict``: the job has ended."""
    agents = schema.agents
    job = job_row(connection, spec.job_id)
    if is_final(job):
        raise Conflict(f"Job {job.number} has ended as {job.phase!r}; no agent starts on it.")
    count = select(func.count()).select_from(agents).where(agents.c.job_id == spec.job_id)
    ordinal = int(connection.execute(count).scalar_one()) + 1
    connection.execute(
        insert(agents).values(
            agent_id=spec.agent_id,
            job_id=spec.job_id,
            ordinal=ordinal,
            spec_sha256=ref.sha256,
            spec_size=ref.size_bytes,
            end_reason="",
            end_sentence="",
            started_at=time_text(at),
            parked_seconds=0,
            turns=0,
            calls=0,
            tokens=0,
            cost_microdollars=0,
            unknown_cost=False,
        )
    )
    body = {"agent_id": spec.agent_id, "spec": ref.model_dump(), "tools": list(spec.tools), "dial": spec.dial.value}
    append_record(connection, spec.agent_id, spec.job_id, "agent.started", body, "open", at)


def note_agent(connection: Connection, row: AgentRow, phase: JobPhase, why: str, step: int, at: datetime) -> None:
    """Say in the list of jobs what an agent waits for; once per (agent, step)."""
    if not is_final(job_row(connection, row.job_id)):  # a job that was cancelled meanwhile stays so
        note = NoteInput(job_id=row.job_id, step=step, phase=phase, summary=why[:500])
        note_job(connection, note, row.agent_id, at)


def write_delivery(connection: Connection, agent: AgentRow, turn: int, decision_id: str, at: datetime) -> None:
    """Write in which turn a person's message was heard; an earlier one stands."""
    deliveries = schema.deliveries
    found = connection.execute(select(deliveries).where(deliveries.c.decision_id == decision_id)).first()
    if found is not None:
        return
    connection.execute(
        insert(deliveries).values(
            decision_id=decision_id, job_id=agent.job_id, agent_id=agent.agent_id, turn=turn, at=time_text(at)
        )
    )
    body = {"agent_id": agent.agent_id, "decision_id": decision_id, "turn": turn}
    append_record(connection, agent.agent_id, agent.job_id, "message.delivered", body, f"deliver.{decision_id}", at)


def write_call(connection: Connection, agent_id: str, record: CallRecord, state: str, at: datetime) -> None:
    """Write how a call stands, over what was written before."""
    body, at_text = record.model_dump_json(), time_text(at)
    changed = {"call": record.key, "new_state": state, "new_body": body, "new_at": at_text}
    if not connection.execute(_CHANGE_CALL, changed).rowcount:
        about = {"turn": record.turn, "position": record.position, "tool": record.tool, "state": state}
        connection.execute(_ADD_CALL, {"key": record.key, "agent_id": agent_id, "body": body, "at": at_text, **about})


def write_receipt(connection: Connection, ending: CallEnding | None, at: datetime) -> None:
    """What an approved call came to, for the ledger: never without the call's own end, nor the other way round."""
    if ending is not None:
        finish_effect(connection, ending.receipt, ending.ref, at)
        close_application(connection, ending.closing, at)


def write_end(connection: Connection, row: AgentRow, end: AgentEnd, result: BlobRef | None, at: datetime) -> None:
    """Write how an agent ended, and what it did not hear any more."""
    agents = schema.agents
    values: dict[str, Any] = {"end_reason": end.reason, "end_sentence": end.sentence, "parked_at": None}
    if result is not None:
        values |= {"result_sha256": result.sha256, "result_size": result.size_bytes}
    connection.execute(update(agents).where(agents.c.agent_id == row.agent_id).values(**values))
    body = {
        "agent_id": row.agent_id,
        "reason": end.reason,
        "sentence": end.sentence,
        "spent": row.spent.model_dump(),
        "undelivered": undelivered(connection, row.job_id),
    }
    append_record(connection, row.agent_id, row.job_id, "agent.ended", body, "close", at)


def append_record(
    connection: Connection, agent_id: str, job_id: str, kind: str, body: dict[str, Any], step: str, at: datetime
) -> None:
    """Append a record of an agent to the chain; once per (agent, step)."""
    thread = JobId.parse(job_id).thread
    append_event(
        connection,
        thread=thread,
        kind=kind,
        actor=_AGENT if kind.startswith("agent.call") else "perdure",
        body=body,
        job_id=job_id,
        workflow_id=agent_id,
        step=step,
        at=at,
    )
