"""How workflows call activities and speak to each other: by name, with a typed contract and explicit limits."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.common import (
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import ActivityError, ApplicationError, WorkflowAlreadyStartedError
from temporalio.workflow import ActivityCancellationType, ParentClosePolicy

from perdure.contracts import names
from perdure.contracts.base import Contract
from perdure.contracts.job import ChildEvent

Result = TypeVar("Result", bound=Contract)

HEARTBEAT = timedelta(seconds=5)
TASK_LIMIT = timedelta(seconds=2)
"""A workflow task that died with its worker is tried again after this long (measured: 10 s by default)."""

PATIENT = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10), backoff_coefficient=2.0
)
"""For activities that are idempotent and must come to an end: tried until they do, unless the error says never."""


async def call(
    activity: str,
    argument: Contract,
    result: type[Result],
    *,
    limit: timedelta = timedelta(seconds=30),
    retry: RetryPolicy = PATIENT,
) -> Result:
    """Run one activity; ``limit`` is start-to-close of each attempt. Errors arrive as ``ActivityError``."""
    answer: Result = await workflow.execute_activity(
        activity,
        argument,
        result_type=result,
        start_to_close_timeout=limit,
        heartbeat_timeout=HEARTBEAT,
        retry_policy=retry,
        cancellation_type=ActivityCancellationType.TRY_CANCEL,
    )
    return answer


async def start_child(name: str, argument: Contract, child_id: str) -> None:
    """Start a child that outlives its parent; starting it twice is starting it once."""
    try:
        await workflow.start_child_workflow(
            name,
            argument,
            id=child_id,
            parent_close_policy=ParentClosePolicy.ABANDON,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            task_timeout=TASK_LIMIT,
            search_attributes=TypedSearchAttributes(
                [SearchAttributePair(SearchAttributeKey.for_keyword(names.CODE_ATTRIBUTE), names.CODE_GENERATION)]
            ),
        )
    except WorkflowAlreadyStartedError:
        workflow.logger.info("%s has been started before", child_id)


async def tell(workflow_id: str, event: ChildEvent) -> None:
    """Signal a parent. A parent that has ended needs no telling: the ledger holds the same fact."""
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal(names.CHILD_SIGNAL, event)
    except ApplicationError as error:
        workflow.logger.warning("%s could not be told of %s: %s", workflow_id, event.state, error)


def cause_of(error: ActivityError) -> str:
    """The message for a person behind a failed activity."""
    cause = error.cause
    while cause is not None and getattr(cause, "cause", None) is not None and not isinstance(cause, ApplicationError):
        cause = cause.cause  # type: ignore[attr-defined]
    return getattr(cause, "message", "") or str(cause or error)
