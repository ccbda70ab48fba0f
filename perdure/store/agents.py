"""What agents are, spend and come to, in the ledger's database. Every write may be asked for again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import Boolean, bindparam, insert, or_, select, update

from perdure.contracts.agent import AgentEnd, Dial
from perdure.contracts.agent_run import AgentSpec, AgentStanding, CallRecord, TurnRecord
from perdure.contracts.base import BlobRef
from perdure.contracts.job import JobPhase
from perdure.contracts.names import job_of
from perdure.errors import Conflict
from perdure.store import schema
from perdure.store.agent_rows import (
    DIAL_LOWERED,
    AgentLook,
    AgentRow,
    agent_of,
    below,
    find_agent,
    get_agent,
    lowered_dial,
    undelivered,
    unheard,
)
from perdure.store.agent_writes import (
    append_record,
    insert_agent,
    note_agent,
    write_call,
    write_delivery,
    write_end,
    write_receipt,
)
from perdure.store.arbiter import begin_effect
from perdure.store.chain import time_text
from perdure.store.database import Database
from perdure.store.rows import BeginEffect, CallEnding
from perdure.store.summaries import Summaries, newest_summary
from perdure.store.transcripts import (
    Line,
    Transcripts,
    append_lines,
    find_call,
    find_turns,
    late_calls,
    length_of,
    newest_calls,
    told_keys,
)

# Made once: building a statement costs more than asking it, and every turn asks these.
_ONE_CALL_MORE = (
    update(schema.agents).where(schema.agents.c.agent_id == bindparam("agent")).values(calls=schema.agents.c.calls + 1)
)
_ONE_TURN = select(schema.agent_turns.c.body).where(
    schema.agent_turns.c.agent_id == bindparam("agent"), schema.agent_turns.c.turn == bindparam("number_of_turn")
)
_ADD_TURN = insert(schema.agent_turns)
_SPEND = (
    update(schema.agents)
    .where(schema.agents.c.agent_id == bindparam("agent"))
    .values(
        turns=schema.agents.c.turns + 1,
        tokens=schema.agents.c.tokens + bindparam("more_tokens"),
        cost_microdollars=schema.agents.c.cost_microdollars + bindparam("more_cost"),
        unknown_cost=or_(schema.agents.c.unknown_cost, bindparam("unknown", type_=Boolean)),
    )
)
MakeChild = Callable[[AgentRow, Sequence[AgentRow]], tuple[AgentSpec, BlobRef, Sequence[Line]]]
"""Makes (specification, its blob, first messages) of an agent from its parent and all agents below that."""


class Agents:
    """Reads and writes agents; their transcripts are beside it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.transcripts = Transcripts(database)
        self.summaries = Summaries(database)

    def open(self, spec: AgentSpec, ref: BlobRef, lines: Sequence[Line], *, at: datetime) -> AgentRow:
        """Write a new agent and its first messages; an agent that is there is only returned.

        Raises:
            Conflict: its job has ended, or its id was used with another spec.
        """
        with self._database.write() as connection:
            found = find_agent(connection, spec.agent_id)
            if found is None:
                insert_agent(connection, spec, ref, at)
                append_lines(connection, spec.agent_id, lines, at)
            elif found.spec != ref:
                raise Conflict(f"{spec.agent_id} was started with another specification. Nothing was written.")
            return get_agent(connection, spec.agent_id)

    def open_child(self, agent_id: str, parent: str, make: MakeChild, *, at: datetime) -> AgentRow:
        """Write a new agent below another one; one that is there is only returned.

        ``make`` gets the parent and all below it as of this moment, so that no budget is given away twice; it runs
        inside the transaction, and what it raises writes nothing.
        """
        with self._database.write() as connection:
            if find_agent(connection, agent_id) is None:
                above = get_agent(connection, parent)
                spec, ref, lines = make(above, below(connection, parent, above.job_id))
                insert_agent(connection, spec, ref, at)
                append_lines(connection, agent_id, lines, at)
            return get_agent(connection, agent_id)

    def below(self, agent_id: str) -> list[AgentRow]:
        """Return the agents below one, oldest first."""
        with self._database.read() as connection:
            return below(connection, agent_id, job_of(agent_id))

    def get(self, agent_id: str) -> AgentRow:
        """Return an agent. Raises ``NotFound``."""
        with self._database.read() as connection:
            return get_agent(connection, agent_id)

    def find(self, agent_id: str) -> AgentRow | None:
        """Return an agent, if it was opened."""
        with self._database.read() as connection:
            return find_agent(connection, agent_id)

    def of_job(self, job_id: str) -> list[AgentRow]:
        """Return a job's agents, oldest first."""
        agents = schema.agents
        query = select(agents).where(agents.c.job_id == job_id).order_by(agents.c.ordinal)
        with self._database.read() as connection:
            return [agent_of(row) for row in connection.execute(query)]

    def standing(self, agent_id: str) -> AgentStanding:
        """Return how an agent stands; one that was never opened stands as open."""
        row = self.find(agent_id)
        if row is None:
            return AgentStanding(agent_id=agent_id)
        return AgentStanding(agent_id=agent_id, end=row.end, spent=row.spent, result=row.result)

    def look(self, agent_id: str, turn: int, *, last: int) -> AgentLook:
        """Return what a turn has to know, with the newest ``last`` calls. Raises ``NotFound``."""
        with self._database.read() as connection:
            row = get_agent(connection, agent_id)
            records = {record.turn: record for record in find_turns(connection, agent_id, turn - 1, turn)}
            return AgentLook(
                row=row,
                record=records.get(turn),
                before=records.get(turn - 1),
                calls=tuple(newest_calls(connection, agent_id, last)),
                keys=tuple(told_keys(connection, agent_id)),
                length=length_of(connection, agent_id),
                undelivered=frozenset(unheard(connection, row)),
                below=tuple(below(connection, agent_id, row.job_id)),
                summary=newest_summary(connection, agent_id),
                late=tuple(late_calls(connection, agent_id)),
            )

    def add_lines(self, agent_id: str, lines: Sequence[Line], *, at: datetime) -> None:
        """Write messages that belong to no call and no answer."""
        with self._database.write() as connection:
            added = append_lines(connection, agent_id, lines, at)
        self.transcripts.remember(agent_id, added)

    def deliver(
        self,
        agent_id: str,
        turn: int,
        lines: Sequence[Line],
        decision_ids: Sequence[str],
        *,
        late: Sequence[str] = (),
        at: datetime,
    ) -> None:
        """Write what is new for a request: people's messages with the record that this turn delivers them.

        ``late``: keys of calls whose end is among it.
        """
        calls = schema.agent_calls
        with self._database.write() as connection:
            if late:
                connection.execute(update(calls).where(calls.c.key.in_(late)).values(state="ended"))
            agent = get_agent(connection, agent_id)
            added = append_lines(connection, agent_id, lines, at)
            for decision_id in decision_ids:
                write_delivery(connection, agent, turn, decision_id, at)
        self.transcripts.remember(agent_id, added)

    def end_turn(
        self, agent_id: str, record: TurnRecord, answer: Line, refused: Sequence[Line], *, at: datetime
    ) -> TurnRecord:
        """Write an answer and what it cost, with what calls that never run are answered.

        An earlier answer of the same turn stands, and is returned.
        """
        with self._database.write() as connection:
            about = {"agent": agent_id, "number_of_turn": record.turn}
            body = connection.execute(_ONE_TURN, about).scalar_one_or_none()
            if body is not None:
                return TurnRecord.model_validate_json(body)
            added = append_lines(connection, agent_id, [answer, *refused], at)
            values = {"turn": record.turn, "number": record.number, "body": record.model_dump_json()}
            connection.execute(_ADD_TURN, {"agent_id": agent_id, "at": time_text(at), **values})
            spent = {
                "agent": agent_id,
                "more_tokens": (record.usage.input_tokens or 0) + (record.usage.output_tokens or 0),
                "more_cost": record.cost_microdollars or 0,
                "unknown": record.cost_microdollars is None,
            }
            connection.execute(_SPEND, spent)
        self.transcripts.remember(agent_id, added)
        return record

    def begin_call(
        self, agent_id: str, record: CallRecord, approved: BeginEffect | None = None, *, at: datetime
    ) -> CallRecord:
        """Count an attempt of a call, before it begins; return the record as it was found before, or the new one.

        The first attempt is 1. Whoever finds a higher one knows that an earlier attempt began and told no end. One that
        people decided on begins with the effect that they ``approved``, in the same transaction.

        Raises:
            Refused: the arbiter does not let it begin; nothing was written.
        """
        with self._database.write() as connection:
            found = find_call(connection, record.key)
            if found is not None and found.has_ended:
                return found
            if approved is not None:
                begin_effect(connection, approved, at)
            attempts = (found.attempts if found else 0) + 1
            begun = record.model_copy(update={"attempts": attempts, "began_at": (found or record).began_at or at})
            write_call(connection, agent_id, begun, "begun", at)
            return begun

    def ask_about(self, agent_id: str, record: CallRecord, *, at: datetime) -> None:
        """Write that a person must decide on a call before it begins."""
        with self._database.write() as connection:
            write_call(connection, agent_id, record, "asked", at)

    def end_call(
        self, agent_id: str, record: CallRecord, line: Line, ending: CallEnding | None = None, *, at: datetime
    ) -> CallRecord:
        """Write how a call ended, with its message and its receipt; an earlier end stands, and is returned."""
        with self._database.write() as connection:
            found = find_call(connection, record.key)
            if found is not None and found.has_ended:
                return found
            write_receipt(connection, ending, at)
            added = append_lines(connection, agent_id, [line], at)
            ended = record.model_copy(update={"ended_at": at})
            write_call(connection, agent_id, ended, "denied" if ended.status == "denied" else "ended", at)
            connection.execute(_ONE_CALL_MORE, {"agent": agent_id})
        self.transcripts.remember(agent_id, added)
        return ended

    def leave_running(self, agent_id: str, record: CallRecord, line: Line, *, at: datetime) -> CallRecord:
        """Write that a call goes on, with the message that says so; an end that is there stands, and is returned."""
        with self._database.write() as connection:
            found = find_call(connection, record.key)
            if found is not None and found.has_ended:
                return found
            running = (found or record).model_copy(update={"status": "running"})
            added = append_lines(connection, agent_id, [line], at)
            write_call(connection, agent_id, running, "running", at)
        self.transcripts.remember(agent_id, added)
        return running

    def end_late(
        self, agent_id: str, record: CallRecord, ending: CallEnding | None = None, *, at: datetime
    ) -> CallRecord:
        """Write how a call ended that went on; the next turn tells it. An end that is there stands, and is returned."""
        with self._database.write() as connection:
            found = find_call(connection, record.key)
            if found is not None and found.has_ended:
                return found
            write_receipt(connection, ending, at)
            ended = record.model_copy(update={"ended_at": at})
            write_call(connection, agent_id, ended, "late", at)
            connection.execute(_ONE_CALL_MORE, {"agent": agent_id})
        return ended

    def give_up_call(self, key: str) -> None:
        """Ask a call that runs to end; a no-op for one that has ended, or is not there."""
        calls = schema.agent_calls
        with self._database.write() as connection:
            found = find_call(connection, key)
            if found is not None and not found.has_ended:
                body = found.model_copy(update={"given_up": True}).model_dump_json()
                connection.execute(update(calls).where(calls.c.key == key).values(body=body))

    def lower_dial(self, agent_id: str, dial: Dial, why: str, step: str, *, at: datetime) -> None:
        """Write that a job's dial went down by itself; once per (agent, step)."""
        body = {"agent_id": agent_id, "dial": dial.value, "why": why}
        with self._database.write() as connection:
            append_record(connection, agent_id, job_of(agent_id), DIAL_LOWERED, body, f"dial.{step}", at)

    def lowered_dial(self, job_id: str) -> Dial | None:
        """Return where a job's dial went by itself since a person last turned it; ``None``: it did not."""
        with self._database.read() as connection:
            return lowered_dial(connection, job_id)

    def undelivered(self, job_id: str) -> list[str]:
        """Return ids of people's messages that no request has held yet, oldest first."""
        with self._database.read() as connection:
            return undelivered(connection, job_id)

    def deliveries(self, job_id: str) -> dict[str, tuple[str, int]]:
        """Return (agent, turn) of each delivered message of a job, by the message's id."""
        deliveries = schema.deliveries
        with self._database.read() as connection:
            rows = connection.execute(select(deliveries).where(deliveries.c.job_id == job_id))
            return {row.decision_id: (row.agent_id, row.turn) for row in rows}

    def park(self, agent_id: str, phase: JobPhase, why: str, step: int, *, at: datetime) -> None:
        """Stop the clock and say in the list of jobs what is waited for; once per (agent, step)."""
        agents = schema.agents
        with self._database.write() as connection:
            row = get_agent(connection, agent_id)
            open_ones = (agents.c.agent_id == agent_id, agents.c.parked_at.is_(None))
            connection.execute(update(agents).where(*open_ones).values(parked_at=time_text(at)))
            note_agent(connection, row, phase, why, step, at)

    def unpark(self, agent_id: str, step: int, *, at: datetime) -> None:
        """Let the clock go on, and say so; once per (agent, step). A no-op when it goes."""
        agents = schema.agents
        with self._database.write() as connection:
            row = get_agent(connection, agent_id)
            if row.parked_at is not None:
                seconds = row.parked_seconds + int((at - row.parked_at).total_seconds())
                values = {"parked_at": None, "parked_seconds": seconds}
                connection.execute(update(agents).where(agents.c.agent_id == agent_id).values(**values))
                note_agent(connection, row, JobPhase.drafting, "", step, at)

    def close(self, agent_id: str, end: AgentEnd, result: BlobRef | None, *, at: datetime) -> AgentEnd | None:
        """Write how an agent ended; an earlier end stands. ``None``: a person's message is undelivered, so it goes on.

        Only an agent that says it is done waits for that; a limit or a cancel ends it all the same.
        """
        with self._database.write() as connection:
            row = get_agent(connection, agent_id)
            if row.end is not None:
                return row.end
            if end.reason in ("done", "answered") and unheard(connection, row):
                return None
            write_end(connection, row, end, result, at)
        return end
