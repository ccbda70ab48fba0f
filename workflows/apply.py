"""The application of one decided plan: effects in order, each at most once; on failure back, newest first."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from perdure.contracts import names
from perdure.contracts.application import (
    ApplicationEnd,
    ApplyInput,
    ApplyResult,
    CloseApplicationInput,
    CloseApplicationResult,
    Direction,
    EffectInput,
    EffectOutcome,
    OpenApplicationInput,
    OpenApplicationResult,
)
from perdure.contracts.job import ChildEvent, Done, JobPhase, NoteInput, Poke
from workflows.calls import call, cause_of, check_place, tell

_LOOK_FIRST, _LOOK_LONGEST = timedelta(seconds=2), timedelta(minutes=10)
"""Between two looks at an effect that somebody outside has to finish; the pause doubles until somebody pokes."""

_LONGEST = timedelta(hours=24)
"""For an effect whose limit was not told here: its command has one of its own, and a dead worker misses heartbeats.

So has each command of a preflight, which is run again when the application is opened.
"""

_MARGIN = timedelta(seconds=60)
"""Beside an effect's own limit: waiting for its lock, probing, verifying, writing the receipt."""


@workflow.defn(name=names.APPLY_WORKFLOW)
class ApplyWorkflow:
    """One run applies one plan. Whether an effect may start is the ledger's word, asked inside each activity."""

    @workflow.init
    def __init__(self, application: ApplyInput) -> None:
        check_place(application.application_id, f"{application.application_id}/undo")
        self._application = application
        self._limits = list(application.attempt_limits)
        self._reached = application.next_effect
        self._seq = application.seq
        self._poked = False
        self._went_back_again = False
        self._waits_for = ""
        self._pause = _LOOK_FIRST
        self._passed_over = "" if application.undoing else application.cause

    @workflow.run
    async def run(self, application: ApplyInput) -> ApplyResult:
        """Open, apply, close; or take back."""
        if application.undoing:
            return await self._take_back(application.cause)
        if not self._limits:
            opened = await self._open()
            if opened.end is not None:
                return await self._tell(opened.end, opened.detail)
            if opened.state == "drift" or opened.state == "refused":
                return await self._close(opened.state, opened.detail)
        return await self._go_forward()

    async def _go_forward(self) -> ApplyResult:
        while self._reached < len(self._limits):
            outcome = await self._settle_surely(self._reached)
            if outcome.index != self._reached:  # an end that we were told is not written: that effect comes first
                self._reached = min(max(outcome.index, 0), self._reached)
                continue
            if outcome.state == "drift":
                return await self._close("drift", outcome.detail)
            if outcome.state == "refused" and self._reached == 0:
                return await self._close("refused", outcome.detail)
            happened = outcome.state in ("done", "already")
            if happened or (outcome.state == "failed" and outcome.on_failure == "report"):
                self._reached += 1
                if not happened:
                    self._pass_over(outcome)
                if outcome.verified:
                    self._carry_on_when_long(cause=self._passed_over)
                    continue
            return await self._take_back(f"effect {outcome.index + 1}: {outcome.detail}")
        return await self._close("applied", self._passed_over)

    def _pass_over(self, outcome: EffectOutcome) -> None:
        """``on_failure: report``: what did not happen is said when all else has."""
        said = f"effect {outcome.index + 1} did not happen: {outcome.detail}"
        if said not in self._passed_over:
            self._passed_over = f"{self._passed_over} · {said}".removeprefix(" · ")[:400]

    async def _open(self) -> OpenApplicationResult:
        question = OpenApplicationInput.model_validate({**self._key(), "ref": self._application.ref})
        try:
            opened = await call(names.OPEN_APPLICATION, question, OpenApplicationResult, limit=_LONGEST)
        except ActivityError as error:  # its plan is gone or was changed: it is frozen again
            return OpenApplicationResult(state="refused", detail=cause_of(error)[:500])
        self._limits = list(opened.attempt_limits)
        return opened

    async def _settle_surely(self, index: int) -> EffectOutcome:
        """Apply one effect. A failure is asked for twice: the ledger repeats its own, and no one else's."""
        outcome = await self._settle(index, "do")
        if outcome.state in ("done", "already", "drift"):
            return outcome
        return await self._settle(index, "do")

    async def _settle(self, index: int, direction: Direction) -> EffectOutcome:
        """Ask for one effect until its fate is known; what cannot be known waits for a person."""
        while True:
            outcome = await self._apply_effect(index, direction)
            if outcome.direction != direction or (direction == "undo" and outcome.index != index):
                continue  # an answer to another question
            if outcome.state == "waiting":
                await self._park(outcome.detail)
                continue
            waits_for_person = outcome.state in ("unknown", "paused")
            if self._waits_for and not waits_for_person:
                await self._stop_waiting()
            if not waits_for_person:
                return outcome
            is_known = outcome.state == "paused" or outcome.is_pause
            await self._note(JobPhase.paused if is_known else JobPhase.unknown, outcome.detail)
            await workflow.wait_condition(lambda: self._poked)
            self._poked = False
            await self._note(JobPhase.applying if direction == "do" else JobPhase.undoing, "")

    async def _park(self, detail: str) -> None:
        """Hold nothing but a timer until it is time to look again, or somebody pokes. A long wait carries on anew."""
        if detail != self._waits_for:
            self._waits_for = detail
            await self._note(JobPhase.waiting_for_merge, detail)
        poked = False
        try:
            await workflow.wait_condition(lambda: self._poked, timeout=self._pause)
            poked = True
        except TimeoutError:
            self._pause = min(2 * self._pause, _LOOK_LONGEST)
        if poked:
            self._poked, self._pause = False, _LOOK_FIRST
        self._carry_on_when_long(cause=self._passed_over)

    async def _stop_waiting(self) -> None:
        self._waits_for, self._pause = "", _LOOK_FIRST
        await self._note(JobPhase.applying, "")

    async def _apply_effect(self, index: int, direction: Direction) -> EffectOutcome:
        about = {"ref": self._application.ref, "index": index, "direction": direction}
        question = EffectInput.model_validate({**self._key(), **about})
        limit = (timedelta(seconds=self._limits[index]) if index < len(self._limits) else _LONGEST) + _MARGIN
        try:
            return await call(names.APPLY_EFFECT, question, EffectOutcome, limit=limit)
        except ActivityError as error:
            return EffectOutcome(index=index, direction=direction, state="failed", detail=cause_of(error)[:400])

    async def _take_back(self, cause: str) -> ApplyResult:
        """Undo what is done, newest first. The first undo that fails stops: older effects may be needed by it."""
        await self._note(JobPhase.undoing, cause)
        while self._reached > 0:
            outcome = await self._settle(self._reached - 1, "undo")
            if outcome.state not in ("done", "already"):
                return await self._close(
                    "stuck", f"{cause} · and effect {self._reached} was not taken back: {outcome.detail}"
                )
            self._reached -= 1
            self._carry_on_when_long(undoing=True, cause=cause)
        return await self._close("undone", cause)

    async def _close(self, state: ApplicationEnd, detail: str) -> ApplyResult:
        """Write the end and tell the job, which asks the ledger: an end that cannot be written is told all the same."""
        closing = CloseApplicationInput.model_validate({**self._key(), "state": state, "detail": detail[:500]})
        try:
            closed = await call(names.CLOSE_APPLICATION, closing, CloseApplicationResult)
        except ActivityError as error:
            return await self._tell(state, cause_of(error))
        if closed.closed:
            return await self._tell(state, detail)
        return await self._go_again(state, detail)

    async def _go_again(self, state: ApplicationEnd, detail: str) -> ApplyResult:
        """The ledger knows of effects without an end: what is done is only repeated, the rest happens now."""
        if state != "undone":
            self._reached = 0
            return await self._go_forward()
        if self._went_back_again:
            return await self._close("stuck", detail)
        self._went_back_again = True
        self._reached = max(len(self._limits), self._application.next_effect)
        return await self._take_back(detail)

    async def _tell(self, state: ApplicationEnd, detail: str) -> ApplyResult:
        me = workflow.info().workflow_id
        await tell(self._application.job_id, ChildEvent(child_id=me, seq=1, state=state, detail=detail[:500]))
        return ApplyResult(state=state, reached=self._reached, detail=detail[:500])

    async def _note(self, phase: JobPhase, summary: str) -> None:
        self._seq += 1
        note = NoteInput(
            job_id=self._application.job_id,
            step=self._seq,
            phase=phase,
            summary=summary[:500],
            said_by=workflow.info().workflow_id,
        )
        await call(names.NOTE_JOB, note, Done)

    def _carry_on_when_long(self, *, undoing: bool = False, cause: str = "") -> None:
        if workflow.info().is_continue_as_new_suggested():
            workflow.continue_as_new(
                self._application.model_copy(
                    update={
                        "attempt_limits": self._limits,
                        "next_effect": self._reached,
                        "undoing": undoing,
                        "cause": cause,
                        "seq": self._seq,
                    }
                )
            )

    def _key(self) -> dict[str, object]:
        application = self._application
        return {
            "application_id": application.application_id,
            "job_id": application.job_id,
            "digest": application.digest,
        }

    @workflow.signal(name=names.POKE_SIGNAL)
    def poke(self, poke: Poke) -> None:
        """A resolution may lie in the ledger: look again."""
        self._poked = True

    @workflow.query(name=names.STATE_QUERY)
    def state(self) -> ApplyResult:
        """How far it is."""
        return ApplyResult(state="applied", reached=self._reached)
