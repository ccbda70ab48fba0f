"""What a job, a gate and an application write to the ledger, and what they ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from temporalio import activity

from activities.running import in_thread
from perdure.contracts import names
from perdure.contracts.application import Direction
from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import (
    CloseGateInput,
    Decision,
    GateEnd,
    GateInput,
    GateOpened,
    SignedDecision,
    Weighing,
    WeighInput,
)
from perdure.contracts.job import (
    Admission,
    AdmitInput,
    Done,
    FoundJob,
    JobPhase,
    JobSpec,
    LostJob,
    NoteInput,
    RequestsInput,
    RequestsResult,
)
from perdure.contracts.plan import Plan, read_plan
from perdure.effects.base import Blobs
from perdure.errors import Conflict, NotFound, Refused
from perdure.people import delegating
from perdure.policy.gates import weigh
from perdure.policy.people import Today
from perdure.policy.standing import weigh_call
from perdure.store.approvals import ApprovalGone
from perdure.store.ledger import Ledger
from perdure.store.plans import NOT_OPENED, OPEN
from perdure.store.rows import PlanRow
from perdure.store.signing import verify

PublicKeys = Callable[[], Mapping[str, bytes]]
"""Reads the public keys of today; a key that was taken away makes its decisions count for nothing."""


class Decisions:
    """Reads decisions whose signatures hold. Everything else in the ledger counts for nothing."""

    def __init__(self, ledger: Ledger, public_keys: PublicKeys, today: Callable[[], Today] = Today) -> None:
        self._today = today
        self._ledger = ledger
        self._public_keys = public_keys

    def on_plan(self, digest: str) -> list[Decision]:
        """Verified decisions on one digest, oldest first."""
        return self._verified(self._ledger.decisions(digest=digest))

    def on_job(self, job_id: str) -> list[Decision]:
        """Verified decisions of one job, oldest first."""
        return self._verified(self._ledger.decisions(job_id=job_id))

    def one(self, decision_id: str) -> Decision | None:
        """The decision of that id, when its signature holds."""
        signed = self._ledger.decision(decision_id)
        return next(iter(self._verified([signed])), None) if signed is not None else None

    def resolution(self, application_id: str, index: int, direction: Direction) -> Decision | None:
        """A person's verified word on an effect since its fate became unknown; ``None`` while there is none."""
        signed = self._ledger.resolution(application_id, index, direction)
        return signed.decision if signed is not None and verify(signed, self._public_keys()) else None

    def may_go_on(self, digest: str, index: int) -> bool:
        """Whether a person has said go on before one effect of a plan, verified."""
        return any(word.kind == "go_on" and word.effect == index for word in self.on_plan(digest))

    def cancel(self, job_id: str) -> Decision | None:
        """A person's verified word that a job is to stop."""
        return next((decision for decision in self.on_job(job_id) if decision.kind == "cancel"), None)

    def cancelled_by(self, job_id: str) -> str:
        """Who cancelled a job, and why; empty while nobody did."""
        found = self.cancel(job_id)
        return _who(found) if found else ""

    def weigh(self, plan: Plan, digest: str, now: datetime) -> Weighing:
        """Weigh what lies in the ledger for this plan; for a call of an agent with what stands approved beforehand."""
        return self.weigh_these(self._ledger.decisions(digest=digest), plan, digest, now)

    def weigh_these(self, signed: Sequence[SignedDecision], plan: Plan, digest: str, now: datetime) -> Weighing:
        """Weigh decisions that were read before, under the people, policies and delegations of now."""
        keys = self._public_keys()
        today = delegating(self._ledger.delegations(), lambda word: verify(word, keys), self._today())
        if plan.envelope.round < names.CALL_ROUNDS:
            return weigh(plan, digest, self._verified(signed), now=now, today=today)
        thread = plan.envelope.thread
        words = self._verified(self._ledger.standing_words(thread))
        uses = self._ledger.count_uses(thread) if words else {}
        return weigh_call(plan, digest, self._verified(signed), words, uses, now=now, today=today)

    def _verified(self, found: Sequence[SignedDecision]) -> list[Decision]:
        keys = self._public_keys() if found else {}
        return [signed.decision for signed in found if verify(signed, keys)]


class LedgerActivities:
    """Thin: each one is idempotent in the ledger by the key its docstring names."""

    def __init__(
        self,
        ledger: Ledger,
        blobs: Blobs,
        decisions: Decisions,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._now = now
        self._ledger = ledger
        self._blobs = blobs
        self._decisions = decisions

    @activity.defn(name=names.ADMIT_JOB)
    async def admit_job(self, request: AdmitInput) -> Admission:
        """Number a job that a front door was asked for; the same job id gives the same numbers again."""
        return await in_thread(lambda: self._admit(request))

    def _admit(self, request: AdmitInput) -> Admission:
        try:
            self._ledger.job(request.job_id)
        except NotFound:
            if not self._ledger.was_requested(request):
                raise Refused(f"Nobody asked Perdure's API for {request.job_id}. Nothing was admitted.") from None
        return self._ledger.admit_job(request, at=self._now())

    @activity.defn(name=names.NOTE_JOB)
    async def note_job(self, note: NoteInput) -> Done:
        """Write a job's phase; once per (job or application, step)."""
        await in_thread(lambda: self._note_job(note))
        return Done()

    def _note_job(self, note: NoteInput) -> None:
        said_by = note.said_by or note.job_id
        if names.job_of(said_by) != note.job_id:
            raise Refused(f"{said_by} has nothing to say about {note.job_id}. Nothing was recorded.")
        if note.said_by and not self._is_at_work(note.said_by):
            return
        if note.phase is JobPhase.done and not self._is_done(note.job_id):
            raise Refused(f"{note.job_id} is not done: the ledger knows of no plan of it that was applied.")
        self._ledger.note_job(note, workflow_id=said_by, at=self._now())

    @activity.defn(name=names.READ_JOB)
    async def read_job(self, question: LostJob) -> FoundJob:
        """Where a job stands, to start it again when its workflow is lost. Reads only."""
        return await in_thread(lambda: self._read_job(question.job_id))

    def _read_job(self, job_id: str) -> FoundJob:
        state = self._ledger.job_state(job_id)
        if state is None:
            return FoundJob()
        changed = {plan.digest for plan in self._ledger.job_plans(job_id) if plan.state == "changes_requested"}
        words = [word for word in self._decisions.on_job(job_id) if word.digest in changed and word.edits]
        edits = [word.edits for word in words if word.kind == "request_changes"]
        return FoundJob(state=state.model_copy(update={"edits": edits}))

    def _is_at_work(self, said_by: str) -> bool:
        """Whether an application has begun anything and has not ended: else it has nothing to say."""
        application = said_by.removesuffix("/undo")
        has_begun = bool(self._ledger.intents(application_id=application))
        return has_begun and self._ledger.standing(application).state in ("open", "drift")

    def _is_done(self, job_id: str) -> bool:
        """Whether the newest plan of a job was applied to its end, or was all that was asked for."""
        plan = self._ledger.job_plans(job_id)[-1]
        permit = self._ledger.permit(plan.digest)
        if permit is not None:
            return permit.closed == "applied"
        return plan.state == NOT_OPENED and self._spec_of(job_id).plan_only

    def _spec_of(self, job_id: str) -> JobSpec:
        admitted = next(event for event in self._ledger.events(job_id=job_id) if event.kind == "job.admitted")
        return JobSpec.model_validate_json(self._blobs.get(BlobRef.model_validate(admitted.body["spec"])))

    @activity.defn(name=names.OPEN_GATE)
    async def open_gate(self, gate: GateInput) -> GateOpened:
        """Open the gate in the ledger, from when on decisions on its digest are taken; once per gate.

        Answers ``again`` when it was opened before, and which gates of earlier fires it has closed.
        """
        return await in_thread(lambda: self._open_gate(gate))

    def _open_gate(self, gate: GateInput) -> GateOpened:
        now = self._now()
        again = self._ledger.plan(gate.digest).gate_id == gate.gate_id
        replaced = self._ledger.open_gate(gate, at=now)
        note = NoteInput(job_id=gate.job_id, step=0, phase=JobPhase.waiting, summary="")
        self._ledger.note_job(note, workflow_id=gate.gate_id, at=now)
        return GateOpened(state="again" if again else "", replaced=replaced)

    @activity.defn(name=names.CLOSE_GATE)
    async def close_gate(self, question: WeighInput) -> GateEnd:
        """Weigh what lies in the ledger; close where that decides, granting the permit. Once per gate."""
        return await in_thread(lambda: self.end_gate(question))

    def end_gate(self, question: WeighInput) -> GateEnd:
        """See :meth:`close_gate`; for whoever is in a thread of its own already."""
        plan = read_plan(question.digest, self._blobs.get(question.ref))
        while True:
            signed = self._ledger.decisions(digest=question.digest)
            weighing = self._decisions.weigh_these(signed, plan, question.digest, self._now())
            row = self._ledger.plan(question.digest)
            if row.state != OPEN:
                return self._end_by_ledger(row, weighing)
            cancel = self._cancel_of(question.job_id) if question.may_be_cancelled else None
            end = _end_of(weighing, cancel)
            if end.outcome == "open":
                return end
            try:
                self._ledger.close_gate(_closing(question, plan, end), at=self._now(), weighed=len(signed))
            except ApprovalGone:
                continue  # taken back or used up meanwhile, as the next weighing sees
            except Conflict:
                if len(self._ledger.decisions(digest=question.digest)) == len(signed):
                    raise
                continue  # somebody decided meanwhile: whoever was told "recorded" is heard
            return end

    @activity.defn(name=names.READ_GATE)
    async def read_gate(self, question: WeighInput) -> GateEnd:
        """How a gate ended, by the ledger: ``open`` while it has not or has no permit yet. Reads only."""
        return await in_thread(lambda: self._read_gate(question))

    def _read_gate(self, question: WeighInput) -> GateEnd:
        row = self._ledger.plan(question.digest)
        if row.state in (NOT_OPENED, OPEN):
            return GateEnd(outcome="open")
        weighing = None
        if row.state == "changes_requested":
            plan = read_plan(question.digest, self._blobs.get(question.ref))
            weighing = self._decisions.weigh(plan, question.digest, self._now())
        return self._end_by_ledger(row, weighing)

    def _end_by_ledger(self, row: PlanRow, weighing: Weighing | None) -> GateEnd:
        """The ledger's word on the gate stands, whoever wrote it."""
        edits = weighing.edits if weighing is not None and row.state == "changes_requested" else None
        detail = self._ledger.gate_detail(row.digest)
        return GateEnd.model_validate({"outcome": row.state, "detail": detail, "edits": edits, "weighing": weighing})

    def _cancel_of(self, job_id: str) -> Decision | None:
        return self._decisions.cancel(job_id)

    @activity.defn(name=names.WEIGH_REQUESTS)
    async def weigh_requests(self, question: RequestsInput) -> RequestsResult:
        """Whether a cancel whose signature holds lies in the ledger. Reads only."""
        return await in_thread(lambda: self._weigh_requests(question))

    def _weigh_requests(self, question: RequestsInput) -> RequestsResult:
        cancel = self._cancel_of(question.job_id)
        return RequestsResult(cancel=cancel is not None, by=_who(cancel) if cancel else "")


def _end_of(weighing: Weighing, cancel: Decision | None) -> GateEnd:
    """A signed cancel ends the gate; else decisions do; else the deadline, when it has passed."""
    if cancel is not None:
        return GateEnd(outcome="cancelled", detail=f"cancelled by {_who(cancel)}", weighing=weighing)
    if weighing.outcome not in ("satisfied", "denied", "changes_requested"):
        return GateEnd(outcome="open", weighing=weighing)
    outcome = weighing.outcome if weighing.by else "expired"  # denied by nobody: too few by the deadline
    about = {"outcome": outcome, "detail": _say(outcome, weighing), "edits": weighing.edits, "weighing": weighing}
    return GateEnd.model_validate(about)


def _closing(question: WeighInput, plan: Plan, end: GateEnd) -> CloseGateInput:
    about = {"gate_id": question.gate_id, "job_id": question.job_id, "digest": question.digest}
    application = _application_of(question, plan) if end.outcome == "satisfied" else ""
    standing = end.weighing.standing if end.weighing and end.outcome == "satisfied" else []
    said = {"outcome": end.outcome, "detail": end.detail, "application_id": application, "standing": standing}
    return CloseGateInput.model_validate({**about, **said})


def _application_of(question: WeighInput, plan: Plan) -> str:
    """Who may spend the permit: the round's application; for a single call of an agent its own gate's name."""
    if plan.envelope.round >= names.CALL_ROUNDS:
        return question.gate_id
    return names.application_id(question.job_id, plan.envelope.round)


def _who(decision: Decision) -> str:
    return f"{decision.by}: {decision.comment}"[:300] if decision.comment else decision.by


def _say(outcome: str, weighing: Weighing) -> str:
    words = {"satisfied": "approved", "denied": "rejected", "changes_requested": "changes requested"}
    if weighing.broken_glass and outcome == "satisfied":
        return f"GLASS BROKEN by {weighing.broken_glass}"
    by = f"{words.get(outcome, outcome)} by {', '.join(weighing.by)}" if weighing.by else outcome
    if weighing.standing and outcome == "satisfied":
        return f"{by}: standing approval {', '.join(weighing.standing)}"
    return f"{by}: {weighing.comment}" if weighing.comment else by
