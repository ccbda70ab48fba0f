"""The application of one decided plan: effects in order, each at most once; on failure back, newest first."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from temporalio import workflow
from temporalio.exceptions import ActivityError

from perdure.contracts import names
from perdure.contracts.application import (
    ApplyInput,
    ApplyResult,
    CloseApplicationInput,
    Direction,
    EffectInput,
    EffectOutcome,
    OpenApplicationInput,
    OpenApplicationResult,
)
from perdure.contracts.job import ChildEvent, Done, Poke
from workflows.calls import call, cause_of, tell

End = Literal["applied", "drift", "refused", "undone", "stuck", "cancelled"]

_MARGIN = timedelta(seconds=60)
"""Beside an effect's own limit: waiting for its lock, probing, verifying, writing the receipt."""


@workflow.defn(name=names.APPLY_WORKFLOW)
class ApplyWorkflow:
    """One run applies one plan. Whether an effect may start is the ledger's word, asked inside each activity."""

    @workflow.init
    def __init__(self, application: ApplyInput) -> None:
        self._application = application
        self._limits = list(application.attempt_limits)
        self._reached = application.next_effect
        self._seq = application.seq
        self._poked = False

    @workflow.run
    async def run(self, application: ApplyInput) -> ApplyResult:
        """Open, apply, close; or take back."""
        if application.undoing:
            return await self._take_back(application.cause)
        if not self._limits:
            opened = await self._open()
            if opened.state != "ready":
                return await self._close(opened.state, opened.detail)
        while self._reached < application.effects:
            outcome = await self._settle(self._reached, "do")
            if outcome.state == "drift":
                return await self._close("drift", outcome.detail)
            if outcome.state == "refused" and self._reached == 0:
                return await self._close("refused", outcome.detail)
            happened = outcome.state in ("done", "already")
            if happened or (outcome.state == "failed" and outcome.on_failure == "report"):
                self._reached += 1
                if outcome.verified:
                    self._carry_on_when_long()
                    continue
            return await self._take_back(f"effect {outcome.index + 1}: {outcome.detail}")
        return await self._close("applied", "")

    async def _open(self) -> OpenApplicationResult:
        question = OpenApplicationInput.model_validate({**self._key(), "ref": self._application.ref})
        opened = await call(names.OPEN_APPLICATION, question, OpenApplicationResult, limit=timedelta(minutes=5))
        self._limits = list(opened.attempt_limits)
        return opened

    async def _settle(self, index: int, direction: Direction) -> EffectOutcome:
        """Apply one effect until its fate is known; what cannot be known waits for a person."""
        while True:
            outcome = await self._apply_effect(index, direction)
            if outcome.state != "unknown":
                return outcome
            await self._tell("unknown", outcome.detail)
            await workflow.wait_condition(lambda: self._poked)
            self._poked = False

    async def _apply_effect(self, index: int, direction: Direction) -> EffectOutcome:
        about = {"ref": self._application.ref, "index": index, "direction": direction}
        question = EffectInput.model_validate({**self._key(), **about})
        limit = timedelta(seconds=self._limits[index] if index < len(self._limits) else 600) + _MARGIN
        try:
            return await call(names.APPLY_EFFECT, question, EffectOutcome, limit=limit)
        except ActivityError as error:
            return EffectOutcome(index=index, direction=direction, state="failed", detail=cause_of(error)[:400])

    async def _take_back(self, cause: str) -> ApplyResult:
        """Undo what is done, newest first. The first undo that fails stops: older effects may be needed by it."""
        await self._tell("undoing", cause)
        while self._reached > 0:
            outcome = await self._settle(self._reached - 1, "undo")
            if outcome.state not in ("done", "already"):
                return await self._close(
                    "stuck", f"{cause} · and effect {self._reached} was not taken back: {outcome.detail}"
                )
            self._reached -= 1
            self._carry_on_when_long(undoing=True, cause=cause)
        return await self._close("undone", cause)

    async def _close(self, state: End, detail: str) -> ApplyResult:
        closing = CloseApplicationInput.model_validate({**self._key(), "state": state, "detail": detail[:500]})
        await call(names.CLOSE_APPLICATION, closing, Done)
        await self._tell(state, detail)
        return ApplyResult(state=state, reached=self._reached, detail=detail[:500])

    async def _tell(self, state: str, detail: str) -> None:
        self._seq += 1
        event = ChildEvent(
            child_id=workflow.info().workflow_id,
            seq=self._seq,
            state=state,
            detail=detail[:500],
            reached=self._reached,
        )
        await tell(self._application.job_id, event)

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
