"""How workflows call activities and speak to each other: by name, with a typed contract and explicit limits.

Whoever reaches Temporal's port can answer an activity in flight, fail it, or sit on an id that is ours. What is not
ours is asked for again: every activity may run twice, and whether an effect may start is the ledger's word alone.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TypeVar, cast

from temporalio import workflow
from temporalio.common import (
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    RetryState,
    TimeoutError,
    WorkflowAlreadyStartedError,
)
from temporalio.workflow import ActivityCancellationType, ParentClosePolicy

from perdure.contracts import names
from perdure.contracts.base import Contract, Forged
from perdure.contracts.job import ChildEvent, ClaimInput, ClaimResult, LostJob, Poke

Result = TypeVar("Result", bound=Contract)

HEARTBEAT = timedelta(seconds=5)
TASK_LIMIT = timedelta(seconds=2)
"""A workflow task that died with its worker is tried again after this long (measured: 10 s by default)."""

PATIENT = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10), backoff_coefficient=2.0
)
"""For activities that are idempotent and must come to an end: tried until they do, unless the error says never."""


FORGED = "Forged"
"""Type of the error that the converters make of a failure that no worker of ours reported."""

LIE = timedelta(seconds=1)
"""How long a child of ours has to end, after it was said to have ended and the ledger knew nothing of it."""

AGAIN_FIRST, AGAIN_LONGEST = timedelta(seconds=1), timedelta(minutes=1)
"""How long a forged answer is slept over before it is asked for again: a forger makes a workflow go round, not spin."""


async def call(
    activity: str,
    argument: Contract,
    result: type[Result],
    *,
    limit: timedelta = timedelta(seconds=30),
    retry: RetryPolicy = PATIENT,
) -> Result:
    """Run one activity; ``limit`` is start-to-close of each attempt. Errors arrive as ``ActivityError``."""
    again = AGAIN_FIRST
    while True:
        try:
            answer = await _ask(activity, argument, cast("type[Result]", result | Forged), limit, retry)
        except ActivityError as error:
            if not _is_forged(error, retry):
                raise
        else:
            if not isinstance(answer, Forged):
                return answer
        workflow.logger.warning("an answer of %s was not given by a worker of ours; it is asked again", activity)
        await workflow.sleep(again)
        again = min(again * 2, AGAIN_LONGEST)


async def _ask(activity: str, argument: Contract, result: type[Result], limit: timedelta, retry: RetryPolicy) -> Result:
    answer: Result
    if activity in names.LOCAL_ACTIVITIES:
        answer = await workflow.execute_local_activity(
            activity,
            argument,
            result_type=result,
            start_to_close_timeout=limit,
            retry_policy=retry,
            cancellation_type=ActivityCancellationType.TRY_CANCEL,
        )
        return answer
    answer = await workflow.execute_activity(
        activity,
        argument,
        result_type=result,
        start_to_close_timeout=limit,
        heartbeat_timeout=HEARTBEAT,
        retry_policy=retry,
        cancellation_type=ActivityCancellationType.TRY_CANCEL,
    )
    return answer


def _is_forged(error: ActivityError, retry: RetryPolicy) -> bool:
    """Whether neither a worker of ours nor the server, by the limits that we gave it, ended this activity."""
    cause = error.cause
    if isinstance(cause, CancelledError):
        task = asyncio.current_task()
        return task is None or not task.cancelling()
    if isinstance(cause, TimeoutError):
        # The server gives up on what was given a number of attempts, and says so; else it tries until the end.
        return not retry.maximum_attempts or error.retry_state is not RetryState.MAXIMUM_ATTEMPTS_REACHED
    return not isinstance(cause, ApplicationError) or any(_is_refusal(part) for part in _causes(cause))


def _is_refusal(error: BaseException) -> bool:
    return isinstance(error, ApplicationError) and error.type == FORGED


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None:
        found.append(error)
        error = error.__cause__
    return found


async def start_child(name: str, argument: Contract, child_id: str, *, once: bool = False) -> None:
    """Start a child that outlives its parent; one that runs is left running, and a stranger on its id is ended first.

    ``once``: not again when it has ended. Else starting an ended one again is harmless: it says what the ledger says.
    """
    reuse = WorkflowIDReusePolicy.REJECT_DUPLICATE if once else WorkflowIDReusePolicy.ALLOW_DUPLICATE
    while not await _start(name, argument, child_id, reuse):
        claim = ClaimInput(workflow_id=child_id, parent_id=workflow.info().workflow_id)
        found = await call(names.CLAIM_ID, claim, ClaimResult)
        if found.state == "ours":
            workflow.logger.info("%s has been started before", child_id)
            return
        reuse = WorkflowIDReusePolicy.ALLOW_DUPLICATE


async def _start(name: str, argument: Contract, child_id: str, reuse: WorkflowIDReusePolicy) -> bool:
    try:
        await workflow.start_child_workflow(
            name,
            argument,
            id=child_id,
            parent_close_policy=ParentClosePolicy.ABANDON,
            id_reuse_policy=reuse,
            task_timeout=TASK_LIMIT,
            search_attributes=TypedSearchAttributes(
                [SearchAttributePair(SearchAttributeKey.for_keyword(names.CODE_ATTRIBUTE), names.CODE_GENERATION)]
            ),
        )
    except WorkflowAlreadyStartedError:
        return False
    return True


async def tell(workflow_id: str, event: ChildEvent) -> None:
    """Signal a parent. A job that is not there has ended, or was lost: its thread asks the ledger which.

    An agent that is not there was lost: its job starts it again.
    """
    if await _signal(workflow_id, names.CHILD_SIGNAL, event):
        return
    if workflow_id.startswith("agent/"):
        await _signal(names.job_of(workflow_id), names.POKE_SIGNAL, Poke(about="gate"))
    elif workflow_id.startswith("job/"):
        thread = names.thread_id(names.JobId.parse(workflow_id).thread)
        await _signal(thread, names.REVIVE_SIGNAL, LostJob(job_id=workflow_id))


async def poke(workflow_id: str, message: Poke) -> None:
    """Make a child look into the ledger. One that has ended has looked."""
    await _signal(workflow_id, names.POKE_SIGNAL, message)


async def _signal(workflow_id: str, signal: str, message: Contract) -> bool:
    """Whether it could be told."""
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal(signal, message)
    except ApplicationError as error:
        workflow.logger.warning("%s could not be told %s: %s", workflow_id, signal, error)
        return False
    return True


def check_place(expected: str, *also: str) -> None:
    """Refuse to run under an id that does not belong to the input: somebody else started it.

    Raises:
        ApplicationError: fails the execution.
    """
    found = workflow.info().workflow_id
    if found not in (expected, *also):
        raise ApplicationError(
            f"{found} was started with the input of {expected}; it does nothing.", type=FORGED, non_retryable=True
        )


def cause_of(error: ActivityError) -> str:
    """The message for a person behind a failed activity."""
    cause = error.cause
    while cause is not None and getattr(cause, "cause", None) is not None and not isinstance(cause, ApplicationError):
        cause = cause.cause  # type: ignore[attr-defined]
    return getattr(cause, "message", "") or str(cause or error)
