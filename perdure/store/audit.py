"""The ledger compared with itself, its signatures, its blobs, and (through the caller) Temporal and the world."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Literal

from pydantic import ValidationError
from sqlalchemy import Connection, Table, func, select

from perdure.contracts.application import Receipt
from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.http import AuditFinding, AuditReport
from perdure.contracts.names import CALL_ROUNDS
from perdure.contracts.plan import Plan, read_plan
from perdure.errors import NotFound, Tampered
from perdure.store import evidence, intents, permits, plans, schema
from perdure.store.agent_rows import all_agents
from perdure.store.blobs import BlobStore
from perdure.store.bundle import export_bundle, verify_bundle
from perdure.store.chain import GENESIS
from perdure.store.jobs import list_jobs
from perdure.store.ledger import Ledger
from perdure.store.rows import IntentRow, PlanRow
from perdure.store.tables import check_tables

Fate = Literal["open", "closed", "missing"]


def audit(ledger: Ledger, blobs: BlobStore, public_keys: Mapping[str, bytes]) -> AuditReport:
    """Return everything that can be checked without Temporal and the world."""
    findings = verify_chain(ledger) + verify_signatures(ledger, public_keys) + verify_blobs(ledger, blobs)
    findings += verify_applied(ledger, blobs, public_keys)
    return report_of(ledger, findings)


def report_of(ledger: Ledger, findings: list[AuditFinding]) -> AuditReport:
    """Return a report over findings; it is ok when nothing was tampered with or is missing without a reason."""
    with ledger.database.read() as connection:
        records = connection.execute(select(func.count()).select_from(schema.events)).scalar_one()
    ok = all(finding.severity in ("ok", "expired", "notice") for finding in findings)
    return AuditReport(records=records, head=ledger.head(), findings=findings, ok=ok)


def verify_chain(ledger: Ledger, *, expected_head: str = "") -> list[AuditFinding]:
    """Check hashes, links, numbers and contents of every record, and the arbiter's tables against them.

    ``expected_head``: a head noted down before; the ledger must still hold it. Without one, a ledger whose newest
    records were cut off and whose tables were cut to match cannot be told from one that never had them.
    """
    with ledger.database.read() as connection:
        records = evidence.read_records(connection)
        findings = evidence.check_chain(records) + _stray_rows(connection) + check_tables(connection, records)
    heads = {GENESIS} | {record.link_hash for record in records}
    if expected_head and expected_head not in heads:
        detail = f"head {expected_head[:12]} is not in it any more: records were cut off or replaced"
        findings.append(AuditFinding(severity="tampered", about="chain", detail=detail))
    return findings + _all_well(findings, "chain", f"{len(records)} records, no gaps")


def verify_signatures(ledger: Ledger, public_keys: Mapping[str, bytes]) -> list[AuditFinding]:
    """Check the signature on every recorded decision, and that the head it names was the ledger's before it."""
    with ledger.database.read() as connection:
        records = evidence.read_records(connection)
    findings = evidence.check_signatures(records, public_keys)
    count = sum(1 for record in records if record.header and record.header.kind.startswith("decision."))
    return findings + _all_well(findings, "signatures", f"{count} decisions")


def verify_blobs(ledger: Ledger, blobs: BlobStore) -> list[AuditFinding]:
    """Check that plans hash to their digests, and that every blob that the ledger names is there and unchanged."""
    findings: list[AuditFinding] = []
    count = 0
    with ledger.database.read() as connection:
        named = list(_named_blobs(connection))
    for about, ref, digest in named:
        count += 1
        findings += _check_blob(blobs, about, ref, digest)
    return findings + _all_well(findings, "blobs", f"{count} blobs that the ledger names")


def verify_applied(ledger: Ledger, blobs: BlobStore, public_keys: Mapping[str, bytes]) -> list[AuditFinding]:
    """Check that what began was approved by people whose signatures hold, and that receipts say what plans say."""
    with ledger.database.read() as connection:
        records = evidence.read_records(connection)
        known = {row.digest: row for row in plans.all_plans(connection)}

    @cache
    def find_plan(digest: str) -> Plan | None:
        return _plan_in(blobs, known[digest]) if digest in known else None

    def find_receipt(ref: JsonDict) -> Receipt | None:
        return _receipt_in(blobs, ref)

    findings = evidence.check_applied(records, public_keys, find_plan, find_receipt)
    return findings + _all_well(findings, "effects", "what was applied is what was approved")


def compare_history(
    ledger: Ledger,
    describe: Callable[[str], Fate],
    archived: Callable[[str], bool],
    now: datetime,
    retention: timedelta,
    confirm: Callable[[str], Fate] | None = None,
) -> list[AuditFinding]:
    """Compare jobs, gates and applications with Temporal's executions.

    ``describe`` takes a workflow id; ``archived`` says whether its history was exported. A missing execution that ended
    longer than ``retention`` ago and is archived is ``expired``; any other missing one is a ``gap``. ``confirm`` is
    asked before a gap is named, where ``describe`` may be a moment behind.
    """
    findings: list[AuditFinding] = []
    finding: AuditFinding | None = None

    def compare(workflow_id: str, is_over: bool, changed_at: datetime, fate: Fate) -> AuditFinding | None:
        if fate == "missing":
            return _missing(workflow_id, is_over, changed_at, archived, now, retention)
        if is_over or fate != "closed":
            return None
        detail = "it has ended in Temporal and the ledger says that it goes on"
        return AuditFinding(severity="gap", about=workflow_id, detail=detail)

    with ledger.database.read() as connection:
        executions = list(_executions(connection))
    for workflow_id, is_over, changed_at in executions:
        for ask in filter(None, (describe, confirm)):
            finding = compare(workflow_id, is_over, changed_at, ask(workflow_id))
            if finding is None or finding.severity != "gap":
                break
        findings += [finding] if finding else []
    return findings + _all_well(findings, "history", f"{len(executions)} executions")


def compare_world(ledger: Ledger, look: Callable[[IntentRow], str]) -> list[AuditFinding]:
    """Compare what was done, and not taken back since, with the world.

    ``look`` returns what is not as the effect left it, in one sentence; empty when all is. The world may have moved on
    for good reasons: a difference is a ``gap`` to be looked at, never ``tampered``.
    """
    rows = ledger.intents()
    undone = {(row.application_id, row.index) for row in rows if row.direction == "undo" and row.state == "done"}
    standing = [
        row
        for row in rows
        if row.direction == "do" and row.state == "done" and (row.application_id, row.index) not in undone
    ]
    findings = []
    for row in standing:
        if difference := look(row):
            about = f"effect {row.index + 1} ({row.kind}) of {row.application_id}"
            findings.append(AuditFinding(severity="gap", about=about, detail=difference))
    return findings + _all_well(findings, "world", f"{len(standing)} effects stand")


def _all_well(findings: list[AuditFinding], about: str, detail: str) -> list[AuditFinding]:
    """One line that says what was looked at when nothing was wrong with it."""
    if any(finding.severity in ("gap", "tampered") for finding in findings):
        return []
    return [AuditFinding(severity="ok", about=about, detail=detail)]


def _stray_rows(connection: Connection) -> list[AuditFinding]:
    return [
        AuditFinding(severity="tampered", about=f"record {position}", detail=f"it is in {table.name} and in no event")
        for table in (schema.chain, schema.contents)
        for position in _without_event(connection, table)
    ]


def _without_event(connection: Connection, table: Table) -> list[int]:
    known = select(schema.events.c.position)
    return list(connection.execute(select(table.c.position).where(table.c.position.not_in(known))).scalars())


def _named_blobs(connection: Connection) -> Iterator[tuple[str, BlobRef, str]]:
    """(what it is, where it lies, plan digest or empty) of every blob that must be there."""
    for job in connection.execute(select(schema.jobs).order_by(schema.jobs.c.number)):
        yield f"spec of job {job.number}", BlobRef(sha256=job.spec_sha256, size_bytes=job.spec_size), ""
    for plan in plans.all_plans(connection):
        yield f"plan {plan.digest[:8]}", plan.ref, plan.digest
    for row in intents.list_intents(connection):
        if row.receipt_ref is not None:
            yield f"receipt of effect {row.index + 1} ({row.direction}) of {row.application_id}", row.receipt_ref, ""
    for record in evidence.read_records(connection):
        if record.header is not None and record.header.kind == "stage" and record.value().get("result"):
            about = f"result {record.value().get('name', '')!r} of {record.header.job_id}"
            yield about, BlobRef.model_validate(record.value()["result"]), ""


def _check_blob(blobs: BlobStore, about: str, ref: BlobRef, digest: str) -> list[AuditFinding]:
    try:
        data = blobs.get(ref)
        if digest:
            read_plan(digest, data)
    except NotFound as error:
        return [AuditFinding(severity="gap", about=about, detail=error.message)]
    except Tampered as error:
        return [AuditFinding(severity="tampered", about=about, detail=error.message)]
    return []


def _plan_in(blobs: BlobStore, row: PlanRow) -> Plan | None:
    try:
        return read_plan(row.digest, blobs.get(row.ref))
    except (NotFound, Tampered):
        return None  # verify_blobs says so


def _receipt_in(blobs: BlobStore, ref: JsonDict) -> Receipt | None:
    try:
        return Receipt.model_validate_json(blobs.get(BlobRef.model_validate(ref)))
    except (NotFound, Tampered, ValidationError):
        return None  # verify_blobs says so


def _executions(connection: Connection) -> Iterator[tuple[str, bool, datetime]]:
    """(workflow id, whether it must be over, when its job changed last) of all that Temporal should know."""
    jobs = {job.job_id: job for job in list_jobs(connection, thread=None, open_only=False, limit=1_000_000)}
    for job in jobs.values():
        yield job.job_id, job.phase.is_final, job.updated_at
    for plan in plans.all_plans(connection):
        if plan.gate_id and plan.round < CALL_ROUNDS:  # a call's gate is its agent, see below
            yield plan.gate_id, plan.state != plans.OPEN, jobs[plan.job_id].updated_at
    for permit in permits.all_permits(connection):
        if permit.state == "spent" and not (permit.application_id or "").startswith("agent/"):
            yield permit.application_id, bool(permit.closed), jobs[permit.job_id].updated_at

    for agent in all_agents(connection):
        yield agent.agent_id, agent.end is not None, jobs[agent.job_id].updated_at


def _missing(
    workflow_id: str,
    is_over: bool,
    changed_at: datetime,
    archived: Callable[[str], bool],
    now: datetime,
    retention: timedelta,
) -> AuditFinding:
    if not is_over:
        detail = "the ledger says that it goes on, and Temporal does not know it"
    elif archived(workflow_id):
        return AuditFinding(severity="expired", about=workflow_id, detail="its history is archived")
    elif now - changed_at > retention:
        detail = f"its history is past the retention of {retention.days} days and was not archived"
    else:
        detail = f"its history should be there for {retention.days} days and is not"
    return AuditFinding(severity="gap", about=workflow_id, detail=detail)


__all__ = [
    "audit",
    "compare_history",
    "compare_world",
    "export_bundle",
    "report_of",
    "verify_applied",
    "verify_blobs",
    "verify_bundle",
    "verify_chain",
    "verify_signatures",
]
