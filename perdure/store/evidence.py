"""Checking records: the same checks for a ledger and for an exported bundle. Nothing here trusts what it reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, select

from perdure.contracts.application import Receipt
from perdure.contracts.base import JsonDict
from perdure.contracts.decisions import SignedDecision
from perdure.contracts.http import AuditFinding
from perdure.contracts.names import JobId
from perdure.contracts.plan import Plan
from perdure.policy.gates import weigh
from perdure.policy.people import Today
from perdure.policy.standing import STANDING_KINDS
from perdure.store import schema
from perdure.store.approvals import USED
from perdure.store.chain import GENESIS, Header, content_hash, link_hash, time_of
from perdure.store.events import INSTALLATION
from perdure.store.signing import verify
from perdure.store.standing_uses import StandingUses

ERASED = "thread.erased"
_STANDING = frozenset(f"decision.{kind}" for kind in STANDING_KINDS)


@dataclass(frozen=True)
class Record:
    """One record as stored, unchecked."""

    position: int
    event_hash: str
    """What the global chain says the record's hash is; empty when its link is missing."""
    link_prev: str
    link_hash: str
    header: Header | None
    """``None``: it is missing."""
    salt: bytes = b""
    body: str | None = None
    """``None``: erased, or left out of a bundle."""

    @property
    def is_intact(self) -> bool:
        """Whether the body is there and is the one whose hash the header holds."""
        if self.header is None or self.body is None:
            return False
        return content_hash(self.salt, self.body.encode("utf-8", "replace")) == self.header.content_hash

    def value(self) -> JsonDict:
        """Return the body; empty when it is gone or no JSON object. Its hash is checked elsewhere."""
        try:
            value = json.loads(self.body or "{}")
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


def read_records(connection: Connection) -> list[Record]:
    """Return every record of a ledger, by position."""
    events, chain, contents = schema.events, schema.chain, schema.contents
    query = (
        select(events, contents.c.salt, contents.c.body, chain.c.event_hash)
        .add_columns(chain.c.prev.label("link_prev"), chain.c.hash.label("link_hash"))
        .outerjoin(chain, chain.c.position == events.c.position)
        .outerjoin(contents, contents.c.position == events.c.position)
        .order_by(events.c.position)
    )
    names = list(Header.__dataclass_fields__)
    records = []
    for row in connection.execute(query).mappings():
        values: dict[str, Any] = {name: "" if row[name] is None else row[name] for name in names}
        records.append(
            Record(
                position=row["position"],
                event_hash=row["event_hash"] or "",
                link_prev=row["link_prev"] or "",
                link_hash=row["link_hash"] or "",
                header=Header(**values),
                salt=bytes(row["salt"] or b""),
                body=row["body"],
            )
        )
    return records


def check_chain(records: Sequence[Record], *, owner: str = "") -> list[AuditFinding]:
    """Recompute every hash, link, number and content; return what does not match. Empty when all does.

    ``owner``: the one job whose bodies are here; the others were left out.
    """
    findings: list[AuditFinding] = []
    head, expected = GENESIS, 1
    ends: dict[str, tuple[int, str]] = {}
    for record in records:
        where = f"record {record.position}"
        if record.position != expected:
            findings.append(tampered(where, f"records {expected} to {record.position - 1} are missing"))
        findings += [tampered(where, wrong) for wrong in _wrong_link(record, head)]
        if record.header is not None:
            findings += [tampered(where, wrong) for wrong in _wrong_header(record, ends)]
            ends[record.header.thread] = (record.header.seq, record.event_hash)
        else:
            findings.append(tampered(where, "its header is missing"))
        head, expected = record.link_hash, record.position + 1
    return findings + _check_contents(records, owner)


def check_signatures(records: Sequence[Record], public_keys: Mapping[str, bytes]) -> list[AuditFinding]:
    """Return decisions that are not signed by a known key, not on their own record, or that name a head never seen."""
    findings: list[AuditFinding] = []
    heads = {GENESIS}
    for record in records:
        if record.header is not None and record.header.kind.startswith("decision.") and record.body is not None:
            where = f"record {record.position}"
            findings += [tampered(where, why) for why in _wrong_decision(record, public_keys, heads)]
        heads.add(record.link_hash)
    return findings


def check_applied(
    records: Sequence[Record],
    public_keys: Mapping[str, bytes],
    find_plan: Callable[[str], Plan | None],
    find_receipt: Callable[[JsonDict], Receipt | None],
) -> list[AuditFinding]:
    """Return effects that began without an approval that counts, or did something else than the plan says.

    ``find_plan`` takes a digest, ``find_receipt`` a ``BlobRef`` as JSON; ``None``: not there (reported by others).
    """
    findings: list[AuditFinding] = []
    signed: list[SignedDecision] = []
    uses = StandingUses()
    begun: set[tuple[str, int, str]] = set()
    for record in records:
        kind = record.header.kind if record.header else ""
        value = record.value()
        if kind.startswith("decision."):
            signed += [decision for decision in [_decision(record)] if decision and verify(decision, public_keys)]
        elif kind == USED and record.header is not None:
            uses.note(record.header, value, [one.decision for one in signed], find_plan)
        elif kind == "permit.spent" and str(value.get("digest", "")) not in uses.satisfied:
            findings += _check_approval(record, value, signed, find_plan)
        elif kind == "effect.intent":
            begun.add(effect_key(value))
        elif kind == "effect.receipt":
            findings += _check_receipt(record, value, begun, find_plan, find_receipt)
    return findings


def without_others(records: Sequence[Record], job_id: str) -> list[Record]:
    """Return all records, with the bodies of one job (and of erasures) only.

    Every header stays: were those of other jobs left out, a record of this one could be hidden among them.
    """
    return [record if _may_show(record, job_id) else replace(record, salt=b"", body=None) for record in records]


def inner(value: JsonDict, name: str) -> JsonDict:
    """Return an object inside a body; empty when it is absent or no object."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def head_of(records: Sequence[Record]) -> str:
    """Return the hash of the newest link; ``GENESIS`` when there is none."""
    return records[-1].link_hash if records else GENESIS


def _may_show(record: Record, job_id: str) -> bool:
    """Also what stands approved in the job's thread: its calls may rest on it."""
    header = record.header
    if header is None:
        return False
    stands = header.kind in _STANDING and header.thread == JobId.parse(job_id).thread
    return header.job_id == job_id or header.kind == ERASED or stands


def _check_contents(records: Sequence[Record], owner: str) -> list[AuditFinding]:
    """Contents that were changed, and those that are gone: erased on record, or without a reason."""
    findings: list[AuditFinding] = []
    erasures = _erasures(records)
    gone: dict[str, int] = {}
    for record in records:
        header = record.header
        if header is None:
            continue
        where = f"record {record.position}"
        if record.body is not None:
            if not record.is_intact:
                findings.append(tampered(where, f"the content of {header.kind!r} was changed"))
        elif record.position < erasures.get(header.thread, 0):
            gone[header.thread] = gone.get(header.thread, 0) + 1
        elif not owner or header.job_id == owner:
            detail = "its content is gone, and no erasure says so"
            findings.append(AuditFinding(severity="gap", about=where, detail=detail))
    return findings + [
        AuditFinding(severity="expired", about=f"thread {thread}", detail=f"{count} contents were erased on record")
        for thread, count in sorted(gone.items())
    ]


def _wrong_link(record: Record, head: str) -> list[str]:
    if not record.link_hash:
        return ["its link in the global chain is missing"]
    wrong = []
    if record.link_prev != head:
        wrong.append("the global chain is broken before it")
    try:
        found = link_hash(record.position, record.link_prev, record.event_hash)
    except ValueError:
        found = ""
    if found != record.link_hash:
        wrong.append("its link in the global chain was changed")
    return wrong


def _wrong_header(record: Record, ends: dict[str, tuple[int, str]]) -> list[str]:
    header = record.header
    assert header is not None  # check_chain asks only for records with one
    try:
        found = header.hash()
    except ValueError:
        found = ""
    wrong = []
    if found != record.event_hash:
        wrong.append(f"its header ({header.kind!r} by {header.actor!r}) was changed")
    seq, prev = ends.get(header.thread, (0, GENESIS))
    if (header.seq, header.prev) != (seq + 1, prev):
        wrong.append(f"thread {header.thread!r} is broken before it: number {header.seq} after {seq}")
    return wrong


def _erasures(records: Sequence[Record]) -> dict[str, int]:
    """Position of the newest record of each thread's erasure, by thread."""
    found = {}
    for record in records:
        if record.header is not None and (record.header.thread, record.header.kind) == (INSTALLATION, ERASED):
            found[str(record.value().get("thread", ""))] = record.position
    return found


def _decision(record: Record) -> SignedDecision | None:
    try:
        return SignedDecision.model_validate(record.value())
    except ValidationError:
        return None


def _wrong_decision(record: Record, public_keys: Mapping[str, bytes], heads: set[str]) -> list[str]:
    signed, header = _decision(record), record.header
    if signed is None or header is None:
        return ["it holds no signed decision"]
    decision = signed.decision
    wrong = []
    if not verify(signed, public_keys):
        wrong.append(f"the signature on decision {decision.id} by {decision.by} does not hold (key {signed.key_id})")
    if (header.kind, header.actor) != (f"decision.{decision.kind}", decision.by):
        wrong.append(
            f"decision {decision.id} ({decision.kind} by {decision.by}) lies under {header.kind!r} by {header.actor!r}"
        )
    if decision.head not in heads:
        wrong.append(
            f"decision {decision.id} names head {decision.head[:12]}, which this ledger did not have before it"
        )
    return wrong


def _check_approval(
    record: Record, value: JsonDict, signed: list[SignedDecision], find_plan: Callable[[str], Plan | None]
) -> list[AuditFinding]:
    digest = str(value.get("digest", ""))
    plan = find_plan(digest)
    if plan is None or record.header is None:
        return []
    try:
        spent_at = time_of(record.header.at)
    except ValueError:
        return [tampered(f"record {record.position}", f"{record.header.at!r} is no time")]
    words = [one.decision for one in signed]
    # People and policies of then are in no record: the pinned rule is the least that had to be satisfied.
    today = Today(delegations=[word for word in words if word.kind in ("delegate", "undelegate")])
    weighing = weigh(plan, digest, words, now=spent_at, today=today)
    if weighing.broken_glass:
        said = f"the glass was broken by {weighing.broken_glass}"
        return [AuditFinding(severity="notice", about=f"plan {digest[:8]}", detail=said)]
    if weighing.outcome == "satisfied":
        return []
    why = ", ".join(weighing.missing) or "nobody more"
    return [
        tampered(
            f"plan {digest[:8]}", f"it was applied although its gate amounts to {weighing.outcome!r} (missing: {why})"
        )
    ]


def _check_receipt(
    record: Record,
    value: JsonDict,
    begun: set[tuple[str, int, str]],
    find_plan: Callable[[str], Plan | None],
    find_receipt: Callable[[JsonDict], Receipt | None],
) -> list[AuditFinding]:
    key = effect_key(value)
    about = f"effect {key[1] + 1} ({key[2]}) of {key[0]}"
    if value.get("state") in ("done", "failed", "unknown") and key not in begun:
        return [tampered(about, f"record {record.position} says how it ended, and no record says that it began")]
    plan, receipt = find_plan(str(value.get("digest", ""))), find_receipt(inner(value, "receipt"))
    if plan is None or receipt is None:
        return []
    said = (value.get("application_id"), value.get("index"), value.get("direction"), value.get("state"))
    if (receipt.application_id, receipt.index, receipt.direction, receipt.state) != said:
        return [tampered(about, "its receipt is another effect's, or says that it ended otherwise")]
    if receipt.state != "done" or receipt.body == _planned_body(plan, receipt):
        return []
    return [tampered(about, "its receipt says that something else was done than the plan says")]


def _planned_body(plan: Plan, receipt: Receipt) -> JsonDict | None:
    if not 0 <= receipt.index < len(plan.effects):
        return None
    effect = plan.effects[receipt.index]
    return effect.body if receipt.direction == "do" else effect.inverse.body


def effect_key(value: JsonDict) -> tuple[str, int, str]:
    """Return (application, index, direction) of a record about an effect; index -1 when it has none."""
    index = value.get("index")
    return str(value.get("application_id")), index if isinstance(index, int) else -1, str(value.get("direction"))


def tampered(about: str, detail: str) -> AuditFinding:
    """Return the finding that something is not what it was."""
    return AuditFinding(severity="tampered", about=about, detail=detail)
