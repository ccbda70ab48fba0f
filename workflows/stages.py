"""The stages before a decision: gather, analyze, draft, verify, freeze. Reads and private work only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from perdure.contracts import names
from perdure.contracts.base import BlobRef
from perdure.contracts.job import JobOutline, JobState, PlanRef, PlanResult, SourceOutline, StepInput, StepResult
from workflows.calls import call, cause_of
from workflows.drafting import Hear, conclude_with_prompts, draft_with_agents

_BATCH = 100
"""Activities scheduled in one workflow task (measured: 2,000 at once outlast the task's limit)."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=5)
"""Between looks at a store that cannot be used; the longest keeps history small over a weekend."""


@dataclass
class Prepared:
    """How the stages ended: a plan, or a reason why there is none."""

    plan: PlanRef | None = None
    finished: str = ""
    """Nothing to do, and why."""
    failed: str = ""
    results: dict[str, BlobRef] = field(default_factory=dict)


class StageFailure(Exception):
    """A stage came to no result; the text is for people. Never leaves this module."""


class Stages:
    """Runs the stages of one round of one job."""

    def __init__(self, state: JobState, at: datetime, hear: Hear) -> None:
        self._state = state
        self._hear = hear
        self._at = at
        self._results: dict[str, BlobRef] = dict(state.results)

    async def prepare(self) -> Prepared:
        """From the pinned template to a frozen plan."""
        try:
            outline = await call(names.OPEN_JOB, self._step(), JobOutline)
            if not outline.undoes and not self._state.parts:
                finished = await self._gather_and_draft(outline)
                if finished:
                    return Prepared(finished=finished, results=self._results)
            frozen = await call(names.FREEZE_PLAN, self._step(), PlanResult, limit=timedelta(minutes=10))
        except StageFailure as failure:
            return Prepared(failed=str(failure), results=self._results)
        except ActivityError as error:
            return Prepared(failed=cause_of(error), results=self._results)
        if frozen.plan is None:
            return Prepared(finished=frozen.summary, failed=frozen.problem, results=self._results)
        return Prepared(plan=frozen.plan, results=self._results)

    async def _gather_and_draft(self, outline: JobOutline) -> str:
        """Return why there is nothing to do; empty when a plan can be frozen."""
        await self._run_all(names.GATHER_SOURCE, "gather", outline.sources)
        if outline.has_analysis:
            limit = timedelta(minutes=10)
            if outline.analysis_has_prompt:
                analysis = await conclude_with_prompts(self._step(), self._hear, limit)
            else:
                analysis = await call(names.ANALYZE, self._step(), StepResult, limit=limit)
            self._keep("analyze", analysis)
            if analysis.status == "finished":
                return analysis.summary
        drafts = 1 + (outline.redraft if outline.draft_has_agent else 0)
        red = ""
        for attempt in range(drafts):
            red = await self._draft_and_verify(outline, attempt)
            if not red:
                return ""
        raise StageFailure(red)

    async def _draft_and_verify(self, outline: JobOutline, attempt: int) -> str:
        """Return which checks are red, one line; empty when all are green."""
        limit = timedelta(seconds=outline.draft_limit_seconds)
        if outline.draft_has_agent:
            self._keep("draft", await draft_with_agents(self._step(), attempt, self._hear, limit))
        elif outline.has_draft:
            self._keep("draft", await call(names.DRAFT, self._step(), StepResult, limit=limit))
        verdicts = await self._run_all(names.RUN_CHECK, "verify", outline.checks)
        red = [f"{name}: {verdict.summary}" for name, verdict in verdicts.items() if verdict.status == "failed"]
        return f"Verification is red: {'; '.join(red)}" if red else ""

    async def _run_all(self, activity: str, stage: str, outlines: Sequence[SourceOutline]) -> dict[str, StepResult]:
        done: dict[str, StepResult] = {}
        for start in range(0, len(outlines), _BATCH):
            batch = outlines[start : start + _BATCH]
            answers = await asyncio.gather(*(self._run_one(activity, outline) for outline in batch))
            for outline, answer in zip(batch, answers, strict=True):
                done[outline.name] = answer
                self._keep(f"{stage}.{outline.name}", answer)
        return done

    async def _run_one(self, activity: str, outline: SourceOutline) -> StepResult:
        # One attempt more than asked for: a worker's death spends an attempt that was not the source's fault.
        retry = RetryPolicy(
            initial_interval=timedelta(milliseconds=200),
            maximum_interval=timedelta(seconds=10),
            maximum_attempts=outline.attempts + 1,
        )
        limit = timedelta(seconds=outline.attempt_limit_seconds)
        pause = _SHORTEST_PAUSE
        while True:
            try:
                return await call(activity, self._step(outline.name), StepResult, limit=limit, retry=retry)
            except ActivityError as error:
                if error_type(error) == names.STORE_TROUBLE:  # no source's fault: a full disk spends no attempt of it
                    await workflow.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                elif outline.optional:
                    return StepResult(status="failed", summary=cause_of(error)[:400])
                else:
                    raise

    def _keep(self, key: str, answer: StepResult) -> None:
        if answer.result is not None:
            self._results[key] = answer.result

    def _step(self, name: str = "") -> StepInput:
        state = self._state
        return StepInput(
            job_id=state.job_id,
            spec=state.spec,
            round=state.round,
            name=name,
            results=self._results,
            edits=state.edits,
            previous=state.previous,
            note=state.note,
            at=self._at,
            parts=state.parts,
        )


def error_type(error: ActivityError) -> str | None:
    """The type that an activity's failure was raised with."""
    return error.cause.type if isinstance(error.cause, ApplicationError) else None
