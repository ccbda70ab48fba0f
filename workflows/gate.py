"""A gate: the durable wait for people's decisions on one digest. It only collects; weighing reads signed records."""

from __future__ import annotations

import asyncio
from typing import Literal

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from perdure.contracts import names
from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import CloseGateInput, DecisionNotice, GateInput, Weighing, WeighInput
from perdure.contracts.job import ChildEvent, Done, Poke, RequestsInput, RequestsResult
from workflows.calls import call, tell

Outcome = Literal["satisfied", "denied", "changes_requested", "expired", "cancelled", "superseded"]


def _conflict(message: str) -> ApplicationError:
    return ApplicationError(message, type="Conflict", non_retryable=True)


@workflow.defn(name=names.GATE_WORKFLOW)
class GateWorkflow:
    """Open until the decisions suffice, deny or ask for changes, or the absolute deadline passes."""

    @workflow.init
    def __init__(self, gate: GateInput) -> None:
        self._gate = gate
        self._collected = list(gate.collected)
        self._outcome: Outcome | None = None
        self._detail = ""
        self._edits: BlobRef | None = None
        self._weighing = asyncio.Lock()
        self._poked = False

    @workflow.run
    async def run(self, gate: GateInput) -> Done:
        """Collect, close, tell the job."""
        if not gate.opened:
            await call(names.OPEN_GATE, gate, Done)
        await self._wait()
        await workflow.wait_condition(workflow.all_handlers_finished)
        outcome = self._outcome or "expired"
        closing = CloseGateInput(
            gate_id=gate.gate_id, job_id=gate.job_id, digest=gate.digest, outcome=outcome, detail=self._detail
        )
        await call(names.CLOSE_GATE, closing, Done)
        await tell(
            gate.job_id,
            ChildEvent(child_id=gate.gate_id, seq=1, state=outcome, detail=self._detail, edits=self._edits),
        )
        return Done(state=outcome)

    async def _wait(self) -> None:
        """Until an outcome. The deadline is absolute: a restart or a new run never restarts it."""
        while self._outcome is None:
            left = self._gate.expires_at - workflow.now()
            try:
                await workflow.wait_condition(self._must_look, timeout=max(left.total_seconds(), 0))
            except TimeoutError:
                async with self._weighing:  # a decision that was taken in time is weighed to its end
                    self._outcome = self._outcome or "expired"
                return
            if self._poked:
                self._poked = False
                await self._look_for_cancel()
            if self._outcome is None and workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                self._carry_on()

    def _must_look(self) -> bool:
        return self._outcome is not None or self._poked or workflow.info().is_continue_as_new_suggested()

    def _carry_on(self) -> None:
        if self._outcome is None:
            workflow.continue_as_new(
                self._gate.model_copy(update={"opened": True, "collected": self._collected[-100:]})
            )

    async def _look_for_cancel(self) -> None:
        found = await call(names.WEIGH_REQUESTS, RequestsInput(job_id=self._gate.job_id), RequestsResult)
        if found.cancel and self._outcome is None:
            self._outcome, self._detail = "cancelled", f"cancelled by {found.by}"

    @workflow.update(name=names.DECIDE_UPDATE)
    async def decide(self, notice: DecisionNotice) -> Weighing:
        """Weigh everything that lies in the ledger for this digest; the notice itself carries no authority."""
        if notice.decision_id not in self._collected:
            self._collected.append(notice.decision_id)
        async with self._weighing:
            question = WeighInput(
                gate_id=self._gate.gate_id, job_id=self._gate.job_id, digest=self._gate.digest, ref=self._gate.ref
            )
            weighing = await call(names.WEIGH_DECISIONS, question, Weighing)
            if self._outcome is None and weighing.outcome in ("satisfied", "denied", "changes_requested"):
                self._outcome = weighing.outcome
                self._detail = weighing.comment or ", ".join(weighing.by)
                self._edits = weighing.edits
        return weighing

    @decide.validator
    def check_notice(self, notice: DecisionNotice) -> None:
        """Keep a notice that cannot count out of history."""
        if notice.digest != self._gate.digest:
            raise ApplicationError(
                f"This gate decides plan {self._gate.digest[:8]}; the decision names {notice.digest[:8]}.",
                type="Conflict",
            )
        if self._outcome is not None:
            raise ApplicationError(
                f"Plan {self._gate.digest[:8]} is already decided: {self._outcome}.", type="Conflict"
            )
        if workflow.now() >= self._gate.expires_at:
            raise ApplicationError(f"Plan {self._gate.digest[:8]} expired at {self._gate.expires_at}.", type="Conflict")

    @workflow.signal(name=names.POKE_SIGNAL)
    def poke(self, poke: Poke) -> None:
        """Something was written to the ledger: look."""
        self._poked = True

    @workflow.query(name=names.STATE_QUERY)
    def state(self) -> GateInput:
        """What it decides and which decisions it has seen."""
        return self._gate.model_copy(update={"collected": self._collected})
