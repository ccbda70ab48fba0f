"""Schedules in the ledger: what people said about them, and how they stand."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import SignedDecision
from perdure.contracts.schedules import ScheduleDefinition, ScheduleState, ScheduleWord
from perdure.errors import Conflict, NotFound, UserError
from perdure.store import schema
from perdure.store.chain import time_of, time_text
from perdure.store.decisions import insert_decision, is_recorded
from perdure.store.events import append_event

ASKING = ("trigger", "backfill")
"""Words that ask for fires."""


@dataclass(frozen=True)
class ScheduleRow:
    """One schedule as the ledger holds it."""

    name: str
    thread: str
    template: str
    requester: str
    state: ScheduleState
    note: str
    word: BlobRef
    """The :class:`ScheduleWord` with its definition."""
    decision_id: str
    handled_until: datetime
    failures: int
    alerted: bool
    trouble: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class AskedFor:
    """A word that asks for fires: where it lies, and the decision that must vouch for it."""

    decision_id: str
    word: BlobRef


def record_word(
    connection: Connection, signed: SignedDecision, word: ScheduleWord, ref: BlobRef, at: datetime, skipped: str = ""
) -> bool:
    """Write what a person said about a schedule; ``False`` when exactly this was written before.

    ``skipped``: with ``resume`` and ``edit``, what is given up of the time before, in words; empty for nothing.

    Raises:
        Conflict: the name is taken, or the schedule is in another state; says in which.
        NotFound: there is no such schedule.
    """
    decision = signed.decision
    if (decision.kind, decision.digest, decision.by) != ("schedule", ref.sha256, word.by):
        raise Conflict(f"Decision {decision.id} is no word about schedule {word.name!r}. Nothing was recorded.")
    if is_recorded(connection, signed):
        return False
    if word.kind == "add":
        _refuse_taken(connection, word)
    else:
        _check(_alive(connection, word.name), word)
    thread = word.definition.thread if word.definition else find_schedule(connection, word.name).thread
    position = insert_decision(connection, signed, thread=thread, job_id="", at=at)
    _take_effect(connection, word, ref, decision.id, at)
    values = {"decision_id": decision.id, "schedule": word.name, "kind": word.kind, "position": position}
    where = {"word_sha256": ref.sha256, "word_size": ref.size_bytes}
    connection.execute(insert(schema.schedule_words).values(**values, **where))
    if skipped:
        note_schedule(connection, word.name, "skipped", f"{decision.id}", {"detail": skipped}, at)
    return True


def find_schedule(connection: Connection, name: str) -> ScheduleRow:
    """Return a schedule by its name, deleted ones too. Raises ``NotFound`` with the nearest names."""
    row = _row(connection, name)
    if row is None:
        known = [one.name for one in list_schedules(connection)]
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        advice = f"Nearest: {', '.join(near)}." if near else "`perdure schedule list` shows what there is."
        raise NotFound(f"There is no schedule {name!r}. {advice}")
    return _schedule(row)


def list_schedules(
    connection: Connection, *, thread: str | None = None, with_deleted: bool = False
) -> list[ScheduleRow]:
    """Return schedules by name."""
    schedules = schema.schedules
    query = select(schedules)
    if thread is not None:
        query = query.where(schedules.c.thread == thread)
    if not with_deleted:
        query = query.where(schedules.c.state != "deleted")
    return [_schedule(row) for row in connection.execute(query.order_by(schedules.c.name))]


def asked_for(connection: Connection, name: str) -> list[AskedFor]:
    """Return the words that ask for fires of a schedule, oldest first."""
    words = schema.schedule_words
    query = select(words).where(words.c.schedule == name, words.c.kind.in_(ASKING)).order_by(words.c.position)
    return [
        AskedFor(row.decision_id, BlobRef(sha256=row.word_sha256, size_bytes=row.word_size))
        for row in connection.execute(query)
    ]


def untold_words(connection: Connection) -> list[tuple[str, str, str]]:
    """Return (decision id, schedule, kind) of words that nobody has passed on yet, oldest first."""
    words, decisions = schema.schedule_words, schema.decisions
    query = (
        select(words.c.decision_id, words.c.schedule, words.c.kind)
        .join(decisions, decisions.c.id == words.c.decision_id)
        .where(decisions.c.told.is_(False))
        .order_by(words.c.position)
    )
    return [(row.decision_id, row.schedule, row.kind) for row in connection.execute(query)]


def note_schedule(
    connection: Connection, name: str, kind: str, step: str, body: dict[str, Any], at: datetime, job_id: str = ""
) -> None:
    """Write ``schedule.<kind>``: what became of a fire, or how the schedule does. Once for each (name, kind, step)."""
    append_event(
        connection,
        thread=find_schedule(connection, name).thread,
        kind=f"schedule.{kind}",
        actor="perdure",
        body={"schedule": name, **body},
        job_id=job_id,
        workflow_id=f"schedule/{name}",
        step=f"{kind}.{step}",
        at=at,
    )


def _refuse_taken(connection: Connection, word: ScheduleWord) -> None:
    if word.definition is None:
        raise UserError("A schedule is added with its definition.")
    row = _row(connection, word.name)
    if row is not None and row.state != "deleted":
        raise Conflict(
            f"There is a schedule {word.name!r} already, of template {row.template} in thread {row.thread}. "
            f"Choose another --name, or change it: `perdure schedule edit {word.name}`."
        )


def _alive(connection: Connection, name: str) -> ScheduleRow:
    found = find_schedule(connection, name)
    if found.state == "deleted":
        raise Conflict(f"Schedule {name!r} was deleted. `perdure schedule add --name {name} …` makes it anew.")
    return found


def _check(found: ScheduleRow, word: ScheduleWord) -> None:
    if word.kind == "pause" and found.state == "paused":
        raise Conflict(f"Schedule {found.name!r} is paused already: {found.note or 'no note'}.")
    if word.kind == "resume" and found.state != "paused":
        raise Conflict(f"Schedule {found.name!r} is not paused; it fires as it should.")
    if word.kind == "edit" and word.definition is not None and word.definition.thread != found.thread:
        raise Conflict(
            f"Schedule {found.name!r} belongs to thread {found.thread}; the new definition would belong to "
            f"{word.definition.thread}. Make another schedule for that one."
        )


def _take_effect(connection: Connection, word: ScheduleWord, ref: BlobRef, decision_id: str, at: datetime) -> None:
    values: dict[str, Any] = {"updated_at": time_text(at)}
    if word.definition is not None:
        values |= _defining(word.definition, ref, decision_id) | {"handled_until": time_text(word.at)}
    if word.kind == "add":
        values |= {"note": "", "failures": 0, "alerted": False, "trouble": "", "created_at": time_text(at)}
        _put(connection, word.name, {**values, "state": "active"})
        return
    if word.kind == "pause":
        values |= {"state": "paused", "note": word.note}
    elif word.kind == "resume":
        values |= {"state": "active", "note": "", "handled_until": time_text(word.at)}
    elif word.kind == "delete":
        values |= {"state": "deleted", "note": word.note}
    schedules = schema.schedules
    connection.execute(update(schedules).where(schedules.c.name == word.name).values(**values))


def _put(connection: Connection, name: str, values: dict[str, Any]) -> None:
    """Insert, or take the place of a deleted one of that name, whose fires stay."""
    schedules = schema.schedules
    known = connection.execute(select(func.count()).select_from(schedules).where(schedules.c.name == name)).scalar_one()
    if known:
        connection.execute(update(schedules).where(schedules.c.name == name).values(**values))
    else:
        connection.execute(insert(schedules).values(name=name, **values))


def _defining(definition: ScheduleDefinition, ref: BlobRef, decision_id: str) -> dict[str, Any]:
    return {
        "thread": definition.thread,
        "template": definition.template,
        "requester": definition.requester,
        "newer_plan": definition.newer_plan,
        "alert_after": definition.alert_after,
        "word_sha256": ref.sha256,
        "word_size": ref.size_bytes,
        "decision_id": decision_id,
    }


def _row(connection: Connection, name: str) -> Row[Any] | None:
    return connection.execute(select(schema.schedules).where(schema.schedules.c.name == name)).one_or_none()


def _schedule(row: Row[Any]) -> ScheduleRow:
    return ScheduleRow(
        name=row.name,
        thread=row.thread,
        template=row.template,
        requester=row.requester,
        state=row.state,
        note=row.note,
        word=BlobRef(sha256=row.word_sha256, size_bytes=row.word_size),
        decision_id=row.decision_id,
        handled_until=time_of(row.handled_until),
        failures=row.failures,
        alerted=row.alerted,
        trouble=row.trouble,
        created_at=time_of(row.created_at),
        updated_at=time_of(row.updated_at),
    )


__all__: Sequence[str] = (
    "AskedFor",
    "ScheduleRow",
    "asked_for",
    "find_schedule",
    "list_schedules",
    "note_schedule",
    "record_word",
    "untold_words",
)
