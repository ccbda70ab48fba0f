"""Agents' turns and calls as people read them, and their transcripts whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection, select

from perdure.contracts.agent_run import CallRecord, TurnRecord
from perdure.contracts.base import BlobRef
from perdure.contracts.messages import Message
from perdure.contracts.watching import CallView, TranscriptLine, TurnView
from perdure.errors import NotFound
from perdure.store import schema
from perdure.store.agent_rows import AgentRow, agent_of
from perdure.store.chain import time_of, time_text
from perdure.store.database import Database

SAID_CHARACTERS = 300
"""Of what a model said in a turn; the transcript has the whole."""


class TurnReader:
    """Reads what a job's agents did."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def views(self, job_id: str, *, since: datetime | None = None) -> list[TurnView]:
        """Return the answered turns of a job's agents after ``since``, oldest first."""
        with self._database.read() as connection:
            found = [view for row in _agents(connection, job_id) for view in _views(connection, row, since)]
        return sorted(found, key=lambda view: view.at)

    def transcript(self, job_id: str, ordinal: int, *, start: int = 0, limit: int = 100) -> list[TranscriptLine]:
        """Return messages of one agent, whole, from number ``start`` on. Raises ``NotFound``."""
        table = schema.transcript
        with self._database.read() as connection:
            agent_id = self._agent(connection, job_id, ordinal)
            query = select(table.c.number, table.c.body).where(table.c.agent_id == agent_id, table.c.number >= start)
            rows = connection.execute(query.order_by(table.c.number).limit(limit)).all()
        return [TranscriptLine(number=row.number, message=Message.model_validate_json(row.body)) for row in rows]

    def outputs(self, job_id: str) -> list[tuple[str, BlobRef]]:
        """Return whole outputs of calls that models saw a part of, by the names under which artifacts are listed."""
        with self._database.read() as connection:
            return [
                (f"agent.{row.ordinal}.turn.{turn}.{position}", ref)
                for row in _agents(connection, job_id)
                for (turn, position), ref in _outputs(connection, row.agent_id)
            ]

    def _agent(self, connection: Connection, job_id: str, ordinal: int) -> str:
        rows = _agents(connection, job_id)
        for row in rows:
            if row.ordinal == ordinal:
                return row.agent_id
        raise NotFound(f"The job has {len(rows)} agents; there is no agent {ordinal}.")


def _agents(connection: Connection, job_id: str) -> list[AgentRow]:
    agents = schema.agents
    query = select(agents).where(agents.c.job_id == job_id).order_by(agents.c.ordinal)
    return [agent_of(row) for row in connection.execute(query)]


def _views(connection: Connection, agent: AgentRow, since: datetime | None) -> Iterator[TurnView]:
    turns = schema.agent_turns
    query = select(turns.c.at, turns.c.body).where(turns.c.agent_id == agent.agent_id)
    if since is not None:
        query = query.where(turns.c.at > time_text(since))
    found = [
        (time_of(row.at), TurnRecord.model_validate_json(row.body))
        for row in connection.execute(query.order_by(turns.c.turn))
    ]
    if not found:
        return
    first = found[0][1]
    calls = _calls(connection, agent.agent_id, first.turn)
    outputs = dict(_outputs(connection, agent.agent_id, first.number))
    said = _said(connection, agent.agent_id, [record.number for _, record in found])
    for at, record in found:
        yield _view(agent.ordinal, at, record, said.get(record.number, ""), calls[record.turn], outputs)


def _view(
    ordinal: int,
    at: datetime,
    record: TurnRecord,
    text: str,
    calls: Sequence[CallRecord],
    outputs: dict[tuple[int, int], BlobRef],
) -> TurnView:
    known = {call.position: call for call in calls}
    views = [
        _call_view(known.get(header.position), header.position, outputs.get((record.turn, header.position)))
        for header in record.result.calls
    ]
    return TurnView(
        agent=ordinal,
        turn=record.turn,
        at=at,
        model=record.model,
        text=text,
        calls=views,
        input_tokens=record.usage.input_tokens,
        output_tokens=record.usage.output_tokens,
        cost_microdollars=record.cost_microdollars,
        notes=list(record.notes),
    )


def _call_view(call: CallRecord | None, position: int, output: BlobRef | None) -> CallView:
    if call is None:
        return CallView(position=position, tool="")
    return CallView(
        position=position,
        tool=call.tool,
        target=call.target,
        status=call.status,
        summary=call.summary,
        output=output,
        digest=call.digest,
    )


def _calls(connection: Connection, agent_id: str, first: int) -> defaultdict[int, list[CallRecord]]:
    calls = schema.agent_calls
    query = select(calls.c.body).where(calls.c.agent_id == agent_id, calls.c.turn >= first)
    found: defaultdict[int, list[CallRecord]] = defaultdict(list)
    for body in connection.execute(query).scalars():
        record = CallRecord.model_validate_json(body)
        found[record.turn].append(record)
    return found


def _said(connection: Connection, agent_id: str, numbers: Sequence[int]) -> dict[int, str]:
    """The beginnings of what a model said, by the message's number."""
    table = schema.transcript
    query = select(table.c.number, table.c.body).where(
        table.c.agent_id == agent_id, table.c.number >= numbers[0], table.c.key.startswith("turn/")
    )
    rows = connection.execute(query)
    return {row.number: Message.model_validate_json(row.body).text[:SAID_CHARACTERS] for row in rows}


def _outputs(connection: Connection, agent_id: str, after: int = 0) -> Iterator[tuple[tuple[int, int], BlobRef]]:
    """Blobs behind results. In the stored JSON a quote inside a text is escaped: only a field looks like this."""
    table = schema.transcript
    query = select(table.c.key, table.c.body).where(
        table.c.agent_id == agent_id,
        table.c.number > after,
        table.c.key.startswith("call/"),
        table.c.body.contains('"blob":{"sha256"'),
    )
    for row in connection.execute(query.order_by(table.c.number)):
        _, turn, position = row.key.split("/")
        for result in Message.model_validate_json(row.body).results:
            if result.blob is not None:
                yield (int(turn), int(position)), result.blob
