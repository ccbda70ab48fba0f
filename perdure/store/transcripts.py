"""Agents' transcripts: each message once, numbered, never changed; kept warm so that a turn reads only what is new."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Executable, bindparam, func, insert, or_, select, union_all

from perdure.contracts.agent_run import CallRecord, TurnRecord
from perdure.contracts.messages import Message, Part, estimate_tokens
from perdure.errors import Conflict, NotFound
from perdure.store import schema
from perdure.store.chain import time_text
from perdure.store.database import Database

WARM_AGENTS = 64
"""Transcripts kept in memory, the least lately used goes first."""

# Made once: building a statement costs more than asking it, and every turn asks these.
_LINES, _TURNS, _CALLS = schema.transcript, schema.agent_turns, schema.agent_calls
_COUNT = select(func.count()).select_from(_LINES).where(_LINES.c.agent_id == bindparam("agent"))
_TWO_TURNS = select(_TURNS.c.body).where(
    _TURNS.c.agent_id == bindparam("agent"), _TURNS.c.turn.between(bindparam("first"), bindparam("last"))
)
_NEWEST_CALLS = (
    select(_CALLS.c.body)
    .where(_CALLS.c.agent_id == bindparam("agent"))
    .order_by(_CALLS.c.turn.desc(), _CALLS.c.position.desc())
    .limit(bindparam("last"))
)
_CALL = select(_CALLS.c.body).where(_CALLS.c.key == bindparam("call"))
_IN_ORDER = (_CALLS.c.turn, _CALLS.c.position)
_LATE = (
    select(_CALLS.c.body).where(_CALLS.c.agent_id == bindparam("agent"), _CALLS.c.state == "late").order_by(*_IN_ORDER)
)
_DENIED = (
    select(_CALLS.c.body)
    .join(schema.agents, schema.agents.c.agent_id == _CALLS.c.agent_id)
    .where(schema.agents.c.job_id == bindparam("job"), _CALLS.c.state == "denied")
    .order_by(schema.agents.c.ordinal, *_IN_ORDER)
)
_OF_AGENT = select(_LINES.c.number, _LINES.c.key).where(_LINES.c.agent_id == bindparam("agent"))
_KINDS = ("loop", "more", "say", "repair")
_TOLD: dict[bool, Executable] = {
    # By ranges of the index on keys: one look at every message of 20 KB was 5 ms of a turn at the 400th (measured).
    True: union_all(*(_OF_AGENT.where(_LINES.c.key > f"{kind}/", _LINES.c.key < f"{kind}0") for kind in _KINDS)),
    # Where a collation may order otherwise than the bytes do.
    False: _OF_AGENT.where(or_(*(_LINES.c.key.startswith(f"{kind}/") for kind in _KINDS))),
}
_LINE = select(_LINES.c.number, _LINES.c.key).where(
    _LINES.c.agent_id == bindparam("agent"),
    (_LINES.c.key == bindparam("line_key")) | (_LINES.c.number == bindparam("line_number")),
)
_ADD_LINE = insert(_LINES)
_ALL = 1_000_000_000


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
    ahead: dict[int, Message] = field(default_factory=dict)
    """Written by this process, and not yet joined: calls of one answer end in any order."""

    def join(self) -> None:
        """Take over what lies ahead without a gap."""
        while (message := self.ahead.pop(len(self.messages), None)) is not None:
            self.messages.append(message)


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
            warm.ahead = {number: message for number, message in warm.ahead.items() if number >= len(warm.messages)}
            warm.join()
            self._warm.move_to_end(agent_id)
            while len(self._warm) > WARM_AGENTS:
                self._warm.popitem(last=False)

    def remember(self, agent_id: str, lines: Sequence[Line]) -> None:
        """Keep messages that this process has written just now, so that no turn reads its own words back."""
        with self._lock:
            warm = self._warm.get(agent_id)
            if warm is None:
                return  # the next turn reads it whole
            for line in lines:
                if line.number >= len(warm.messages):
                    warm.ahead[line.number] = line.message
            warm.join()

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
        with self._database.read() as connection:
            bodies = connection.execute(_DENIED, {"job": job_id}).scalars()
            return [CallRecord.model_validate_json(body) for body in bodies]

    def length(self, agent_id: str) -> int:
        """Return how many messages are written."""
        with self._database.read() as connection:
            return length_of(connection, agent_id)


def make_message(id: str, *parts: Part, **about: Any) -> Message:
    """Put a message together with its estimated size."""
    return Message(id=id, parts=parts, tokens=estimate_tokens(parts), **about)


def append_lines(connection: Connection, agent_id: str, lines: Sequence[Line], at: datetime) -> list[Line]:
    """Write messages, and return those that were new; one that is there under its key is left as it is.

    Raises:
        Conflict: its number holds another message.
    """
    added = []
    for line in lines:
        found = _find_line(connection, agent_id, line)
        if found is None:
            added.append(line)
            values = {"number": line.number, "key": line.key, "body": line.message.model_dump_json()}
            connection.execute(_ADD_LINE, {"agent_id": agent_id, "at": time_text(at), **values})
        elif (found.number, found.key) != (line.number, line.key):
            raise Conflict(
                f"Message {line.number} ({line.key}) of {agent_id} cannot be written: {found.key} has number "
                f"{found.number}. Nothing was written."
            )
    return added


def length_of(connection: Connection, agent_id: str) -> int:
    """Return how many messages are written."""
    return int(connection.execute(_COUNT, {"agent": agent_id}).scalar_one())


def find_turns(connection: Connection, agent_id: str, first: int, last: int) -> list[TurnRecord]:
    """Return those of the turns from ``first`` to ``last`` that were answered."""
    bodies = connection.execute(_TWO_TURNS, {"agent": agent_id, "first": first, "last": last}).scalars()
    return [TurnRecord.model_validate_json(body) for body in bodies]


def newest_calls(connection: Connection, agent_id: str, last: int | None) -> list[CallRecord]:
    """Return an agent's newest ``last`` calls, all for ``None``; oldest first."""
    about = {"agent": agent_id, "last": _ALL if last is None else last}
    return [_read_call(body) for body in connection.execute(_NEWEST_CALLS, about).scalars()][::-1]


@lru_cache(maxsize=4096)
def _read_call(body: str) -> CallRecord:
    """Every turn looks at the same calls again."""
    return CallRecord.model_validate_json(body)


def late_calls(connection: Connection, agent_id: str) -> list[CallRecord]:
    """Return the calls that went on beside the turns and have ended, and whose end was not told yet; oldest first."""
    bodies = connection.execute(_LATE, {"agent": agent_id}).scalars()
    return [CallRecord.model_validate_json(body) for body in bodies]


def told_keys(connection: Connection, agent_id: str) -> list[tuple[int, str]]:
    """Return (number, key) of messages from people and from the loop itself, oldest first."""
    told = _TOLD[connection.dialect.name == "sqlite"]
    return sorted((row.number, row.key) for row in connection.execute(told, {"agent": agent_id}))


def find_call(connection: Connection, key: str) -> CallRecord | None:
    """Return a call by its key, if it was begun or asked about."""
    body = connection.execute(_CALL, {"call": key}).scalar_one_or_none()
    return CallRecord.model_validate_json(body) if body is not None else None


def _find_line(connection: Connection, agent_id: str, line: Line) -> Any:
    return connection.execute(_LINE, {"agent": agent_id, "line_key": line.key, "line_number": line.number}).first()


def _read_rows(connection: Connection, agent_id: str, start: int, end: int) -> list[tuple[int, Message]]:
    table = schema.transcript
    query = select(table.c.number, table.c.body).where(
        table.c.agent_id == agent_id, table.c.number >= start, table.c.number < end
    )
    rows = connection.execute(query.order_by(table.c.number)).all()
    return [(row.number, Message.model_validate(json.loads(row.body))) for row in rows]
