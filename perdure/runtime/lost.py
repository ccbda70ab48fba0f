"""Activities that a dead worker was given and never began: they are in no journal.

Temporal says "started" when it hands a task out; a worker that is killed before the task arrives, or before its first
line runs, leaves no entry. The server remembers to whom it gave each task, so a successor asks it for those of dead
workers. It asks after a crash only, about executions that are open, and within a limit of time: whatever is not found
goes on when its own time limit passes.

Temporal also keeps an execution for the worker that ran it last and offers each next workflow task to that one alone,
for the sticky queue's time limit (a second), before anybody else may have it. On the same round it is told not to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution as ExecutionName
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import ResetStickyTaskQueueRequest
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription
from temporalio.converter import ActivitySerializationContext
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

PREDECESSOR_DIED = "PredecessorDied"
RETRY_AT_ONCE = timedelta(milliseconds=1)
LOOK_LIMIT = timedelta(seconds=1.5)
AT_ONCE = 8

log = logging.getLogger("perdure.journal")


def predecessor_died(activity_type: str, attempt: int) -> ApplicationError:
    """The failure that gives an activity of a dead worker out again, at once."""
    return ApplicationError(
        f"The worker that ran attempt {attempt} of {activity_type} died.",
        type=PREDECESSOR_DIED,
        next_retry_delay=RETRY_AT_ONCE,
    )


async def fail_lost(client: Client, dead: Collection[str], *, limit: timedelta = LOOK_LIMIT) -> int:
    """Fail, retryably, what the server gave to a worker whose identity is in ``dead``. Returns how many it took.

    Open executions are kept for no worker any more: the next workflow task of each goes to whoever polls.
    """
    taken = 0
    try:
        async with asyncio.timeout(limit.total_seconds()):
            async for batch in _batches(client):
                counts = await asyncio.gather(*(_fail_in(client, execution, dead) for execution in batch))
                taken += sum(counts)
    except TimeoutError:
        log.warning("not every open execution could be looked at within %s; the rest goes on by itself", limit)
    return taken


async def _batches(client: Client) -> AsyncIterator[list[WorkflowExecution]]:
    """Open executions, newest first, a few at a time."""
    batch: list[WorkflowExecution] = []
    async for execution in client.list_workflows("ExecutionStatus = 'Running'"):
        batch.append(execution)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    yield batch


async def _fail_in(client: Client, execution: WorkflowExecution, dead: Collection[str]) -> int:
    name = ExecutionName(workflow_id=execution.id, run_id=execution.run_id)
    release = ResetStickyTaskQueueRequest(namespace=client.namespace, execution=name)
    try:
        await client.workflow_service.reset_sticky_task_queue(release)
        description = await client.get_workflow_handle(execution.id, run_id=execution.run_id).describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:  # it ended meanwhile
            log.warning("%s could not be looked at: %s", execution.id, error)
        return 0
    lost = [pending for pending in description.raw_description.pending_activities if _is_lost(pending, dead)]
    return sum([await _fail(client, description, pending) for pending in lost])


def _is_lost(pending: PendingActivityInfo, dead: Collection[str]) -> bool:
    started = pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    return started and pending.last_worker_identity in dead


def context_of(
    client: Client, execution: WorkflowExecutionDescription, pending: PendingActivityInfo
) -> ActivitySerializationContext:
    """What the payloads of an activity are bound to."""
    return ActivitySerializationContext(
        namespace=client.namespace,
        activity_id=pending.activity_id,
        activity_type=pending.activity_type.name,
        activity_task_queue=execution.task_queue,
        workflow_id=execution.id,
        workflow_type=execution.workflow_type,
        is_local=False,
    )


async def _fail(client: Client, execution: WorkflowExecutionDescription, pending: PendingActivityInfo) -> int:
    context = context_of(client, execution, pending)
    handle = client.get_async_activity_handle(
        workflow_id=execution.id, run_id=execution.run_id, activity_id=pending.activity_id
    ).with_context(context)
    try:
        await handle.fail(predecessor_died(pending.activity_type.name, pending.attempt))
    except RPCError as error:
        log.warning("activity %s of %s could not be failed: %s", pending.activity_type.name, execution.id, error)
        return 0
    log.info("activity %s of %s goes on after its worker died", pending.activity_type.name, execution.id)
    return 1
