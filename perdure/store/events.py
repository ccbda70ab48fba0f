"""Writing and reading the evidence, inside a transaction that the caller holds."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select

from perdure.contracts.base import JsonDict
from perdure.contracts.canonical import canonical_bytes
from perdure.contracts.http import EventView
from perdure.errors import Conflict, StageFailed
from perdure.store import schema
from perdure.store.chain import GENESIS, SALT_BYTES, Header, content_hash, link_hash, time_of, time_text

INSTALLATION = "@installation"
"""The thread of records that belong to no job: tokens, trust. A real thread's name never has an ``@``."""


def append_event(
    connection: Connection,
    *,
    thread: str,
    kind: str,
    actor: str,
    body: JsonDict,
    at: datetime,
    job_id: str = "",
    workflow_id: str = "",
    step: str = "",
) -> tuple[int, bool]:
    """Add one record; return its position and whether it is new.

    With ``workflow_id`` and ``step`` a second call is a no-op that gives the first one's position.

    Raises:
        Conflict: that key was used for a record of another kind.
        StageFailed: the body cannot be hashed (a float, an integer beyond 2^53, text that is not Unicode).
    """
    keyed = bool(workflow_id and step)
    if keyed:
        found = find_event(connection, workflow_id, step)
        if found is not None:
            _refuse_other_kind(found, thread, kind)
            return int(found.position), False
    data = _canonical(kind, body)
    salt = secrets.token_bytes(SALT_BYTES)
    seq, prev = _end_of_thread(connection, thread)
    header = Header(
        thread=clean(thread),
        seq=seq + 1,
        kind=clean(kind),
        at=time_text(at),
        actor=clean(actor),
        job_id=clean(job_id),
        workflow_id=workflow_id if keyed else "",
        step=step if keyed else "",
        content_hash=content_hash(salt, data),
        prev=prev,
    )
    return _insert(connection, header, salt, data), True


def find_event(connection: Connection, workflow_id: str, step: str) -> Row[Any] | None:
    """Return the header written under an idempotency key, if any."""
    events = schema.events
    return connection.execute(
        select(events).where(events.c.workflow_id == workflow_id, events.c.step == step)
    ).one_or_none()


def head_of(connection: Connection) -> str:
    """Return the hash of the newest link of the global chain; ``GENESIS`` for an empty ledger."""
    return _end_of_chain(connection)[1]


def read_events(connection: Connection, *, job_id: str | None, after: int, limit: int) -> list[EventView]:
    """Return records after a position, oldest first; all jobs' when ``job_id`` is ``None``."""
    query = events_with_contents().where(schema.events.c.position > after)
    if job_id is not None:
        query = query.where(schema.events.c.job_id == job_id)
    rows = connection.execute(query.order_by(schema.events.c.position).limit(limit))
    return [view_of(row) for row in rows]


def bodies_of(connection: Connection, positions: Sequence[int]) -> dict[int, JsonDict]:
    """Return the bodies at these positions; an erased one is missing."""
    contents = schema.contents
    rows = connection.execute(select(contents).where(contents.c.position.in_(positions)))
    return {row.position: json.loads(row.body) for row in rows}


def view_of(row: Row[Any]) -> EventView:
    """Return a header with its body as a contract."""
    return EventView(
        position=row.position,
        seq=row.seq,
        thread=row.thread,
        job_id=row.job_id,
        kind=row.kind,
        at=time_of(row.at),
        actor=row.actor,
        body=json.loads(row.body) if row.body is not None else {},
    )


def clean(text: str) -> str:
    """Return text that every database and hash can hold: NUL and lone surrogates become U+FFFD."""
    return "".join("\ufffd" if char == "\0" or "\ud800" <= char <= "\udfff" else char for char in text)


def events_with_contents() -> Select[Any]:
    """Return the query for headers with their bodies (null where erased), to be narrowed; see :func:`view_of`."""
    events, contents = schema.events, schema.contents
    return select(events, contents.c.body).outerjoin(contents, contents.c.position == events.c.position)


def _canonical(kind: str, body: JsonDict) -> bytes:
    try:
        return canonical_bytes(body)
    except ValueError as error:
        raise StageFailed(f"A record {kind!r} cannot be written: {error}. Nothing was recorded.") from error


def _refuse_other_kind(found: Row[Any], thread: str, kind: str) -> None:
    if (found.thread, found.kind) != (thread, kind):
        raise Conflict(
            f"{found.workflow_id} step {found.step!r} already wrote {found.kind!r} in thread {found.thread!r}; "
            f"it cannot write {kind!r} in {thread!r} as well. Each step has a name of its own."
        )


def _end_of_thread(connection: Connection, thread: str) -> tuple[int, str]:
    events = schema.events
    query = select(events.c.seq, events.c.hash).where(events.c.thread == clean(thread))
    row = connection.execute(query.order_by(events.c.seq.desc()).limit(1)).one_or_none()
    return (row.seq, row.hash) if row else (0, GENESIS)


def _end_of_chain(connection: Connection) -> tuple[int, str]:
    chain = schema.chain
    row = connection.execute(select(chain).order_by(chain.c.position.desc()).limit(1)).one_or_none()
    return (row.position, row.hash) if row else (0, GENESIS)


def _insert(connection: Connection, header: Header, salt: bytes, data: bytes) -> int:
    last, prev = _end_of_chain(connection)
    position, event_hash = last + 1, header.hash()
    row = vars(header) | {"workflow_id": header.workflow_id or None, "step": header.step or None}
    connection.execute(insert(schema.events).values(position=position, hash=event_hash, **row))
    connection.execute(insert(schema.contents).values(position=position, salt=salt, body=data.decode("utf-8")))
    link = {"event_hash": event_hash, "prev": prev, "hash": link_hash(position, prev, event_hash)}
    connection.execute(insert(schema.chain).values(position=position, **link))
    return position
