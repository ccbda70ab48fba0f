"""A job: prepare a plan, wait for the decision, apply it; or say why not. Read `run` as the story."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from temporalio import workflow

from perdure.contracts import names
from perdure.contracts.application import ApplyInput
from perdure.contracts.decisions import GateInput
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
from workflows.calls import call, start_child, tell
from workflows.stages import Prepared, Stages

_GATE_ENDS = {"denied": JobPhase.rejected, "expired": JobPhase.expired, "cancelled": JobPhase.cancelled}


class Cancelled(Exception):
    """A signed cancel lies in the ledger. Never leaves this module."""


@workflow.defn(name=names.JOB_WORKFLOW)
class JobWorkflow:
    """One run prepares a round; the next one, small again, waits for people and applies."""

    @workflow.init
    def __init__(self, state: JobState) -> None:
        self._state = state
        self._events: list[ChildEvent] = []
        self._heard: set[tuple[str, int]] = set()
        self._poked = False

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
        prepared: Prepared = await self._unless_cancelled(Stages(self._state, workflow.now()).prepare())
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
            if decision.state == "changes_requested":
                edits = [*self._state.edits, decision.edits] if decision.edits else self._state.edits
                await self._take_back_parts("changes were requested")
                self._next_round(plan, note=decision.detail, edits=edits)
            if decision.state != "satisfied":
                return await self._end(_GATE_ENDS[decision.state], decision.detail)
        return await self._apply(plan)

    async def _decide(self, plan: PlanRef) -> ChildEvent:
        gate = names.gate_id(self._state.job_id, plan.round)
        opening = GateInput(
            gate_id=gate,
            job_id=self._state.job_id,
            digest=plan.digest,
            ref=plan.ref,
            expires_at=plan.expires_at,
        )
        await start_child(names.GATE_WORKFLOW, opening, gate)
        while True:
            await workflow.wait_condition(lambda: bool(self._events) or self._poked)
            if self._poked:
                self._poked = False
                await workflow.get_external_workflow_handle(gate).signal(names.POKE_SIGNAL, Poke(about="cancel"))
            while self._events:
                event = self._events.pop(0)
                if event.child_id == gate:
                    return event

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
            return JobPhase.done, plan.title
        if end.state in ("drift", "refused"):
            part = AppliedPart(application_id=application, plan=plan, reached=end.reached)
            parts = [*self._state.parts, part] if end.reached else self._state.parts
            await self._check_cancel(parts)
            self._next_round(plan, note=end.detail, parts=parts)
        if end.state == "stuck":
            return JobPhase.stuck, end.detail
        cancelled = await self._read_requests()
        return await self._end(JobPhase.cancelled if cancelled.cancel else JobPhase.failed, end.detail)

    async def _run_application(self, opening: ApplyInput, workflow_id: str) -> ChildEvent:
        """Start the applier and hear it to its end; on the way note what a person must know."""
        await start_child(names.APPLY_WORKFLOW, opening, workflow_id)
        while True:
            await workflow.wait_condition(lambda: bool(self._events))
            event = self._events.pop(0)
            if event.child_id != workflow_id:
                continue
            if event.state in ("unknown", "undoing"):
                await self._note(JobPhase(event.state), event.detail)
                continue
            return event

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
        """A gate or an application speaks; the same (child, seq) is heard once."""
        if (event.child_id, event.seq) not in self._heard:
            self._heard.add((event.child_id, event.seq))
            self._events.append(event)

    @workflow.signal(name=names.POKE_SIGNAL)
    def poke(self, poke: Poke) -> None:
        """A request may lie in the ledger: look."""
        self._poked = True

    @workflow.query(name=names.STATE_QUERY)
    def state(self) -> JobState:
        """Where it is."""
        return self._state
