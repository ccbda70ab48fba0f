"""Agents as the store has them, and what is looked up about them inside somebody's transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select

from perdure.contracts.agent import AgentEnd, CallTrace, Dial, Spent
from perdure.contracts.agent_run import CallRecord, SummaryRecord, TurnRecord
from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import MESSAGES
from perdure.errors import NotFound
from perdure.store import schema
from perdure.store.chain import time_of, time_text
from perdure.store.events import bodies_of

DIAL_LOWERED = "agent.dial"
"""Kind of the record that a job's dial went down by itself."""

# Made once: building a statement costs more than asking it, and every turn asks these.
_AGENT = select(schema.agents).where(schema.agents.c.agent_id == bindparam("agent"))
_UNDELIVERED = (
    select(schema.decisions.c.id)
    .outerjoin(schema.deliveries, schema.deliveries.c.decision_id == schema.decisions.c.id)
    .where(
        schema.decisions.c.job_id == bindparam("job"),
        schema.decisions.c.kind.in_(MESSAGES),
        schema.deliveries.c.decision_id.is_(None),
    )
    .order_by(schema.decisions.c.position)
)
_SAID_SINCE = (
    select(schema.decisions.c.id)
    .join(schema.events, schema.events.c.position == schema.decisions.c.position)
    .where(schema.decisions.c.job_id == bindparam("job"), schema.decisions.c.kind.in_(MESSAGES))
    .where(schema.events.c.at > bindparam("since"))
    .order_by(schema.decisions.c.position)
)
_BELOW = (
    select(schema.agents)
    .where(schema.agents.c.job_id == bindparam("job"))
    .where(func.substr(schema.agents.c.agent_id, 1, bindparam("length")) == bindparam("prefix"))
    .order_by(schema.agents.c.ordinal)
)
_TURNED = (
    select(func.coalesce(func.max(schema.decisions.c.position), 0))
    .where(schema.decisions.c.job_id == bindparam("job"), schema.decisions.c.kind == "dial")
    .scalar_subquery()
)
_LOWERED = (
    select(schema.events.c.position)
    .where(schema.events.c.job_id == bindparam("job"), schema.events.c.kind == DIAL_LOWERED)
    .where(schema.events.c.position > _TURNED)
    .order_by(schema.events.c.position.desc())
    .limit(1)
)


@dataclass(frozen=True)
class AgentRow:
    """One agent."""

    agent_id: str
    job_id: str
    ordinal: int
    """Which agent of its job, from 1."""
    spec: BlobRef
    end: AgentEnd | None
    result: BlobRef | None
    started_at: datetime
    parked_at: datetime | None
    parked_seconds: int
    spent: Spent

    def wall_seconds(self, now: datetime) -> int:
        """How long it has worked: since its start, time parked for a person not counted."""
        until = self.parked_at or now
        return int((until - self.started_at).total_seconds()) - self.parked_seconds


@dataclass(frozen=True)
class AgentLook:
    """All that a turn has to know before it begins, as of one moment."""

    row: AgentRow
    record: TurnRecord | None
    """This turn, when it was answered before."""
    before: TurnRecord | None
    """The turn before it."""
    calls: tuple[CallRecord, ...]
    """The newest ones, oldest first."""
    keys: tuple[tuple[int, str], ...]
    """Number and key of what was told to the model beside its work."""
    length: int
    """Of the transcript."""
    undelivered: frozenset[str]
    """Ids of people's messages that no request of this agent has held yet: those that none has, and those that were
    said since it began."""
    below: tuple[AgentRow, ...] = ()
    """The agents that it started, and those that they did."""
    summary: SummaryRecord | None = None
    """The newest one."""
    late: tuple[CallRecord, ...] = ()
    """Calls that went on beside the turns and have ended since the last one, oldest first."""

    @property
    def traces(self) -> list[CallTrace]:
        """The calls as loop detection sees them."""
        return [trace_of(record) for record in self.calls if record.has_ended]


def trace_of(record: CallRecord) -> CallTrace:
    """Return a finished call as loop detection sees it."""
    assert record.status not in ("", "waits")
    return CallTrace(
        turn=record.turn,
        tool=record.tool,
        arguments_hash=record.arguments_hash,
        answer_hash=record.answer_hash,
        status=record.status,
        changed=record.changed,
    )


def find_agent(connection: Connection, agent_id: str) -> AgentRow | None:
    """Return an agent, if there is one."""
    row = connection.execute(_AGENT, {"agent": agent_id}).one_or_none()
    return agent_of(row) if row is not None else None


def all_agents(connection: Connection) -> list[AgentRow]:
    """Return every agent there ever was."""
    agents = schema.agents
    return [agent_of(row) for row in connection.execute(select(agents).order_by(agents.c.started_at))]


def open_agents(connection: Connection, job_id: str) -> list[str]:
    """Return the ids of the agents at work on a job, oldest first."""
    agents = schema.agents
    query = select(agents.c.agent_id).where(agents.c.job_id == job_id, agents.c.end_reason == "")
    return list(connection.execute(query.order_by(agents.c.ordinal)).scalars())


def has_open_agent(connection: Connection, job_id: str) -> bool:
    """Whether an agent works on a job now."""
    agents = schema.agents
    query = select(agents.c.agent_id).where(agents.c.job_id == job_id, agents.c.end_reason == "")
    return connection.execute(query.limit(1)).first() is not None


def undelivered(connection: Connection, job_id: str) -> list[str]:
    """Return ids of people's messages to a job that no request has held yet, oldest first."""
    return list(connection.execute(_UNDELIVERED, {"job": job_id}).scalars())


def below(connection: Connection, agent_id: str, job_id: str) -> list[AgentRow]:
    """Return the agents below one, oldest first."""
    prefix = f"{agent_id}/"
    return [
        agent_of(row) for row in connection.execute(_BELOW, {"job": job_id, "prefix": prefix, "length": len(prefix)})
    ]


def unheard(connection: Connection, agent: AgentRow) -> list[str]:
    """Return ids of people's messages that an agent has to hear: none has heard them, or they were said to it as well.

    Several agents may work on a job; what was said since one began is in a request of each.
    """
    transcript, about = schema.transcript, {"job": agent.job_id, "since": time_text(agent.started_at)}
    found = list(connection.execute(_SAID_SINCE, about).scalars())
    if not found:
        return undelivered(connection, agent.job_id)
    told = [f"say/{one}" for one in found]  # by the index on keys: a look at every message grows with the conversation
    keys = select(transcript.c.key).where(transcript.c.agent_id == agent.agent_id, transcript.c.key.in_(told))
    heard = {key.removeprefix("say/") for key in connection.execute(keys).scalars()}
    open_ones = undelivered(connection, agent.job_id)
    return [*(one for one in open_ones if one not in found), *(one for one in found if one not in heard)]


def lowered_dial(connection: Connection, job_id: str) -> Dial | None:
    """Return where a job's dial went by itself since a person last turned it; ``None``: it did not."""
    position = connection.execute(_LOWERED, {"job": job_id}).scalar_one_or_none()
    body = bodies_of(connection, [position]).get(position, {}) if position is not None else {}
    return Dial(body["dial"]) if "dial" in body else None


def get_agent(connection: Connection, agent_id: str) -> AgentRow:
    """Return an agent. Raises ``NotFound``."""
    row = find_agent(connection, agent_id)
    if row is None:
        raise NotFound(f"There is no agent {agent_id}. `perdure show JOB` names a job's agents.")
    return row


def agent_of(row: Row[Any]) -> AgentRow:
    """Return a row of the table as a value."""
    result = BlobRef(sha256=row.result_sha256, size_bytes=row.result_size) if row.result_sha256 else None
    end = AgentEnd(reason=row.end_reason, sentence=row.end_sentence) if row.end_reason else None
    return AgentRow(
        agent_id=row.agent_id,
        job_id=row.job_id,
        ordinal=row.ordinal,
        spec=BlobRef(sha256=row.spec_sha256, size_bytes=row.spec_size),
        end=end,
        result=result,
        started_at=time_of(row.started_at),
        parked_at=time_of(row.parked_at) if row.parked_at else None,
        parked_seconds=row.parked_seconds,
        spent=Spent(
            turns=row.turns,
            calls=row.calls,
            tokens=row.tokens,
            cost_microdollars=row.cost_microdollars,
            unknown_cost=row.unknown_cost,
        ),
    )
