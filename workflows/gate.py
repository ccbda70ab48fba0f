"""A gate: the durable wait for people's decisions on one digest. It only collects; weighing reads signed records."""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from perdure.contracts import names
from perdure.contracts.decisions import DecisionNotice, GateEnd, GateInput, GateOpened, Weighing, WeighInput
from perdure.contracts.job import ChildEvent, Poke
from workflows.calls import call, check_place, poke, tell

_CLOCKS_APART = 1.0
"""Seconds. The deadline is the ledger's word: a worker whose clock is behind the server's says "not yet"."""

AGAIN = "again"
"""How ``open_gate`` answers when the gate was opened before."""


def _conflict(message: str) -> ApplicationError:
    return ApplicationError(message, type="Conflict", non_retryable=True)


@workflow.defn(name=names.GATE_WORKFLOW)
class GateWorkflow:
    """Open until the decisions suffice, deny or ask for changes, or the absolute deadline passes."""

    @workflow.init
    def __init__(self, gate: GateInput) -> None:
        check_place(gate.gate_id)
        self._gate = gate
        self._collected = list(gate.collected)
        self._end = GateEnd(outcome="open")
        self._weighing = asyncio.Lock()
        self._poked = False

    @workflow.run
    async def run(self, gate: GateInput) -> GateEnd:
        """Collect, close, tell the job."""
        if not gate.opened:
            opened = await call(names.OPEN_GATE, gate, GateOpened)
            self._poked = opened.state == AGAIN  # an earlier run was lost: what it heard lies in the ledger
            for replaced in opened.replaced:
                await poke(replaced, Poke(about="gate"))
        while not self._has_ended():
            await self._wait()
            if not self._has_ended():
                await self._close(may_be_cancelled=True)
        await workflow.wait_condition(workflow.all_handlers_finished)
        end = self._end
        await tell(gate.job_id, ChildEvent(child_id=gate.gate_id, seq=1, state=end.outcome, detail=end.detail[:500]))
        return end.model_copy(update={"weighing": None})

    def _has_ended(self) -> bool:
        return self._end.outcome != "open"

    async def _close(self, *, may_be_cancelled: bool) -> GateEnd:
        """Ask the ledger how the gate ends: it has the last word, and says "open" when nothing is decided there."""
        question = WeighInput(
            gate_id=self._gate.gate_id,
            job_id=self._gate.job_id,
            digest=self._gate.digest,
            ref=self._gate.ref,
            may_be_cancelled=may_be_cancelled,
        )
        async with self._weighing:
            self._end = await call(names.CLOSE_GATE, question, GateEnd)
        return self._end

    async def _wait(self) -> None:
        """Until there is a reason to look. The deadline is absolute: a restart or a new run never restarts it."""
        while True:
            left = self._gate.expires_at - workflow.now()
            try:
                await workflow.wait_condition(self._must_look, timeout=max(left.total_seconds(), _CLOCKS_APART))
            except TimeoutError:
                return
            if self._poked or self._has_ended():
                self._poked = False
                return
            await workflow.wait_condition(workflow.all_handlers_finished)
            self._carry_on()

    def _must_look(self) -> bool:
        return self._poked or self._has_ended() or workflow.info().is_continue_as_new_suggested()

    def _carry_on(self) -> None:
        if not self._poked and not self._has_ended():
            workflow.continue_as_new(
                self._gate.model_copy(update={"opened": True, "collected": self._collected[-100:]})
            )

    @workflow.update(name=names.DECIDE_UPDATE)
    async def decide(self, notice: DecisionNotice) -> Weighing:
        """Weigh everything that lies in the ledger for this digest; the notice itself carries no authority."""
        if notice.decision_id not in self._collected:
            self._collected.append(notice.decision_id)
        end = await self._close(may_be_cancelled=False)
        if end.weighing is None:
            raise _conflict(f"Plan {self._gate.digest[:8]} was not weighed.")
        return end.weighing

    @decide.validator
    def check_notice(self, notice: DecisionNotice) -> None:
        """Keep a notice that cannot count out of history."""
        if notice.digest != self._gate.digest:
            raise _conflict(f"This gate decides plan {self._gate.digest[:8]}; the decision names {notice.digest[:8]}.")
        if self._has_ended():
            raise _conflict(f"Plan {self._gate.digest[:8]} is already decided.")
        if workflow.now() >= self._gate.expires_at:
            raise _conflict(f"Plan {self._gate.digest[:8]} expired at {self._gate.expires_at:%Y-%m-%d %H:%M} UTC.")

    @workflow.signal(name=names.POKE_SIGNAL)
    def poke(self, poke: Poke) -> None:
        """Something was written to the ledger: look."""
        self._poked = True

    @workflow.query(name=names.STATE_QUERY)
    def state(self) -> GateInput:
        """What it decides and which decisions it has seen."""
        return self._gate.model_copy(update={"collected": self._collected})
