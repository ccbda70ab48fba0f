"""A job: prepare a plan, wait for the decision, apply it; or say why not. Read `run` as the story."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from temporalio import workflow

from perdure.contracts import names
from perdure.contracts.application import ApplicationStanding, ApplyInput, ReadApplicationInput
from perdure.contracts.decisions import GateEnd, GateInput, WeighInput
from perdure.contracts.job import (
    AppliedPart,
    ChildEvent,
    Done,
    JobPhase,
    JobState,
    NoteInput,
    PlanRef,
    Poke,
    RequestsInput,
    RequestsResult,
)
from workflows.calls import LIE, call, check_place, poke, start_child, tell
from workflows.stages import Prepared, Stages

_GATE_ENDS = {
    "denied": JobPhase.rejected,
    "expired": JobPhase.expired,
    "cancelled": JobPhase.cancelled,
    "superseded": JobPhase.superseded,
}


class Cancelled(Exception):
    """A signed cancel lies in the ledger. Never leaves this module."""


@workflow.defn(name=names.JOB_WORKFLOW)
class JobWorkflow:
    """One run prepares a round; the next one, small again, waits for people and applies."""

    @workflow.init
    def __init__(self, state: JobState) -> None:
        check_place(state.job_id)
        self._state = state
        self._told: set[str] = set()
        self._poked = False
        self._nudged = False

    @workflow.run
    async def run(self, state: JobState) -> JobState:
        """Prepare, or decide and apply; end by telling the ledger and the thread."""
        try:
            if state.plan is None:
                phase, summary = await self._prepare()
            else:
                phase, summary = await self._decide_and_apply(state.plan)
        except Cancelled as cancelled:
            phase, summary = await self._end(JobPhase.cancelled, str(cancelled))
        await self._note(phase, summary)
        thread = names.JobId.parse(state.job_id).thread
        await tell(names.thread_id(thread), ChildEvent(child_id=state.job_id, seq=1, state=phase, detail=summary[:300]))
        return self._state.model_copy(update={"phase": phase, "results": {}})

    async def _prepare(self) -> tuple[JobPhase, str]:
        """Run the stages. With a plan to decide, the job carries on as a new run before it waits."""
        if self._state.round > 1:  # nobody is asked about the next plan before its gate is open
            await self._note(JobPhase.drafting, self._state.note)
        prepared: Prepared = await self._unless_cancelled(
            Stages(self._state, workflow.now(), self._hear_agent).prepare()
        )
        if prepared.failed:
            return await self._end(JobPhase.failed, prepared.failed)
        if prepared.plan is None:
            return await self._end(JobPhase.nothing_to_do, prepared.finished)
        if not prepared.plan.needs_decision:
            return JobPhase.done, "planned only"
        self._carry_on(plan=prepared.plan, results=prepared.results)
        raise AssertionError("continue_as_new does not return")

    async def _decide_and_apply(self, plan: PlanRef) -> tuple[JobPhase, str]:
        if plan.needs_gate:
            decision = await self._decide(plan)
            if decision.outcome == "changes_requested":
                edits = [*self._state.edits, decision.edits] if decision.edits else self._state.edits
                await self._take_back_parts("changes were requested")
                self._next_round(plan, note=decision.detail, edits=edits)
            if decision.outcome != "satisfied":
                return await self._end(_GATE_ENDS.get(decision.outcome, JobPhase.failed), decision.detail)
        return await self._apply(plan)

    async def _decide(self, plan: PlanRef) -> GateEnd:
        """Keep a gate open until the ledger says how it ended. What anybody says is only a reason to look there."""
        gate = names.gate_id(self._state.job_id, plan.round)
        about = {"gate_id": gate, "job_id": self._state.job_id, "digest": plan.digest, "ref": plan.ref}
        opening = GateInput.model_validate({**about, "expires_at": plan.expires_at})
        while True:
            await start_child(names.GATE_WORKFLOW, opening, gate)
            was_told = await self._hear(gate)
            if not was_told:
                await poke(gate, Poke(about="cancel"))
            end = await call(names.READ_GATE, WeighInput.model_validate(about), GateEnd)
            if end.outcome != "open":
                return end
            await self._carry_on_waiting(was_told)

    async def _hear(self, child_id: str) -> bool:
        """Wait for a reason to look into the ledger: whether the child is said to have ended, else somebody poked."""
        await workflow.wait_condition(lambda: child_id in self._told or self._poked)
        was_told = child_id in self._told
        self._told.discard(child_id)  # before looking: what is said from now on is a new reason
        self._poked = False
        return was_told

    async def _hear_agent(self, agent_id: str) -> None:
        """Wait until an agent is said to have ended, or somebody pokes: it may be lost, and is started again then."""
        await workflow.wait_condition(lambda: agent_id in self._told or self._nudged)
        self._told.discard(agent_id)
        self._nudged = False  # beside ``_poked``, which whoever waits for a cancel takes back

    async def _carry_on_waiting(self, was_told: bool) -> None:
        """The ledger knows of no end. If one was told, it was a lie, or the child was lied to and is ending."""
        if was_told:
            await workflow.sleep(LIE)
        if workflow.info().is_continue_as_new_suggested() and not self._told:
            self._carry_on()

    async def _apply(self, plan: PlanRef) -> tuple[JobPhase, str]:
        application = names.application_id(self._state.job_id, plan.round)
        opening = ApplyInput(
            application_id=application,
            job_id=self._state.job_id,
            digest=plan.digest,
            ref=plan.ref,
            effects=plan.effects,
        )
        end = await self._run_application(opening, application)
        if end.state == "applied":
            return JobPhase.done, f"{plan.title} · {end.detail}" if end.detail else plan.title
        if end.state in ("drift", "refused"):
            part = AppliedPart(application_id=application, plan=plan, reached=end.reached)
            parts = [*self._state.parts, part] if end.reached else self._state.parts
            await self._check_cancel(parts)
            self._next_round(plan, note=end.detail, parts=parts)
        if end.state == "stuck":
            return JobPhase.stuck, end.detail
        cancelled = await self._read_requests()
        return await self._end(JobPhase.cancelled if cancelled.cancel else JobPhase.failed, end.detail)

    async def _run_application(self, opening: ApplyInput, workflow_id: str) -> ApplicationStanding:
        """Keep an applier at work until the ledger says how the application ended."""
        question = ReadApplicationInput(application_id=opening.application_id)
        while True:
            await start_child(names.APPLY_WORKFLOW, opening, workflow_id)
            was_told = await self._hear(workflow_id)
            standing = await call(names.READ_APPLICATION, question, ApplicationStanding)
            if standing.state != "open" and not (opening.undoing and standing.state == "drift"):
                return standing
            await self._carry_on_waiting(was_told)

    async def _check_cancel(self, parts: list[AppliedPart]) -> None:
        found = await self._read_requests()
        if found.cancel:
            self._state = self._state.model_copy(update={"parts": parts})
            raise Cancelled(f"cancelled by {found.by}")

    async def _end(self, phase: JobPhase, summary: str) -> tuple[JobPhase, str]:
        """End unsuccessfully: what earlier rounds have applied is taken back first."""
        stuck = await self._take_back_parts(summary)
        return (JobPhase.stuck, stuck) if stuck else (phase, summary)

    async def _take_back_parts(self, cause: str) -> str:
        """Undo applications that stopped half-way, newest first. Return what could not be undone."""
        for part in reversed(self._state.parts):
            opening = ApplyInput(
                application_id=part.application_id,
                job_id=self._state.job_id,
                digest=part.plan.digest,
                ref=part.plan.ref,
                effects=part.plan.effects,
                next_effect=part.reached,
                undoing=True,
                cause=cause[:400],
            )
            end = await self._run_application(opening, f"{part.application_id}/undo")
            if end.state == "stuck":
                return end.detail
        self._state = self._state.model_copy(update={"parts": []})
        return ""

    def _next_round(
        self,
        plan: PlanRef,
        *,
        note: str,
        edits: list[Any] | None = None,
        parts: list[AppliedPart] | None = None,
    ) -> None:
        """Draft again. With ``parts`` only the rest of the plan is planned again, from the same draft."""
        self._carry_on(
            round=plan.round + 1,
            plan=None,
            previous=plan.digest,
            note=note[:500],
            edits=self._state.edits if edits is None else edits,
            parts=self._state.parts if parts is None else parts,
            results=self._state.results if parts else {},
        )

    def _carry_on(self, **changes: Any) -> None:
        workflow.continue_as_new(self._state.model_copy(update={"step": self._state.step + 1, **changes}))

    async def _unless_cancelled(self, work: Coroutine[Any, Any, Prepared]) -> Prepared:
        task = asyncio.create_task(work)
        while True:
            await workflow.wait_condition(lambda: task.done() or self._poked)
            if task.done():
                return task.result()
            self._poked = False
            found = await self._read_requests()
            if found.cancel and not task.done():
                task.cancel()
                await workflow.wait([task])
                raise Cancelled(f"cancelled by {found.by}")

    async def _read_requests(self) -> RequestsResult:
        return await call(names.WEIGH_REQUESTS, RequestsInput(job_id=self._state.job_id), RequestsResult)

    async def _note(self, phase: JobPhase, summary: str) -> None:
        self._state = self._state.model_copy(update={"step": self._state.step + 1})
        note = NoteInput(job_id=self._state.job_id, step=self._state.step, phase=phase, summary=summary[:500])
        await call(names.NOTE_JOB, note, Done)

    @workflow.signal(name=names.CHILD_SIGNAL)
    def hear_child(self, event: ChildEvent) -> None:
        """A gate or an application is said to have ended: ask the ledger how."""
        self._told.add(event.child_id)

    @workflow.signal(name=names.POKE_SIGNAL)
    def poke(self, poke: Poke) -> None:
        """A request may lie in the ledger: look."""
        self._poked = self._nudged = True

    @workflow.query(name=names.STATE_QUERY)
    def state(self) -> JobState:
        """Where it is."""
        return self._state
