"""The applier's hands: one activity per effect. Temporal says what comes next; the ledger says whether it may start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from temporalio import activity

from activities.applying import Applier
from activities.ledger import Decisions
from activities.running import again_later, in_thread
from perdure.contracts import names
from perdure.contracts.application import (
    ApplicationStanding,
    CloseApplicationInput,
    CloseApplicationResult,
    EffectInput,
    EffectOutcome,
    OpenApplicationInput,
    OpenApplicationResult,
    ReadApplicationInput,
)
from perdure.contracts.job import JobPhase, NoteInput
from perdure.contracts.plan import Plan, read_plan
from perdure.effects.base import Blobs, Effect
from perdure.errors import LookFailed, Refused
from perdure.store.ledger import Ledger
from perdure.store.rows import OpenEnd, TargetBusy


class EffectActivities:
    """Opens, applies and closes an application."""

    def __init__(
        self,
        ledger: Ledger,
        blobs: Blobs,
        decisions: Decisions,
        effects: Mapping[str, Effect],
        applier: Applier,
        *,
        preflight: Callable[[Plan], list[str]] = lambda _plan: [],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._preflight = preflight
        self._now = now
        self._ledger = ledger
        self._blobs = blobs
        self._decisions = decisions
        self._effects = effects
        self._applier = applier

    @activity.defn(name=names.OPEN_APPLICATION)
    async def open_application(self, question: OpenApplicationInput) -> OpenApplicationResult:
        """Hash the stored plan again, weigh its decisions again, look at every precondition. Begins nothing.

        Where a precondition cannot be seen it is tried again, until it can or the job is cancelled.
        """
        return await in_thread(lambda: self._open(question))

    def _open(self, question: OpenApplicationInput) -> OpenApplicationResult:
        now = self._now()
        plan = read_plan(question.digest, self._blobs.get(question.ref))
        standing = self._ledger.standing(question.application_id)
        if standing.state != "open" and self._ledger.permit(question.digest) is not None:
            return OpenApplicationResult(state="ended", detail=standing.detail, end=standing.state)
        try:
            self._confirm(question, plan, now)
        except Refused as refusal:
            return OpenApplicationResult(state="refused", detail=refusal.message[:500])
        note = NoteInput(job_id=question.job_id, step=0, phase=JobPhase.applying)
        self._ledger.note_job(note, workflow_id=question.application_id, at=now)
        try:
            self._take_lock(question, plan)
            drift = self._find_red(question, plan) or self._applier.find_drift(plan, question.application_id)
        except Refused as refusal:
            return OpenApplicationResult(state="refused", detail=refusal.message[:500])
        except LookFailed:
            if by := self._decisions.cancelled_by(question.job_id):
                return OpenApplicationResult(state="refused", detail=f"cancelled by {by}")
            raise
        if drift:
            return OpenApplicationResult(state="drift", detail="; ".join(drift)[:500])
        return OpenApplicationResult(
            state="ready", attempt_limits=[effect.attempt_limit_seconds for effect in plan.effects]
        )

    def _take_lock(self, question: OpenApplicationInput, plan: Plan) -> None:
        """Take the target that the template locks, before anything is looked at: what is seen then stays so.

        Raises:
            Refused: cancelled or withdrawn meanwhile.
            ApplicationError: another application holds it; tried again.
        """
        if not plan.envelope.lock:
            return
        try:
            self._ledger.take_target(question.application_id, question.digest, plan.envelope.lock, at=self._now())
        except TargetBusy as busy:
            raise again_later(busy.message, "TargetBusy") from busy

    def _find_red(self, question: OpenApplicationInput, plan: Plan) -> list[str]:
        """What of the preflight does not hold any more; nothing is asked once an effect was begun."""
        if self._ledger.intents(application_id=question.application_id):
            return []
        return self._preflight(plan)

    def _confirm(self, question: OpenApplicationInput, plan: Plan, now: datetime) -> None:
        """Today's word on a decided plan. Raises ``Refused``: withdrawn meanwhile, a key taken away, other code."""
        for effect in plan.effects:
            known = self._effects.get(effect.kind)
            if known is None or known.version != effect.version:
                raise Refused(f"{effect.kind} version {effect.version} was approved; this worker has another one.")
        if plan.envelope.rule.approvals:
            weighing = self._decisions.weigh(plan, question.digest, now)
            if weighing.outcome != "satisfied":
                missing = ", ".join(weighing.missing) or weighing.outcome
                raise Refused(f"The decisions on {question.digest[:8]} no longer suffice: {missing}.")
            return
        if any(effect.inverse.irreversible for effect in plan.effects):
            raise Refused("An irreversible effect needs an approval, and this plan's rule asks for none.")
        self._ledger.grant_permit(
            digest=question.digest, job_id=question.job_id, application_id=question.application_id, at=now
        )

    @activity.defn(name=names.APPLY_EFFECT)
    async def apply_effect(self, question: EffectInput) -> EffectOutcome:
        """Apply or take back one effect: once per (application, index, direction), however often it is asked."""
        return await in_thread(lambda: self._applier.apply(question))

    @activity.defn(name=names.CLOSE_APPLICATION)
    async def close_application(self, closing: CloseApplicationInput) -> CloseApplicationResult:
        """Release the targets and write the end; once per (application, state). Not while an effect has no end."""
        return await in_thread(lambda: self._close(closing))

    def _close(self, closing: CloseApplicationInput) -> CloseApplicationResult:
        if closing.state == "undone":
            plan = read_plan(closing.digest, self._blobs.get(self._ledger.plan(closing.digest).ref))
            left = self._applier.find_left(closing.application_id, plan)
            if left:
                return CloseApplicationResult(closed=False, detail=f"effect {left[-1] + 1} was not taken back")
        try:
            self._ledger.close_application(closing, at=self._now())
        except OpenEnd as open_end:
            return CloseApplicationResult(closed=False, detail=open_end.message)
        return CloseApplicationResult()

    @activity.defn(name=names.READ_APPLICATION)
    async def read_application(self, question: ReadApplicationInput) -> ApplicationStanding:
        """How an application stands. Reads only."""
        return await in_thread(lambda: self._ledger.standing(question.application_id))
