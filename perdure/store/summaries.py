"""Summaries of long conversations. Each is written once; what it may cost is counted before anybody is asked."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select, update

from perdure.contracts.agent import Spent
from perdure.contracts.agent_run import SummaryRecord
from perdure.store import schema
from perdure.store.chain import time_text
from perdure.store.database import Database

_NEWEST = (
    select(schema.agent_summaries.c.body)
    .where(schema.agent_summaries.c.agent_id == bindparam("agent"), schema.agent_summaries.c.body != "")
    .order_by(schema.agent_summaries.c.until.desc())
    .limit(1)
)
"""Made once: every turn asks it."""


class Summaries:
    """Reads and writes agents' summaries. Every write may be asked for again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, agent_id: str, until: int) -> SummaryRecord | None:
        """Return the summary of the messages before ``until``, once it was made."""
        table = schema.agent_summaries
        query = select(table.c.body).where(table.c.agent_id == agent_id, table.c.until == until)
        with self._database.read() as connection:
            body = connection.execute(query).scalar_one_or_none()
            return SummaryRecord.model_validate_json(body) if body else None

    def newest(self, agent_id: str) -> SummaryRecord | None:
        """Return the newest one."""
        with self._database.read() as connection:
            return newest_summary(connection, agent_id)

    def begin(self, agent_id: str, until: int, reserved: Spent, *, at: datetime) -> None:
        """Count what a summary may come to before it is made; an attempt that follows counts nothing more."""
        table, agents = schema.agent_summaries, schema.agents
        with self._database.write() as connection:
            key = (table.c.agent_id == agent_id, table.c.until == until)
            if connection.execute(select(table.c.until).where(*key)).first() is not None:
                return
            amounts = {"tokens": reserved.tokens, "cost_microdollars": reserved.cost_microdollars}
            connection.execute(
                insert(table).values(agent_id=agent_id, until=until, body="", at=time_text(at), **amounts)
            )
            grown = {name: agents.c[name] + amount for name, amount in amounts.items()}
            connection.execute(update(agents).where(agents.c.agent_id == agent_id).values(**grown))

    def end(self, agent_id: str, record: SummaryRecord, *, at: datetime) -> SummaryRecord:
        """Write a summary that was begun, and what it cost in the place of what was reserved; an earlier one stands."""
        table = schema.agent_summaries
        with self._database.write() as connection:
            key = (table.c.agent_id == agent_id, table.c.until == record.until)
            row = connection.execute(select(table).where(*key)).one()
            if row.body:
                return SummaryRecord.model_validate_json(row.body)
            tokens = (record.usage.input_tokens or 0) + (record.usage.output_tokens or 0)
            cost = record.cost_microdollars
            _count(connection, agent_id, tokens - row.tokens, (cost or 0) - row.cost_microdollars, unknown=cost is None)
            amounts = {"tokens": tokens, "cost_microdollars": cost or 0}
            body = record.model_dump_json()
            connection.execute(update(table).where(*key).values(body=body, at=time_text(at), **amounts))
        return record

    def give_up(self, agent_id: str, until: int) -> None:
        """Give back what was reserved for a summary that will not be made; one that was made stays."""
        table = schema.agent_summaries
        with self._database.write() as connection:
            key = (table.c.agent_id == agent_id, table.c.until == until, table.c.body == "")
            row = connection.execute(select(table).where(*key)).one_or_none()
            if row is not None:
                _count(connection, agent_id, -row.tokens, -row.cost_microdollars, unknown=False)
                connection.execute(table.delete().where(*key))


def newest_summary(connection: Connection, agent_id: str) -> SummaryRecord | None:
    """Return an agent's newest summary that was made."""
    body = connection.execute(_NEWEST, {"agent": agent_id}).scalar_one_or_none()
    return SummaryRecord.model_validate_json(body) if body is not None else None


def _count(connection: Connection, agent_id: str, tokens: int, cost: int, *, unknown: bool) -> None:
    agents = schema.agents
    values = {"tokens": agents.c.tokens + tokens, "cost_microdollars": agents.c.cost_microdollars + cost}
    more = {"unknown_cost": True} if unknown else {}
    connection.execute(update(agents).where(agents.c.agent_id == agent_id).values(**values, **more))
