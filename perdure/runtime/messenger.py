"""What the API says to workflows, and Temporal's failures as our errors. Carries ids, never authority."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal, TypeVar

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from perdure import errors
from perdure.contracts import names
from perdure.contracts.decisions import DecisionNotice, Weighing
from perdure.contracts.job import Admission, AdmitInput, LostJob, Poke, ThreadState
from perdure.contracts.schedules import FireNotice
from perdure.runtime.connect import plain_reason
from perdure.runtime.forgery import MissingKey
from perdure.runtime.pending import read_trouble

Answer = TypeVar("Answer")

ANSWER_LIMIT = timedelta(seconds=30)
"""How long a workflow may take to answer: a worker that is being started again needs a second or two."""

TASK_LIMIT = timedelta(seconds=2)
"""A workflow task that died with its worker is tried again after this long."""

_READY_PAUSE_SECONDS = 0.25
"""Before it is asked again while Temporal takes no update because a workflow's task failed several times in a row: its
worker has just died, or the machine has more to do than it can."""

FAILED_TASKS = 2
"""A thread whose first task was tried more often than that has never begun to run."""

_PAGE = 1000
"""Executions in one answer of a list: the most that the server gives."""

_OURS = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.PerdureError)
}


class Messenger:
    """Speaks to workflows of one installation. ``connect`` is called when first needed, and again after it failed."""

    def __init__(self, connect: Callable[[], Awaitable[Client]], *, limit: timedelta = ANSWER_LIMIT) -> None:
        self._connect = connect
        self.limit = limit
        self._client: Client | None = None
        self._connecting = asyncio.Lock()

    async def admit(self, job: AdmitInput) -> Admission:
        """Ask the job's thread to take it, starting the thread when it is not there. The same job again: same answer.

        Raises:
            SetupError: Temporal or a worker does not answer; the job may be sent again.
            PerdureError: what the thread refused with.
        """
        client = await self.client()
        thread = names.JobId.parse(job.job_id).thread

        def ask() -> Awaitable[Admission]:
            start: WithStartWorkflowOperation[object, ThreadState] = WithStartWorkflowOperation(
                names.THREAD_WORKFLOW,
                ThreadState(thread=thread),
                **_as_thread(thread),
                result_type=ThreadState,
            )
            return client.execute_update_with_start_workflow(
                names.ADMIT_UPDATE,
                job,
                # With the spec's hash: another job under the same id must reach the ledger, which refuses it.
                id=f"{job.job_id}/{job.spec.sha256[:16]}",
                start_workflow_operation=start,
                result_type=Admission,
            )

        try:
            admission: Admission = await self.answered(ask, f"thread {thread}")
        except errors.SetupError as error:
            if await self._end_stranger(names.thread_id(thread)):
                raise errors.SetupError(
                    f"Something that is not Perdure's was running as thread {thread}. It was ended; send this again."
                ) from error
            raise
        return admission

    async def _end_stranger(self, workflow_id: str) -> bool:
        """End what can be no thread of ours: whoever reaches Temporal's port can start something under its id."""
        try:
            handle = (await self.client()).get_workflow_handle(workflow_id)
            found = await self.answered(handle.describe, workflow_id)
            is_strange = await _is_strange(handle, found)
            if is_strange:
                await self.answered(lambda: handle.terminate(reason="It is no thread of Perdure's."), workflow_id)
        except errors.PerdureError:
            return False  # the first error says what is wrong
        return is_strange

    async def tell_gate(self, gate_id: str, notice: DecisionNotice) -> Weighing:
        """Tell a gate that a decision lies in the ledger; telling it twice is telling it once.

        Raises:
            NotFound: there is no such gate, or it has ended.
            Conflict: the gate takes no more decisions.
            SetupError: it cannot be reached now; it may be told again.
        """
        client = await self.client()
        gate = client.get_workflow_handle(gate_id)
        weighing: Weighing = await self.answered(
            lambda: gate.execute_update(names.DECIDE_UPDATE, notice, id=notice.decision_id, result_type=Weighing),
            f"gate {gate_id}",
        )
        return weighing

    async def poke(self, workflow_id: str, poke: Poke) -> None:
        """Say that something was written to the ledger. Raises ``NotFound`` when the workflow is not there or ended."""
        client = await self.client()
        handle = client.get_workflow_handle(workflow_id)
        await self.answered(lambda: handle.signal(names.POKE_SIGNAL, poke), workflow_id)

    async def revive(self, job_id: str) -> None:
        """Have a job's thread look whether its workflow is lost, and start it again where the ledger says it stands."""
        client = await self.client()
        thread = names.JobId.parse(job_id).thread

        def ask() -> Awaitable[WorkflowHandle[Any, Any]]:
            return client.start_workflow(
                names.THREAD_WORKFLOW,
                ThreadState(thread=thread),
                **_as_thread(thread),
                start_signal=names.REVIVE_SIGNAL,
                start_signal_args=[LostJob(job_id=job_id)],
            )

        await self.answered(ask, f"thread {thread}")

    async def fire(self, notice: FireNotice) -> None:
        """Have a schedule's thread look what there is to do, starting the thread when it is not there."""
        client = await self.client()

        def ask() -> Awaitable[WorkflowHandle[Any, Any]]:
            return client.start_workflow(
                names.THREAD_WORKFLOW,
                ThreadState(thread=notice.thread),
                **_as_thread(notice.thread),
                start_signal=names.FIRE_SIGNAL,
                start_signal_args=[notice],
            )

        await self.answered(ask, f"thread {notice.thread}")

    async def describe(self, workflow_id: str) -> Literal["open", "closed", "missing"]:
        """Return what Temporal knows of a workflow."""
        client = await self.client()
        try:
            found = await self.answered(client.get_workflow_handle(workflow_id).describe, workflow_id)
        except errors.NotFound:
            return "missing"
        return "open" if found.status == WorkflowExecutionStatus.RUNNING else "closed"

    async def find_trouble(self, workflow_id: str) -> str:
        """Return why a worker tries an activity of this workflow again; empty when nothing holds it up.

        Raises:
            NotFound: there is no such workflow.
            SetupError: Temporal does not answer.
        """
        client = await self.client()
        found = await self.answered(client.get_workflow_handle(workflow_id).describe, workflow_id)
        for pending in found.raw_description.pending_activities:
            if said := await read_trouble(client, found, pending):
                return said
        return ""

    async def describe_all(self) -> dict[str, Literal["open", "closed"]]:
        """Return what Temporal lists, by workflow id, a thousand executions a question.

        A list may be a second behind. What has been closed and runs again is open.
        """
        client = await self.client()
        found: dict[str, Literal["open", "closed"]] = {}

        async def read() -> None:
            async for execution in client.list_workflows(page_size=_PAGE):
                if execution.status is WorkflowExecutionStatus.RUNNING:
                    found[execution.id] = "open"
                else:
                    found.setdefault(execution.id, "closed")

        await self.answered(read, "the list of executions")
        return found

    async def has_worker(self) -> bool:
        """Whether a worker polls the queue (Temporal forgets one five minutes after its last poll)."""
        client = await self.client()
        request = DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=names.QUEUE),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        answer = await self.answered(lambda: client.workflow_service.describe_task_queue(request), "the task queue")
        return bool(answer.pollers)

    async def client(self) -> Client:
        """Return the connection, made when first needed. Raises ``SetupError`` when there is nothing to connect to."""
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    async def answered(self, ask: Callable[[], Awaitable[Answer]], whom: str) -> Answer:
        """Ask Temporal, with its failures as our errors. What is asked must be idempotent."""
        try:
            with _translated(whom, self.limit):
                async with asyncio.timeout(self.limit.total_seconds()):
                    return await _when_ready(ask)
        except errors.SetupError:
            self._client = None  # a server that was started again may have moved to another port
            raise


async def _when_ready(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask, and again for as long as the workflow's task is being tried again. What is asked must be idempotent."""
    while True:
        try:
            return await ask()
        except RPCError as error:
            if error.status is not RPCStatusCode.FAILED_PRECONDITION:
                raise
        await asyncio.sleep(_READY_PAUSE_SECONDS)


async def _is_strange(handle: WorkflowHandle[Any, Any], found: WorkflowExecutionDescription) -> bool:
    """Another kind of workflow, on a queue where nobody of ours is, or started so that its first task always fails."""
    if found.status is not WorkflowExecutionStatus.RUNNING:
        return False
    if (found.workflow_type, found.task_queue) != (names.THREAD_WORKFLOW, names.QUEUE):
        return True
    if found.raw_description.pending_workflow_task.attempt <= FAILED_TASKS:
        return False
    events = handle.fetch_history_events()
    return not any([event.HasField("workflow_task_completed_event_attributes") async for event in events])


def _as_thread(thread: str) -> dict[str, Any]:
    """How a thread's workflow is started, or found when it is there."""
    return {
        "id": names.thread_id(thread),
        "task_queue": names.QUEUE,
        "id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING,
        "task_timeout": TASK_LIMIT,
        "search_attributes": generation(),
    }


def generation() -> TypedSearchAttributes:
    """The attribute that every execution of ours carries."""
    key = SearchAttributeKey.for_keyword(names.CODE_ATTRIBUTE)
    return TypedSearchAttributes([SearchAttributePair(key, names.CODE_GENERATION)])


@contextmanager
def _translated(whom: str, limit: timedelta) -> Iterator[None]:
    try:
        yield
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the SDK gives a cancelled task this error in place of its own
            raise asyncio.CancelledError from error
        raise errors.SetupError(
            f"{whom} did not answer within {limit.total_seconds():.0f} s. Is a worker running? `perdure status` tells."
        ) from error
    except WorkflowUpdateFailedError as error:
        raise _as_ours(error) from error
    except MissingKey as error:
        raise errors.SetupError(f"{whom} answered what cannot be read. {error}") from error
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise errors.NotFound(f"{whom} is not there, or has ended ({error.message}).") from error
        raise errors.SetupError(
            f"Temporal cannot pass this on to {whom} ({plain_reason(error.message)}). Try again."
        ) from error


def _as_ours(error: BaseException) -> errors.PerdureError:
    """The innermost error that one of ours was raised as; a failed stage when there is none."""
    found: errors.PerdureError = errors.StageFailed(str(error))
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ApplicationError) and cause.type in _OURS:
            found = _OURS[cause.type](cause.message)
        cause = getattr(cause, "cause", None)
    return found
