"""How an application and a gate stand, by the ledger: what a workflow asks after somebody told it something."""

from __future__ import annotations

from itertools import takewhile

from sqlalchemy import Connection, select

from perdure.contracts.application import ApplicationStanding
from perdure.contracts.base import JsonDict
from perdure.store import intents, schema
from perdure.store.arbiter import GOES_ON
from perdure.store.events import bodies_of, find_event
from perdure.store.permits import permit_of
from perdure.store.plans import plan_row


def application_standing(connection: Connection, application_id: str) -> ApplicationStanding:
    """Return how an application stands; ``open`` also when nobody has heard of it.

    One that was permitted ends on its permit. One that was refused before that has only the record of it.
    """
    permit = permit_of(connection, application_id)
    closed = _last_close(connection, application_id)
    state = permit.closed if permit is not None else closed.get("state", "")
    detail = closed.get("detail", "") if closed.get("state") == state else ""
    return ApplicationStanding.model_validate(
        {"state": state or "open", "reached": _reached(connection, application_id), "detail": detail}
    )


def gate_detail(connection: Connection, digest: str) -> str:
    """Return what was written about the end of a plan's gate; empty while it is open."""
    plan = plan_row(connection, digest)
    closed = find_event(connection, plan.gate_id, "close") if plan.gate_id else None
    body = bodies_of(connection, [closed.position]).get(closed.position, {}) if closed is not None else {}
    return str(body.get("detail", ""))


def _reached(connection: Connection, application_id: str) -> int:
    rows = intents.list_intents(connection, application_id=application_id)
    ends = {row.index: row.state for row in rows if row.direction == "do"}
    return len(list(takewhile(lambda index: ends.get(index) in GOES_ON, range(len(ends)))))


def _last_close(connection: Connection, application_id: str) -> JsonDict:
    events = schema.events
    query = select(events.c.position).where(
        events.c.workflow_id == application_id, events.c.kind == "application.closed"
    )
    position = connection.execute(query.order_by(events.c.position.desc()).limit(1)).scalar_one_or_none()
    return bodies_of(connection, [position]).get(position, {}) if position is not None else {}
