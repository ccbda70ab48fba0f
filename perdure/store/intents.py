"""Rows of effects that were begun, and how they ended."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, select, update

from perdure.contracts.application import Direction, Receipt
from perdure.contracts.base import BlobRef
from perdure.errors import NotFound
from perdure.store import schema
from perdure.store.chain import time_of, time_text
from perdure.store.events import clean
from perdure.store.rows import BeginEffect, IntentRow


def key(application_id: str, index: int, direction: Direction) -> ColumnElement[bool]:
    """Return the condition that names one intent."""
    table = schema.intents
    return and_(table.c.application_id == application_id, table.c.effect_index == index, table.c.direction == direction)


def find_intent(connection: Connection, application_id: str, index: int, direction: Direction) -> IntentRow | None:
    """Return one intent, if there is one."""
    row = connection.execute(select(schema.intents).where(key(application_id, index, direction))).one_or_none()
    return _intent(row) if row is not None else None


def get_intent(connection: Connection, application_id: str, index: int, direction: Direction) -> IntentRow:
    """Return one intent. Raises ``NotFound``."""
    found = find_intent(connection, application_id, index, direction)
    if found is None:
        raise NotFound(f"Effect {index + 1} ({direction}) of {application_id} was never begun.")
    return found


def list_intents(
    connection: Connection, *, application_id: str | None = None, job_id: str | None = None
) -> list[IntentRow]:
    """Return intents by application, index and direction ("do" before "undo")."""
    table = schema.intents
    query = select(table)
    if application_id is not None:
        query = query.where(table.c.application_id == application_id)
    if job_id is not None:
        query = query.where(table.c.job_id == job_id)
    ordered = query.order_by(table.c.application_id, table.c.effect_index, table.c.direction)
    return [_intent(row) for row in connection.execute(ordered)]


def insert_intent(
    connection: Connection, begin: BeginEffect, state: str, *, attempts: int, started_at: str | None
) -> None:
    """Add the row of an effect that begins, or that ends without having been begun."""
    connection.execute(
        insert(schema.intents).values(
            application_id=begin.application_id,
            effect_index=begin.index,
            direction=begin.direction,
            job_id=begin.job_id,
            digest=begin.digest,
            effect_id=clean(begin.effect_id),
            kind=begin.kind,
            target=begin.target,
            state=state,
            attempts=attempts,
            pgid=0,
            boot_id="",
            detail="",
            started_at=started_at,
            asked=0,
        )
    )


def count_attempt(connection: Connection, found: IntentRow, at: datetime) -> None:
    """Begin once more what was begun before: its end is open again, and a remote's "no" settles again from now."""
    table = schema.intents
    where = key(found.application_id, found.index, found.direction)
    values = {"state": "intent", "attempts": found.attempts + 1, "started_at": time_text(at), "finished_at": None}
    connection.execute(update(table).where(where).values(**values))


def write_end(
    connection: Connection, found: IntentRow, receipt: Receipt, ref: BlobRef, position: int, at: datetime
) -> None:
    """Write how an effect ended; ``position`` is its receipt's record."""
    values: dict[str, Any] = {
        "state": receipt.state,
        "detail": clean(receipt.detail),
        "receipt_sha256": ref.sha256,
        "receipt_size": ref.size_bytes,
        "finished_at": time_text(at),
    }
    if receipt.state == "unknown":
        values["asked"] = position
    where = key(found.application_id, found.index, found.direction)
    connection.execute(update(schema.intents).where(where).values(**values))


def asked_at(connection: Connection, found: IntentRow) -> int:
    """Return the position of the record that said "unknown" last; 0 when none did."""
    where = key(found.application_id, found.index, found.direction)
    return int(connection.execute(select(schema.intents.c.asked).where(where)).scalar_one())


def _intent(row: Row[Any]) -> IntentRow:
    receipt = BlobRef(sha256=row.receipt_sha256, size_bytes=row.receipt_size) if row.receipt_sha256 else None
    return IntentRow(
        application_id=row.application_id,
        job_id=row.job_id,
        digest=row.digest,
        index=row.effect_index,
        direction=row.direction,
        effect_id=row.effect_id,
        kind=row.kind,
        target=row.target,
        state=row.state,
        attempts=row.attempts,
        pgid=row.pgid,
        boot_id=row.boot_id,
        receipt_ref=receipt,
        detail=row.detail,
        started_at=time_of(row.started_at) if row.started_at else None,
        finished_at=time_of(row.finished_at) if row.finished_at else None,
    )
