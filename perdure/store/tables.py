"""Whether what the arbiter looks up still says what the evidence says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, select

from perdure.contracts.http import AuditFinding
from perdure.store import intents, permits, plans, schema
from perdure.store.evidence import Record, effect_key, inner, tampered

Wrong = list[tuple[str, str]]
"""(what it is about, what is wrong with it)."""

Key = tuple[str, int, str]


def check_tables(connection: Connection, records: Sequence[Record]) -> list[AuditFinding]:
    """Return rows without a record, records without a row, and rows that contradict their newest record.

    A deleted intent or a permit set back would let an effect start twice; this is where it shows. A job of which a
    content was erased (or changed: the chain's check says so) cannot be compared and is left out.
    """
    readable = [record if record.is_intact else replace(record, body=None) for record in records]
    dark = {record.header.job_id for record in readable if record.header is not None and record.body is None}
    wrong = _wrong_intents(connection, readable, dark) + _wrong_permits(connection, readable, dark)
    wrong += _wrong_plans(connection, readable, dark) + _wrong_decisions(connection, readable)
    wrong += _wrong_cancels(connection, readable)
    return [tampered(about, detail) for about, detail in wrong]


def _wrong_intents(connection: Connection, records: Sequence[Record], dark: set[str]) -> Wrong:
    lit = [record for record in records if record.header is not None and record.header.job_id not in dark]
    begun = {effect_key(record.value()) for record in lit if _is(record, "effect.intent")}
    ends = {
        effect_key(record.value()): str(record.value().get("state")) for record in lit if _is(record, "effect.receipt")
    }
    rows: dict[Key, str] = {}
    wrong: Wrong = []
    for row in intents.list_intents(connection):
        key = (row.application_id, row.index, str(row.direction))
        if row.job_id in dark:
            continue
        rows[key] = row.state
        if row.attempts and key not in begun:
            wrong.append((_effect(key), "it has an intent that no record speaks of"))
        if not _agree(row.state, ends.get(key)):
            wrong.append((_effect(key), f"its row says {row.state!r}, its newest record {ends.get(key, 'nothing')!r}"))
    return wrong + [(_effect(key), "its row was deleted") for key in sorted((begun | ends.keys()) - rows.keys())]


def _agree(state: str, end: str | None) -> bool:
    """An intent has no end yet, or was begun again after ``unknown``; else row and newest receipt say the same."""
    return end in (None, "unknown") if state == "intent" else state == end


def _wrong_permits(connection: Connection, records: Sequence[Record], dark: set[str]) -> Wrong:
    spent = {str(record.value().get("digest")) for record in records if _is(record, "permit.spent")}
    closed = {
        record.value().get("application_id"): record.value().get("state")
        for record in records
        if _is(record, "application.closed")
    }
    rows = {row.digest: row for row in permits.all_permits(connection)}
    wrong: Wrong = [(f"permit {digest[:8]}", "its row was deleted") for digest in sorted(spent - rows.keys())]
    for digest, row in rows.items():
        if row.job_id in dark:
            continue
        if (row.state == "spent") != (digest in spent):
            wrong.append((f"permit {digest[:8]}", f"its row says {row.state!r}, and its records say otherwise"))
        if row.closed != closed.get(row.application_id, ""):
            wrong.append(
                (f"permit {digest[:8]}", f"its row says that it ended as {row.closed!r}, its records otherwise")
            )
    return wrong


def _wrong_plans(connection: Connection, records: Sequence[Record], dark: set[str]) -> Wrong:
    states: dict[str, str] = {}
    for record in records:
        value = record.value()
        if _is(record, "plan.frozen"):
            states[str(inner(value, "plan").get("digest"))] = plans.NOT_OPENED
        elif _is(record, "gate.opened"):
            states[str(value.get("digest"))] = plans.OPEN
        elif _is(record, "gate.closed"):
            states[str(value.get("digest"))] = str(value.get("outcome"))
    rows = {row.digest: row for row in plans.all_plans(connection)}
    wrong: Wrong = [(f"plan {digest[:8]}", "its row was deleted") for digest in sorted(states.keys() - rows.keys())]
    for digest, row in rows.items():
        said = states.get(digest, "nothing")
        superseded = row.state == "superseded" and said == plans.NOT_OPENED
        if row.state != said and not superseded and row.job_id not in dark:
            wrong.append((f"plan {digest[:8]}", f"its row says {row.state!r}, its records {said!r}"))
    return wrong


def _wrong_decisions(connection: Connection, records: Sequence[Record]) -> Wrong:
    kinds = {
        record.position: record for record in records if record.header and record.header.kind.startswith("decision.")
    }
    table = schema.decisions
    rows = {row.position: row.id for row in connection.execute(select(table.c.position, table.c.id))}
    wrong: Wrong = [(f"decision {rows[at]}", "no record speaks of it") for at in sorted(rows.keys() - kinds.keys())]
    for at, record in kinds.items():
        said = inner(record.value(), "decision").get("id")
        if at not in rows:
            wrong.append((f"record {at}", "the row of its decision was deleted"))
        elif record.body is not None and said != rows[at]:
            wrong.append((f"record {at}", f"it holds decision {said}, its row says {rows[at]}"))
    return wrong


def _wrong_cancels(connection: Connection, records: Sequence[Record]) -> Wrong:
    said = {record.header.job_id for record in records if record.header and record.header.kind == "decision.cancel"}
    jobs = schema.jobs
    rows = {row.job_id for row in connection.execute(select(jobs.c.job_id).where(jobs.c.cancelled_by != ""))}
    return [(job_id, "its cancel is in its records or in its row, not in both") for job_id in sorted(said ^ rows)]


def _is(record: Record, kind: str) -> bool:
    """Whether it is a record of that kind whose content can be read."""
    return record.header is not None and record.header.kind == kind and record.body is not None


def _effect(key: Key) -> str:
    return f"effect {key[1] + 1} ({key[2]}) of {key[0]}"
