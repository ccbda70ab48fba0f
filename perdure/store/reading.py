"""The reading side of the store: reviews, artifacts and who is still missing, from ledger and blobs alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.decisions import Weighing
from perdure.contracts.http import ArtifactView, JobView, Review
from perdure.contracts.job import JobPhase
from perdure.contracts.names import CALL_ROUNDS
from perdure.contracts.plan import Plan, read_plan
from perdure.errors import NotFound, UserError
from perdure.people import delegating
from perdure.policy.gates import GATE_KINDS, weigh
from perdure.policy.people import Today
from perdure.policy.standing import weigh_call
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.plans import OPEN
from perdure.store.review import build_review, stream_difference
from perdure.store.rows import PlanRow
from perdure.store.signing import verify
from perdure.store.turns import TurnReader

MIN_PREFIX = 8
"""Hex digits of a digest that a person must give at least."""


PublicKeys = Callable[[], Mapping[str, bytes]]
"""Reads today's raw Ed25519 keys by key id; what a key signed that was taken away counts for nothing."""


class Reader:
    """Answers questions; writes nothing."""

    def __init__(
        self, ledger: Ledger, blobs: BlobStore, public_keys: PublicKeys, today: Callable[[], Today] = Today
    ) -> None:
        self._today = today
        self._ledger = ledger
        self._blobs = blobs
        self._public_keys = public_keys

    def job(self, ref: str, *, now: datetime) -> JobView:
        """Return a job; while it waits, with who is still needed."""
        return self._with_missing(self._ledger.job(ref), now)

    def review_job(self, ref: str, *, now: datetime, viewer: str) -> Review:
        """Return the review of a job's newest plan. A decision on it names its digest all the same.

        ``viewer``: whoever looks at it; the difference is from the last plan that they decided.

        Raises:
            NotFound: no such job, or it has no plan yet.
        """
        job = self._ledger.job(ref)
        if not job.digest:
            raise NotFound(f"{job.name} has no plan yet (it is {job.phase}). `perdure show {job.number}` follows it.")
        return self._review(self._ledger.plan(job.digest), now, viewer)

    def review_plan(self, prefix: str, *, now: datetime, viewer: str) -> Review:
        """Return the review of the one plan whose digest begins with ``prefix``; see :meth:`find_plan`."""
        return self._review(self.find_plan(prefix), now, viewer)

    def stream_diff(self, digest: str, *, since_previous: bool, viewer: str) -> Iterator[str]:
        """Give a plan's diff, or what differs from the last plan that ``viewer`` decided, in pieces; empty without one.

        The plan is read at once, its files while the pieces are taken. Raises ``NotFound`` or ``Tampered``, also then.
        """
        row = self._ledger.plan(digest)
        plan = self.load_plan(row)
        previous = self.last_decided(row, viewer) if since_previous else ""
        if since_previous and not previous:
            return iter(())
        before = self.load_plan(self._ledger.plan(previous)) if previous else None
        return stream_difference(before, plan, self._blobs)

    def find_plan(self, prefix: str) -> PlanRow:
        """Return the one plan ever made whose digest begins with ``prefix``.

        Raises:
            UserError: too short, no hex, or several plans begin so.
            NotFound: none does.
        """
        text = prefix.lower()
        if len(text) < MIN_PREFIX or set(text) - set("0123456789abcdef"):
            raise UserError(f"{prefix!r} names no plan; expected at least {MIN_PREFIX} hex digits of its digest.")
        found = self._ledger.plans_like(text)
        if not found:
            raise NotFound(f"No plan's digest begins with {text}. `perdure jobs` lists what waits.")
        if len(found) > 1:
            raise UserError(
                f"{len(found)} plans begin with {text}: {', '.join(row.digest for row in found)}. Give more."
            )
        return found[0]

    def load_plan(self, row: PlanRow) -> Plan:
        """Return a plan from its stored bytes, hashed again. Raises ``Tampered`` when they are others."""
        return read_plan(row.digest, self._blobs.get(row.ref))

    def weigh_plan(self, row: PlanRow, plan: Plan, *, now: datetime) -> Weighing:
        """Return what the decisions in the ledger amount to; unsigned ones count for nothing."""
        keys = self._public_keys()
        verified = [one.decision for one in self._ledger.decisions(digest=row.digest) if verify(one, keys)]
        today = self.today()
        if row.state != OPEN:  # what stood when it was decided counts for good, whatever has become of it since
            today = Today(delegations=today.delegations)
        if row.round < CALL_ROUNDS or row.state not in (OPEN, "satisfied"):
            return weigh(plan, row.digest, verified, now=now, today=today)
        thread = plan.envelope.thread
        words = [one.decision for one in self._ledger.standing_words(thread) if verify(one, keys)]
        if row.state == OPEN:
            uses = self._ledger.count_uses(thread)
            return weigh_call(plan, row.digest, verified, words, uses, now=now, today=today)
        used = self._ledger.approvals_used(row.gate_id)
        stood = [one for one in words if one.id in used]
        return weigh_call(plan, row.digest, verified, stood, {}, now=plan.envelope.created_at, today=today)

    def today(self) -> Today:
        """Return people, policies and delegations that hold now."""
        keys = self._public_keys()
        return delegating(self._ledger.delegations(), lambda signed: verify(signed, keys), self._today())

    def last_decided(self, row: PlanRow, viewer: str) -> str:
        """Return the digest of the last plan before this one, of its job, that somebody decided; empty without one."""
        if row.round >= CALL_ROUNDS:  # of a call that was changed: the call as it was
            return self.load_plan(row).envelope.previous
        keys = self._public_keys()
        signed = self._ledger.decisions(job_id=row.job_id)
        words = [one.decision for one in signed if one.decision.by == viewer and verify(one, keys)]
        decided = {word.digest for word in words if word.kind in GATE_KINDS}
        plans = [one for one in self._ledger.job_plans(row.job_id) if one.round < row.round]
        return next((one.digest for one in reversed(plans) if one.digest in decided), "")

    def artifacts(self, job_id: str) -> list[ArtifactView]:
        """Return a job's stored results in the order they were made; a later one of the same name replaces it."""
        found = dict(self._name_artifacts(job_id))
        return [ArtifactView(name=name, ref=ref) for name, ref in found.items()]

    def read_blob(self, job_id: str, ref: BlobRef) -> bytes:
        """Return the bytes of a blob that belongs to the job.

        Raises:
            NotFound: it does not, whether or not such a blob exists.
        """
        if ref not in self._belongings(job_id):
            raise NotFound(f"Blob {ref.sha256[:12]} ({ref.size_bytes} bytes) does not belong to {job_id}.")
        return self._blobs.get(ref)

    def _review(self, row: PlanRow, now: datetime, viewer: str) -> Review:
        plan = self.load_plan(row)
        weighing = self.weigh_plan(row, plan, now=now)
        job = self._ledger.job(row.job_id)
        previous = self.last_decided(row, viewer)
        return build_review(
            plan,
            row.digest,
            self._blobs,
            job=job.model_copy(update={"missing": weighing.missing}) if job.digest == row.digest else job,
            state=row.state,
            weighing=weighing,
            intents=[intent for intent in self._ledger.intents(job_id=row.job_id) if intent.digest == row.digest],
            previous=(previous, self.load_plan(self._ledger.plan(previous))) if previous else None,
        )

    def _with_missing(self, job: JobView, now: datetime) -> JobView:
        if job.phase != JobPhase.waiting or not job.digest:
            return job
        row = self._ledger.plan(job.digest)
        weighing = self.weigh_plan(row, self.load_plan(row), now=now)
        return job.model_copy(update={"missing": weighing.missing})

    def _name_artifacts(self, job_id: str) -> Iterator[tuple[str, BlobRef]]:
        for body in self._stage_bodies(job_id):
            if body.get("result"):
                yield from self._name_result(body)
        for row in self._ledger.job_plans(job_id):
            yield f"plan.{row.round}", row.ref
            for verdict in self.load_plan(row).envelope.verdicts:
                if verdict.log:
                    yield f"verify.{verdict.check}.log", verdict.log
        yield from TurnReader(self._ledger.database).outputs(job_id)
        for intent in self._ledger.intents(job_id=job_id):
            if intent.receipt_ref:
                yield f"receipt.{intent.effect_id}.{intent.direction}", intent.receipt_ref

    def _name_result(self, body: JsonDict) -> Iterator[tuple[str, BlobRef]]:
        """A step's result, and what its command said: a red check leaves no plan that would name its log."""
        name = ".".join(filter(None, (body["stage"], body.get("name"))))
        ref = BlobRef.model_validate(body["result"])
        yield name, ref
        if body["stage"] == "verify" and self._blobs.has(ref) and (log := _log_in(self._blobs.get_json(ref))):
            yield f"{name}.log", log

    def _stage_bodies(self, job_id: str) -> Iterator[JsonDict]:
        after = 0
        while events := self._ledger.events(job_id=job_id, after=after):
            yield from (event.body for event in events if event.kind == "stage" and event.body)
            after = events[-1].position

    def _belongings(self, job_id: str) -> set[BlobRef]:
        """Every blob that a job's evidence names: results, plans with their files and artifacts, receipts."""
        found = {ref for _, ref in self._name_artifacts(job_id)}
        for row in self._ledger.job_plans(job_id):
            found.update(_named_in(self.load_plan(row).model_dump(mode="json")))
        return found


def _log_in(result: Any) -> BlobRef | None:
    """The log that a check's result names; ``None`` where there is none."""
    value = result.get("value") if isinstance(result, dict) else None
    log = value.get("log") if isinstance(value, dict) else None
    return BlobRef.model_validate(log) if log else None


def _named_in(value: Any) -> Iterator[BlobRef]:
    """Every blob reference anywhere in plain JSON."""
    if isinstance(value, dict):
        if value.keys() == BlobRef.model_fields.keys():
            yield BlobRef.model_validate(value)
            return
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _named_in(inner)
