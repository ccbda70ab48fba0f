"""What a job, a gate and an application write to the ledger, and what they ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from temporalio import activity

from activities.running import in_thread
from perdure.contracts import names
from perdure.contracts.application import Direction
from perdure.contracts.decisions import CloseGateInput, Decision, EndGateInput, GateEnd, GateInput, Weighing, WeighInput
from perdure.contracts.job import (
    Admission,
    AdmitInput,
    Done,
    JobPhase,
    NoteInput,
    RequestsInput,
    RequestsResult,
)
from perdure.contracts.plan import Plan, read_plan
from perdure.effects.base import Blobs
from perdure.errors import Conflict
from perdure.policy.gates import weigh
from perdure.store.ledger import Ledger
from perdure.store.signing import verify

PublicKeys = Callable[[], Mapping[str, bytes]]
"""Reads the public keys of today; a key that was taken away makes its decisions count for nothing."""


class Decisions:
    """Reads decisions whose signatures hold. Everything else in the ledger counts for nothing."""

    def __init__(self, ledger: Ledger, public_keys: PublicKeys) -> None:
        self._ledger = ledger
        self._public_keys = public_keys

    def on_plan(self, digest: str) -> list[Decision]:
        """Verified decisions on one digest, oldest first."""
        return self._verified(digest=digest)

    def on_job(self, job_id: str) -> list[Decision]:
        """Verified decisions of one job, oldest first."""
        return self._verified(job_id=job_id)

    def resolution(self, application_id: str, index: int, direction: Direction) -> Decision | None:
        """A person's verified word on an effect since its fate became unknown; ``None`` while there is none."""
        signed = self._ledger.resolution(application_id, index, direction)
        return signed.decision if signed is not None and verify(signed, self._public_keys()) else None

    def weigh(self, plan: Plan, digest: str, now: datetime) -> Weighing:
        """Weigh what lies in the ledger for this plan."""
        return weigh(plan, digest, self.on_plan(digest), now=now)

    def _verified(self, *, digest: str | None = None, job_id: str | None = None) -> list[Decision]:
        keys = self._public_keys()
        found = self._ledger.decisions(digest=digest, job_id=job_id)
        return [signed.decision for signed in found if verify(signed, keys)]


class LedgerActivities:
    """Thin: each one is idempotent in the ledger by the key its docstring names."""

    def __init__(self, ledger: Ledger, blobs: Blobs, decisions: Decisions) -> None:
        self._ledger = ledger
        self._blobs = blobs
        self._decisions = decisions

    @activity.defn(name=names.ADMIT_JOB)
    async def admit_job(self, request: AdmitInput) -> Admission:
        """Number a job; the same job id gives the same numbers again."""
        return await in_thread(lambda: self._ledger.admit_job(request, at=_now()))

    @activity.defn(name=names.NOTE_JOB)
    async def note_job(self, note: NoteInput) -> Done:
        """Write a job's phase; once per (job, step)."""
        await in_thread(lambda: self._ledger.note_job(note, workflow_id=note.job_id, at=_now()))
        return Done()

    @activity.defn(name=names.OPEN_GATE)
    async def open_gate(self, gate: GateInput) -> Done:
        """Open the gate in the ledger, from when on decisions on its digest are taken; once per gate."""
        await in_thread(lambda: self._open_gate(gate))
        return Done()

    def _open_gate(self, gate: GateInput) -> None:
        now = _now()
        self._ledger.open_gate(gate, at=now)
        note = NoteInput(job_id=gate.job_id, step=0, phase=JobPhase.waiting, summary="")
        self._ledger.note_job(note, workflow_id=gate.gate_id, at=now)

    @activity.defn(name=names.WEIGH_DECISIONS)
    async def weigh_decisions(self, question: WeighInput) -> Weighing:
        """Verify signatures and weigh under the pinned rule. Reads only."""
        return await in_thread(lambda: self._weigh(question))

    def _weigh(self, question: WeighInput) -> Weighing:
        plan = read_plan(question.digest, self._blobs.get(question.ref))
        return self._decisions.weigh(plan, question.digest, _now())

    @activity.defn(name=names.CLOSE_GATE)
    async def close_gate(self, question: EndGateInput) -> GateEnd:
        """Weigh a last time, close, and grant the permit where the rule is satisfied; once per gate."""
        return await in_thread(lambda: self._close_gate(question))

    def _close_gate(self, question: EndGateInput) -> GateEnd:
        plan = read_plan(question.digest, self._blobs.get(question.ref))
        while True:
            weighed = len(self._ledger.decisions(digest=question.digest))
            weighing = self._decisions.weigh(plan, question.digest, _now())
            end = _end_of(question, weighing)
            if end.outcome == "open":
                return end
            closing = CloseGateInput(
                gate_id=question.gate_id,
                job_id=question.job_id,
                digest=question.digest,
                outcome=end.outcome,
                detail=end.detail,
            )
            if self._ledger.plan(question.digest).state == "open":
                try:
                    self._ledger.close_gate(closing, at=_now(), weighed=weighed)
                except Conflict:  # somebody decided meanwhile: whoever was told "recorded" is heard
                    continue
            return self._after_closing(question, plan, end)

    def _after_closing(self, question: EndGateInput, plan: Plan, end: GateEnd) -> GateEnd:
        """The ledger's word on the gate stands, whoever wrote it; a satisfied one has its permit."""
        written = self._ledger.plan(question.digest).state
        if written == "satisfied":
            self._ledger.grant_permit(
                digest=question.digest,
                job_id=question.job_id,
                application_id=names.application_id(question.job_id, plan.envelope.round),
                at=_now(),
            )
        return end if end.outcome == written else GateEnd.model_validate({"outcome": written, "edits": end.edits})

    @activity.defn(name=names.WEIGH_REQUESTS)
    async def weigh_requests(self, question: RequestsInput) -> RequestsResult:
        """Whether a cancel whose signature holds lies in the ledger. Reads only."""
        return await in_thread(lambda: self._weigh_requests(question))

    def _weigh_requests(self, question: RequestsInput) -> RequestsResult:
        cancels = [decision for decision in self._decisions.on_job(question.job_id) if decision.kind == "cancel"]
        return RequestsResult(cancel=bool(cancels), by=cancels[0].by if cancels else "")


def _end_of(question: EndGateInput, weighing: Weighing) -> GateEnd:
    """A cancel ends the gate; else decisions do; else the deadline."""
    if question.proposed == "cancelled":
        return GateEnd(outcome="cancelled", detail=question.detail)
    if weighing.outcome in ("satisfied", "denied", "changes_requested"):
        expired = question.proposed == "expired" and not weighing.by
        outcome = "expired" if expired else weighing.outcome
        detail = _say(outcome, weighing)
        return GateEnd.model_validate({"outcome": outcome, "detail": detail, "edits": weighing.edits})
    if question.proposed == "expired":
        return GateEnd(outcome="expired", detail=", ".join(weighing.missing))
    return GateEnd(outcome="open")


def _say(outcome: str, weighing: Weighing) -> str:
    words = {"satisfied": "approved", "denied": "rejected", "changes_requested": "changes requested"}
    by = f"{words.get(outcome, outcome)} by {', '.join(weighing.by)}" if weighing.by else outcome
    return f"{by}: {weighing.comment}" if weighing.comment else by


def _now() -> datetime:
    return datetime.now(UTC)
