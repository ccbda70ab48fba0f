"""An audit bundle: the evidence of a ledger, or of one job, in one file that can be checked far away and much later.

A zip of ``manifest.json``, ``records.jsonl`` (a record a line, by position), ``plans/<digest>``, ``blobs/<sha256>``.
Whoever checks it brings the public key and the head that the ledger should end in: nothing inside vouches for itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perdure.contracts.application import Receipt
from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.canonical import canonical_bytes
from perdure.contracts.http import AuditFinding, AuditReport
from perdure.contracts.plan import Plan, read_plan
from perdure.errors import Conflict, NotFound, Refused, SetupError, Tampered, UserError
from perdure.store import evidence, plans
from perdure.store.blobs import BlobStore
from perdure.store.chain import Header
from perdure.store.evidence import Record, tampered
from perdure.store.ledger import Ledger
from perdure.store.signing import key_id_of

FORMAT = "perdure.audit/1"
LARGEST_BYTES = 1 << 30
"""No bundle unpacks to more than this: a small file could else fill the memory of who checks it."""

_EPOCH = (1980, 1, 1, 0, 0, 0)


def export_bundle(
    ledger: Ledger, blobs: BlobStore, public_keys: Mapping[str, bytes], out: Path, job_id: str | None = None
) -> str:
    """Write the evidence to a new file and return the head it ends in, to be kept apart from it.

    With ``job_id`` other jobs' records are there without what they say. A ledger that does not verify is not exported.

    Raises:
        Conflict: ``out`` exists.
        Refused: the evidence does not hold; ``perdure audit`` says where.
    """
    with ledger.database.read() as connection:
        records = evidence.read_records(connection)
        known = {row.digest: row.ref for row in plans.all_plans(connection)}
    wrong = evidence.check_chain(records) + evidence.check_signatures(records, public_keys)
    if any(finding.severity in ("gap", "tampered") for finding in wrong):
        raise Refused(f"The ledger does not verify ({wrong[0].about}: {wrong[0].detail}). Run `perdure audit`.")
    if job_id is not None:
        records = evidence.without_others(records, job_id)
        if not any(record.header and record.header.job_id == job_id for record in records):
            raise NotFound(f"The ledger has no records of {job_id!r}.")
    head = evidence.head_of(records)
    manifest = {"format": FORMAT, "records": len(records), "head": head, "job_id": job_id or ""}
    entries = {"manifest.json": canonical_bytes(manifest), "records.jsonl": _lines(records)}
    entries |= _attachments(records, known, blobs)
    _write_zip(out, entries)
    return head


def verify_bundle(path: Path, *, public_key: bytes, expected_head: str) -> AuditReport:
    """Check a bundle with nothing but a public key (32 raw bytes) and a head that both come from elsewhere.

    Never raises for what is inside: everything that does not hold is a finding.

    Raises:
        UserError: the file cannot be read or is no bundle; the key or the head is malformed.
    """
    if len(public_key) != 32 or len(expected_head) != 64:
        raise UserError("Checking a bundle needs a public key of 32 bytes and a head of 64 hexadecimal digits.")
    entries = _read_zip(path)
    records, findings = _records(entries.get("records.jsonl", b""))
    owner = str(_manifest(entries).get("job_id") or "")
    findings += _check_manifest(entries, records, expected_head, owner)
    findings += evidence.check_chain(records, owner=owner)
    keys = {key_id_of(public_key): public_key}
    findings += evidence.check_signatures(records, keys)
    plans_found, plan_findings = _plans(entries, records)
    findings += plan_findings + _check_blobs(entries, records)
    findings += evidence.check_applied(records, keys, plans_found.get, lambda ref: _receipt(entries, ref))
    ok = all(finding.severity in ("ok", "expired", "notice") for finding in findings)
    if ok:
        detail = f"{len(records)} records, no gaps; it holds {owner or 'the whole ledger'}"
        findings.append(AuditFinding(severity="ok", about="bundle", detail=detail))
    return AuditReport(records=len(records), head=evidence.head_of(records), findings=findings, ok=ok)


def _attachments(records: Sequence[Record], known: Mapping[str, BlobRef], blobs: BlobStore) -> dict[str, bytes]:
    entries = {}
    for record in records:
        kind, value = record.header.kind if record.header else "", record.value()
        if kind == "plan.frozen" and value:
            digest = value["plan"]["digest"]
            entries[f"plans/{digest}"] = blobs.get(known[digest])
        elif kind == "effect.receipt" and value:
            ref = BlobRef.model_validate(value["receipt"])
            entries[f"blobs/{ref.sha256}"] = blobs.get(ref)
    return entries


def _lines(records: Sequence[Record]) -> bytes:
    return b"".join(canonical_bytes(_line(record)) + b"\n" for record in records)


def _line(record: Record) -> JsonDict:
    return {
        "position": record.position,
        "event": record.event_hash,
        "prev": record.link_prev,
        "hash": record.link_hash,
        "header": vars(record.header) if record.header else None,
        "salt": record.salt.hex(),
        "body": record.body,
    }


def _records(data: bytes) -> tuple[list[Record], list[AuditFinding]]:
    records: list[Record] = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            records.append(_record(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            return records, [tampered(f"line {number}", f"it cannot be read as a record ({error})")]
    return records, []


def _record(line: Any) -> Record:
    header = line["header"]
    record = Record(
        position=line["position"],
        event_hash=line["event"],
        link_prev=line["prev"],
        link_hash=line["hash"],
        header=None if header is None else Header(**header),
        salt=bytes.fromhex(line["salt"]),
        body=line["body"],
    )
    numbers = [record.position, *([record.header.seq] if record.header else [])]
    texts = [record.event_hash, record.link_prev, record.link_hash, *([] if record.body is None else [record.body])]
    texts += [value for name, value in vars(record.header).items() if name != "seq"] if record.header else []
    if not all(type(number) is int for number in numbers) or not all(type(text) is str for text in texts):
        raise ValueError("a number or text is of another type")
    return record


def _manifest(entries: Mapping[str, bytes]) -> JsonDict:
    try:
        value = json.loads(entries.get("manifest.json", b"{}"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _check_manifest(
    entries: Mapping[str, bytes], records: Sequence[Record], expected_head: str, owner: str
) -> list[AuditFinding]:
    findings = []
    manifest = _manifest(entries)
    if owner and not any(record.header and record.header.job_id == owner for record in records):
        findings.append(tampered("manifest", f"it names {owner}, and no record is that job's"))
    if manifest.get("format") != FORMAT:
        findings.append(tampered("manifest", f"its format is {manifest.get('format')!r}; expected {FORMAT!r}"))
    head = evidence.head_of(records)
    if head != expected_head:
        findings.append(tampered("head", f"the records end in {head[:12]}; expected {expected_head[:12]}"))
    return findings


def _plans(entries: Mapping[str, bytes], records: Sequence[Record]) -> tuple[dict[str, Plan], list[AuditFinding]]:
    found: dict[str, Plan] = {}
    findings = []
    for record in records:
        if record.header is None or record.header.kind != "plan.frozen" or record.body is None:
            continue
        digest = str(evidence.inner(record.value(), "plan").get("digest", ""))
        try:
            found[digest] = read_plan(digest, entries[f"plans/{digest}"])
        except KeyError:
            findings.append(AuditFinding(severity="gap", about=f"plan {digest[:8]}", detail="it is not in the bundle"))
        except (Tampered, ValueError) as error:
            findings.append(tampered(f"plan {digest[:8]}", str(error)))
    return found, findings


def _check_blobs(entries: Mapping[str, bytes], records: Sequence[Record]) -> list[AuditFinding]:
    findings = []
    for record in records:
        if record.header is None or record.header.kind != "effect.receipt" or record.body is None:
            continue
        sha256 = str(evidence.inner(record.value(), "receipt").get("sha256", ""))
        data = entries.get(f"blobs/{sha256}")
        if data is None:
            detail = "its receipt is not in the bundle"
            findings.append(AuditFinding(severity="gap", about=f"record {record.position}", detail=detail))
        elif hashlib.sha256(data).hexdigest() != sha256:
            findings.append(tampered(f"record {record.position}", "its receipt was changed"))
    return findings


def _receipt(entries: Mapping[str, bytes], ref: JsonDict) -> Receipt | None:
    try:
        return Receipt.model_validate_json(entries[f"blobs/{ref['sha256']}"])
    except (KeyError, TypeError, ValidationError):
        return None  # _check_blobs says so


def _write_zip(out: Path, entries: Mapping[str, bytes]) -> None:
    """Write a new file, whole or not at all; the same evidence gives the same bytes."""
    try:
        descriptor, name = tempfile.mkstemp(dir=out.parent, prefix=".bundle-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
                    for entry in sorted(entries):
                        bundle.writestr(zipfile.ZipInfo(entry, _EPOCH), entries[entry], zipfile.ZIP_DEFLATED)
                file.flush()
                os.fsync(file.fileno())
            out.hardlink_to(name)
        finally:
            Path(name).unlink()
    except FileExistsError:
        raise Conflict(f"{out} exists already; name a file that does not. Nothing was written.") from None
    except OSError as error:
        raise SetupError(f"The bundle cannot be written to {out} ({error.strerror}).") from error


def _read_zip(path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as bundle:
            infos = bundle.infolist()
            if len({info.filename for info in infos}) != len(infos):
                raise UserError(f"{path} holds two entries of one name; that is no audit bundle.")
            if sum(info.file_size for info in infos) > LARGEST_BYTES:
                raise UserError(f"{path} unpacks to more than {LARGEST_BYTES >> 20} MB; it is not opened.")
            return {info.filename: bundle.read(info) for info in infos}
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise UserError(f"{path} cannot be read as an audit bundle ({error}).") from error
