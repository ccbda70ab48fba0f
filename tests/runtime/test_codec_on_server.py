"""The codec on a real server: what a history shows, what a forger gets."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueRequest, SignalWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from perdure.testing.server import RunningServer
from tests.runtime.small_workflows import BigWorkflow, EchoWorkflow, TalkWorkflow, Words, say

LIMIT = timedelta(seconds=20)
SECRET = "swordfish"


@pytest.fixture
def queue() -> str:
    return f"queue-{uuid.uuid4().hex}"


@pytest_asyncio.fixture
async def worker(client: Client, queue: str) -> AsyncIterator[Worker]:
    restrictions = SandboxRestrictions.default.with_passthrough_modules("perdure")
    async with Worker(
        client,
        task_queue=queue,
        workflows=[TalkWorkflow, EchoWorkflow, BigWorkflow],
        activities=[say],
        workflow_runner=SandboxedWorkflowRunner(restrictions=restrictions),
        max_cached_workflows=0,
    ) as running:
        yield running


@pytest_asyncio.fixture
async def forger(server: RunningServer) -> Client:
    """Somebody who reaches the port and has no key."""
    return await Client.connect(server.address, data_converter=pydantic_data_converter)


async def talk(client: Client, queue: str, text: str = SECRET) -> WorkflowHandle[TalkWorkflow, Words]:
    return await client.start_workflow(
        TalkWorkflow.run,
        Words(text=text),
        id=f"talk/{uuid.uuid4().hex}",
        task_queue=queue,
        task_timeout=timedelta(seconds=2),
    )


async def stored(handle: WorkflowHandle[TalkWorkflow, Words]) -> bytes:
    """Everything the server holds of a run."""
    history = await handle.fetch_history()
    return b"".join(event.SerializeToString() for event in history.events)


async def test_histories_show_no_text(client: Client, forger: Client, worker: Worker, queue: str) -> None:
    """Start, activity, signal, update, query, child, continue-as-new and results all pass, and none is readable."""
    handle = await talk(client, queue)
    assert await handle.execute_update(TalkWorkflow.ask, Words(text=SECRET)) == Words(text=SECRET)
    assert await handle.query(TalkWorkflow.told, Words(text=SECRET)) == Words(text=SECRET)
    await handle.signal(TalkWorkflow.hear, Words(text=f"{SECRET} too"))
    assert await handle.result() == Words(text=f"again {SECRET} and {SECRET} too")
    for seen in (handle.id, f"{handle.id}/child"):
        assert SECRET.encode() not in await stored(forger.get_workflow_handle(seen))


async def test_failures_show_no_text(client: Client, forger: Client, worker: Worker, queue: str) -> None:
    """What went wrong is as private as what was asked."""
    handle = await talk(client, queue, f"fail {SECRET}")
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert SECRET in str(caught.value.cause.__cause__)
    assert SECRET.encode() not in await stored(forger.get_workflow_handle(handle.id))


async def test_forged_start_fails_at_once(forger: Client, worker: Worker, queue: str) -> None:
    """A workflow started without the key ends as failed; it is not retried for ever."""
    handle = await talk(forger, queue)
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "Forged"


async def test_forged_calls_disturb_no_workflow(client: Client, forger: Client, worker: Worker, queue: str) -> None:
    """A forged signal is dropped, a forged update rejected, a forged query refused; the workflow ends as it would."""
    handle = await talk(client, queue)
    forged = forger.get_workflow_handle(handle.id)
    await forged.signal("hear", Words(text="forged"))
    with pytest.raises(WorkflowUpdateFailedError):
        await forged.execute_update("ask", Words(text="forged"))
    with pytest.raises(WorkflowQueryFailedError):
        await forged.query("told", Words(text="forged"))
    await handle.signal(TalkWorkflow.hear, Words(text="real"))
    assert await handle.result() == Words(text=f"again {SECRET} and real")


async def test_moved_payload_is_refused(client: Client, worker: Worker, queue: str) -> None:
    """A signal sealed for one workflow says nothing to another."""
    one, two = await talk(client, queue), await talk(client, queue)
    await one.signal(TalkWorkflow.hear, Words(text="for one"))
    await one.result()  # until then the signal may be held back from the history
    history = await one.fetch_history()
    signals = [e for e in history.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED]
    request = _signal_request(client, two.id, signals[0])
    await client.workflow_service.signal_workflow_execution(request)
    await two.signal(TalkWorkflow.hear, Words(text="for two"))
    assert (await two.result()).text.endswith("and for two")


def _signal_request(client: Client, workflow_id: str, event: HistoryEvent) -> SignalWorkflowExecutionRequest:
    request = SignalWorkflowExecutionRequest(namespace=client.namespace, signal_name="hear", identity="forger")
    request.workflow_execution.workflow_id = workflow_id
    request.input.CopyFrom(event.workflow_execution_signaled_event_attributes.input)
    return request


async def test_forged_activity_result_fails_the_workflow(client: Client, forger: Client, queue: str) -> None:
    """A result that no worker of ours gave is never believed, and the workflow is not stuck on it."""
    workflows_only = SandboxRestrictions.default.with_passthrough_modules("perdure")
    async with Worker(
        client,
        task_queue=queue,
        workflows=[TalkWorkflow],
        workflow_runner=SandboxedWorkflowRunner(restrictions=workflows_only),
    ):
        handle = await talk(client, queue)
        poll = PollActivityTaskQueueRequest(namespace=client.namespace, identity="forger")
        poll.task_queue.name = queue
        task = await forger.workflow_service.poll_activity_task_queue(poll)
        await forger.get_async_activity_handle(task_token=task.task_token).complete(Words(text="forged"))
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == "Forged"


@pytest.mark.parametrize("what", ["argument", "answer"])
async def test_large_value_fails_before_scheduling(client: Client, worker: Worker, queue: str, what: str) -> None:
    """An argument or a workflow's own result above the limit fails the workflow by name; nothing was scheduled."""
    handle = await client.start_workflow(BigWorkflow.run, what, id=f"big/{uuid.uuid4().hex}", task_queue=queue)
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "TooLarge"
    events = [event.event_type for event in (await handle.fetch_history()).events]
    assert EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED not in events
    assert EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED not in events


async def test_activity_result_above_the_limit_is_not_retried(client: Client, worker: Worker, queue: str) -> None:
    """An activity whose result is too large fails once, by name."""
    handle = await client.start_workflow(BigWorkflow.run, "result", id=f"big/{uuid.uuid4().hex}", task_queue=queue)
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ActivityError)
    assert isinstance(caught.value.cause.cause, ApplicationError)
    assert caught.value.cause.cause.type == "TooLarge"


async def test_long_failure_of_an_activity_reaches_the_workflow(client: Client, worker: Worker, queue: str) -> None:
    """A failure with a very long text is told, cut."""
    handle = await client.start_workflow(BigWorkflow.run, "failure", id=f"big/{uuid.uuid4().hex}", task_queue=queue)
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ActivityError)
    assert isinstance(caught.value.cause.cause, ApplicationError)
    assert caught.value.cause.cause.message.startswith("failééé")


async def test_client_cannot_start_with_a_value_above_the_limit(client: Client, queue: str) -> None:
    """A start above the limit is refused before it is sent."""
    with pytest.raises(ApplicationError, match="Store it as a blob"):
        await talk(client, queue, "x" * 20_000)
    assert [found async for found in client.list_workflows(f"TaskQueue = '{queue}'")] == []
