"""Agents' transcripts: each message once, numbered, never changed; kept warm so that a turn reads only what is new."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any

from sqlalchemy import Connection, func, insert, or_, select

from perdure.contracts.agent_run import CallRecord, TurnRecord
from perdure.contracts.messages import Message, Part, estimate_tokens
from perdure.errors import Conflict, NotFound
from perdure.store import schema
from perdure.store.chain import time_text
from perdure.store.database import Database

WARM_AGENTS = 64
"""Transcripts kept in memory, the least lately used goes first."""


@dataclass(frozen=True)
class Line:
    """One message on its way into a transcript."""

    number: int
    key: str
    """What it is, the same on every attempt: "goal", "turn/3", "call/3/0", "say/<decision>"."""
    message: Message


@dataclass
class _Warm:
    """The messages of one agent that were read or written, from number 0 without a gap."""

    messages: list[Message] = field(default_factory=list)


class Transcripts:
    """Reads and writes what agents said and did. Thread-safe.

    Results of parallel calls may be written in any order: their numbers were given out by the turn that asked.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._warm: OrderedDict[str, _Warm] = OrderedDict()
        self._lock = Lock()

    def read(self, agent_id: str, until: int) -> tuple[Message, ...]:
        """Return the messages before number ``until``, oldest first; the same objects as the last time.

        Raises:
            NotFound: one of them is missing.
        """
        with self._lock:
            known = self._warm.get(agent_id) or _Warm()
            have = len(known.messages)
        if have < until:
            with self._database.read() as connection:
                new = _read_rows(connection, agent_id, have, until)
            if [number for number, _ in new] != list(range(have, until)):
                raise NotFound(
                    f"The transcript of {agent_id} lacks messages before {until}; expected them from {have}."
                )
            self._keep(agent_id, have, [message for _, message in new])
        with self._lock:
            self._warm.move_to_end(agent_id)
            return tuple(self._warm[agent_id].messages[:until])

    def _keep(self, agent_id: str, have: int, new: Sequence[Message]) -> None:
        with self._lock:
            warm = self._warm.setdefault(agent_id, _Warm())
            warm.messages.extend(new[len(warm.messages) - have :])
            self._warm.move_to_end(agent_id)
            while len(self._warm) > WARM_AGENTS:
                self._warm.popitem(last=False)

    def forget(self, agent_id: str) -> None:
        """Drop what is kept in memory."""
        with self._lock:
            self._warm.pop(agent_id, None)

    def turns(self, agent_id: str) -> list[TurnRecord]:
        """Return all answered turns, oldest first."""
        turns = schema.agent_turns
        query = select(turns.c.body).where(turns.c.agent_id == agent_id).order_by(turns.c.turn)
        with self._database.read() as connection:
            return [TurnRecord.model_validate_json(body) for body in connection.execute(query).scalars()]

    def call(self, key: str) -> CallRecord | None:
        """Return a call that was begun or asked about, ``None`` before that."""
        with self._database.read() as connection:
            return find_call(connection, key)

    def calls(self, agent_id: str) -> list[CallRecord]:
        """Return an agent's calls, oldest first."""
        with self._database.read() as connection:
            return newest_calls(connection, agent_id, None)

    def denied(self, job_id: str) -> list[CallRecord]:
        """Return the denied calls of all agents of a job, oldest first."""
        calls, agents = schema.agent_calls, schema.agents
        query = select(calls.c.body).join(agents, agents.c.agent_id == calls.c.agent_id)
        query = query.where(agents.c.job_id == job_id, calls.c.state == "denied")
        with self._database.read() as connection:
            bodies = connection.execute(query.order_by(agents.c.ordinal, calls.c.turn, calls.c.position)).scalars()
            return [CallRecord.model_validate_json(body) for body in bodies]

    def length(self, agent_id: str) -> int:
        """Return how many messages are written."""
        with self._database.read() as connection:
            return length_of(connection, agent_id)


def make_message(id: str, *parts: Part, **about: Any) -> Message:
    """Put a message together with its estimated size."""
    return Message(id=id, parts=parts, tokens=estimate_tokens(parts), **about)


def append_lines(connection: Connection, agent_id: str, lines: Sequence[Line], at: datetime) -> None:
    """Write messages; one that is there under its key is left as it is.

    Raises:
        Conflict: its number holds another message.
    """
    table = schema.transcript
    for line in lines:
        found = _find_line(connection, agent_id, line)
        if found is None:
            values = {"number": line.number, "key": line.key, "body": line.message.model_dump_json()}
            connection.execute(insert(table).values(agent_id=agent_id, at=time_text(at), **values))
        elif (found.number, found.key) != (line.number, line.key):
            raise Conflict(
                f"Message {line.number} ({line.key}) of {agent_id} cannot be written: {found.key} has number "
                f"{found.number}. Nothing was written."
            )


def length_of(connection: Connection, agent_id: str) -> int:
    """Return how many messages are written."""
    table = schema.transcript
    query = select(func.count()).select_from(table).where(table.c.agent_id == agent_id)
    return int(connection.execute(query).scalar_one())


def find_turns(connection: Connection, agent_id: str, numbers: Sequence[int]) -> list[TurnRecord]:
    """Return those of these turns that were answered."""
    turns = schema.agent_turns
    query = select(turns.c.body).where(turns.c.agent_id == agent_id, turns.c.turn.in_(numbers))
    return [TurnRecord.model_validate_json(body) for body in connection.execute(query).scalars()]


def newest_calls(connection: Connection, agent_id: str, last: int | None) -> list[CallRecord]:
    """Return an agent's newest ``last`` calls, all for ``None``; oldest first."""
    calls = schema.agent_calls
    order = (calls.c.turn.desc(), calls.c.position.desc())
    query = select(calls.c.body).where(calls.c.agent_id == agent_id).order_by(*order).limit(last)
    return [CallRecord.model_validate_json(body) for body in connection.execute(query).scalars()][::-1]


def told_keys(connection: Connection, agent_id: str) -> list[tuple[int, str]]:
    """Return (number, key) of messages from people and from the loop itself, oldest first."""
    table = schema.transcript
    kinds = [table.c.key.startswith(f"{kind}/") for kind in ("loop", "more", "say", "repair")]
    query = select(table.c.number, table.c.key).where(table.c.agent_id == agent_id, or_(*kinds))
    return [(row.number, row.key) for row in connection.execute(query.order_by(table.c.number))]


def find_call(connection: Connection, key: str) -> CallRecord | None:
    """Return a call by its key, if it was begun or asked about."""
    calls = schema.agent_calls
    body = connection.execute(select(calls.c.body).where(calls.c.key == key)).scalar_one_or_none()
    return CallRecord.model_validate_json(body) if body is not None else None


def _find_line(connection: Connection, agent_id: str, line: Line) -> Any:
    table = schema.transcript
    same = (table.c.key == line.key) | (table.c.number == line.number)
    query = select(table.c.number, table.c.key).where(table.c.agent_id == agent_id, same)
    return connection.execute(query).first()


def _read_rows(connection: Connection, agent_id: str, start: int, end: int) -> list[tuple[int, Message]]:
    table = schema.transcript
    query = select(table.c.number, table.c.body).where(
        table.c.agent_id == agent_id, table.c.number >= start, table.c.number < end
    )
    rows = connection.execute(query.order_by(table.c.number)).all()
    return [(row.number, Message.model_validate(json.loads(row.body))) for row in rows]
