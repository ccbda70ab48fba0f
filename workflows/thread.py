"""A thread: a lasting workspace with one responsibility. It admits jobs, once each, and remembers which are open."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from perdure.contracts import names
from perdure.contracts.base import BlobRef
from perdure.contracts.job import (
    Admission,
    AdmitInput,
    ArchiveInput,
    ChildEvent,
    Done,
    FoundJob,
    JobState,
    LostJob,
    Poke,
    ThreadState,
)
from perdure.contracts.schedules import FireNotice, FireTaken
from workflows.calls import call, cause_of, check_place, poke, start_child

_ARCHIVE_LIMIT = timedelta(minutes=2)
_ARCHIVE_ATTEMPTS = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=6)
_ARCHIVE_PAUSE = timedelta(minutes=5)
_HELD_FIRST, _HELD_LONGEST = timedelta(seconds=2), timedelta(minutes=5)
"""How long until a held fire is looked at again when no job of the thread has ended: the one that it waits for may have
begun to wait for a person."""
_REMEMBERED = 50
"""Job ids kept beside the open ones; what is older the ledger knows (it refuses a second admission by itself)."""


@workflow.defn(name=names.THREAD_WORKFLOW)
class ThreadWorkflow:
    """Lives as long as its responsibility; carries on as a new run when its history grows."""

    @workflow.init
    def __init__(self, state: ThreadState) -> None:
        check_place(names.thread_id(state.thread))
        self._thread = state.thread
        self._open = list(state.open_jobs)
        self._ended = list(state.ended)
        self._seen = list(state.seen)
        self._held = list(state.held)
        self._ends = 0
        self._letting_go: asyncio.Task[None] | None = None
        self._admitting = asyncio.Lock()

    @workflow.run
    async def run(self, state: ThreadState) -> ThreadState:
        """Admit until Temporal suggests a new run, then carry the state over. Histories of ended jobs are kept."""
        self._look_after_held()
        while not workflow.info().is_continue_as_new_suggested():
            await workflow.wait_condition(lambda: bool(self._ended) or workflow.info().is_continue_as_new_suggested())
            tried = list(self._ended)
            kept = [job_id for job_id in tried if await self._archive(job_id)]
            self._ended = [job_id for job_id in self._ended if job_id not in kept]
            if len(kept) < len(tried):
                await self._pause(len(tried) - len(kept))
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(self.state())

    async def _archive(self, job_id: str) -> bool:
        """Whether a job's histories are kept. One that still runs, whoever started it, must not hold up the others."""
        try:
            await call(
                names.ARCHIVE_JOB, ArchiveInput(job_id=job_id), Done, limit=_ARCHIVE_LIMIT, retry=_ARCHIVE_ATTEMPTS
            )
        except ActivityError as error:
            workflow.logger.warning("%s is not archived yet: %s", job_id, cause_of(error))
            return False
        return True

    async def _pause(self, left: int) -> None:
        """Until one more job has ended, or it is time to try the others again."""
        with contextlib.suppress(asyncio.TimeoutError):
            await workflow.wait_condition(
                lambda: len(self._ended) > left or workflow.info().is_continue_as_new_suggested(),
                timeout=_ARCHIVE_PAUSE,
            )

    @workflow.update(name=names.ADMIT_UPDATE)
    async def admit(self, request: AdmitInput) -> Admission:
        """Number the job in the ledger and start it. The same job again gives the same answer and starts nothing."""
        async with self._admitting:
            admission = await call(names.ADMIT_JOB, request, Admission)
            await self._start(request.job_id, request.spec)
        return admission

    async def _start(self, job_id: str, spec: BlobRef) -> None:
        if job_id not in self._seen:
            await start_child(names.JOB_WORKFLOW, JobState(job_id=job_id, spec=spec), job_id, once=True)
            self._open.append(job_id)
            self._seen = [*self._seen, job_id][-_REMEMBERED:]

    @admit.validator
    def check_admission(self, request: AdmitInput) -> None:
        """Keep a job of another thread out of this history."""
        if names.JobId.parse(request.job_id).thread != self._thread:
            raise ApplicationError(f"{request.job_id} does not belong to thread {self._thread}.", type="UserError")

    @workflow.signal(name=names.CHILD_SIGNAL)
    def hear_child(self, event: ChildEvent) -> None:
        """A job has ended."""
        if event.child_id in self._open:
            self._open.remove(event.child_id)
            self._ended.append(event.child_id)
            self._ends += 1

    @workflow.signal(name=names.FIRE_SIGNAL)
    async def fire(self, notice: FireNotice) -> None:
        """A schedule is due, or may have something to do: the ledger says what."""
        if notice.thread == self._thread:
            await self._look_at(notice)
            self._look_after_held()

    async def _look_at(self, notice: FireNotice) -> None:
        """Start what the ledger makes of a schedule's fires, one after the other."""
        async with self._admitting:
            again = True
            while again:
                try:
                    taken = await call(names.LOOK_AT_SCHEDULE, notice, FireTaken)
                except ActivityError as error:
                    workflow.logger.warning("%s could not be looked at: %s", notice.schedule, cause_of(error))
                    return
                for job in taken.jobs:
                    await self._start(job.job_id, job.spec)
                again = taken.again
            self._held = [name for name in self._held if name != notice.schedule]
            if taken.held:
                self._held.append(notice.schedule)

    def _look_after_held(self) -> None:
        if self._held and (self._letting_go is None or self._letting_go.done()):
            self._letting_go = asyncio.create_task(self._let_go())

    async def _let_go(self) -> None:
        """Look at held fires whenever a job ends, and now and then: their job may have parked."""
        pause = _HELD_FIRST
        while self._held and not workflow.info().is_continue_as_new_suggested():
            ends = self._ends
            with contextlib.suppress(asyncio.TimeoutError):
                await workflow.wait_condition(lambda ends=ends: self._ends > ends, timeout=pause)  # type: ignore[misc]
            for schedule in list(self._held):
                await self._look_at(FireNotice(thread=self._thread, schedule=schedule))
            pause = _HELD_FIRST if self._ends > ends else min(pause * 2, _HELD_LONGEST)

    @workflow.signal(name=names.REVIVE_SIGNAL)
    async def revive(self, lost: LostJob) -> None:
        """Start a job again where the ledger says that it stands. One that runs, or has ended, is left alone."""
        async with self._admitting:
            try:
                found = await call(names.READ_JOB, lost, FoundJob)
            except ActivityError as error:
                workflow.logger.warning("%s is not started again: %s", lost.job_id, cause_of(error))
                return
            if found.state is not None and names.JobId.parse(lost.job_id).thread == self._thread:
                await start_child(names.JOB_WORKFLOW, found.state, lost.job_id)
                self._open = [*(job for job in self._open if job != lost.job_id), lost.job_id]
                await poke(lost.job_id, Poke(about="cancel"))

    @workflow.query(name=names.STATE_QUERY)
    def state(self) -> ThreadState:
        """Open and remembered jobs."""
        return ThreadState(
            thread=self._thread, open_jobs=self._open, ended=self._ended, seen=self._seen, held=self._held
        )
