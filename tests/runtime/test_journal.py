"""The journal of activities in flight: a killed worker costs a moment, not the activity's time limit."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from perdure.runtime.journal import JournalInterceptor, fail_predecessors, sign_out
from perdure.runtime.state import process_name
from perdure.settings import Settings
from perdure.testing.server import RunningServer
from tests.runtime.journal_worker import OutlivesWorkflow
from tests.runtime.waiting import wait_until

SCRIPT = Path(__file__).with_name("journal_worker.py")
LIMIT = timedelta(minutes=10)

StartWorker = Callable[[str, str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start_worker(settings: Settings, server: RunningServer) -> Iterator[StartWorker]:
    """Starts worker processes on one data folder and ends them all."""
    running: list[subprocess.Popen[bytes]] = []

    def start(queue: str, mode: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-P", str(SCRIPT), str(settings.data), server.address, queue, mode]
        with (settings.data / "worker.log").open("ab") as output:
            running.append(subprocess.Popen(argv, stdout=output, stderr=output))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


async def begin(
    client: Client, settings: Settings, start: StartWorker, queue: str, mode: str = "STAY"
) -> tuple[Any, subprocess.Popen[bytes]]:
    """A workflow whose activity has begun in a worker process."""
    worker = start(queue, mode)
    handle = await client.start_workflow(
        "outlives", "work", id=f"outlives/{queue}", task_queue=queue, result_type=str, task_timeout=timedelta(seconds=2)
    )
    await asyncio.to_thread(wait_until, (settings.data / "began").exists, "the activity began")
    return handle, worker


async def test_killed_worker_costs_a_moment(client: Client, settings: Settings, start_worker: StartWorker) -> None:
    """An activity of ten minutes goes on at once when its killed worker's successor starts, as attempt 2."""
    queue = uuid.uuid4().hex
    handle, worker = await begin(client, settings, start_worker, queue)
    worker.kill()
    worker.wait()
    start_worker(queue, "PASS")
    assert await asyncio.wait_for(handle.result(), 30) == "work at attempt 2"
    assert (settings.data / "failed").read_text() == "1"
    history = await handle.fetch_history()
    # No workflow task waited for the dead worker: none was offered to its own queue until a time limit.
    assert EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT not in [event.event_type for event in history.events]
    started = [e for e in history.events if e.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED]
    failure = started[-1].activity_task_started_event_attributes.last_failure
    assert failure.application_failure_info.type == "PredecessorDied"


async def test_unreaped_worker_counts_as_dead(client: Client, settings: Settings, start_worker: StartWorker) -> None:
    """A killed worker whose parent has not looked yet does not hold up its successor."""
    queue = uuid.uuid4().hex
    handle, worker = await begin(client, settings, start_worker, queue)
    worker.kill()
    start_worker(queue, "PASS")
    assert await asyncio.wait_for(handle.result(), 30) == "work at attempt 2"


async def test_activity_that_never_reached_its_worker_goes_on(
    client: Client, settings: Settings, start_worker: StartWorker
) -> None:
    """A task that the server gave to a worker which died before it could begin is given out again too."""
    queue = uuid.uuid4().hex
    async with Worker(
        client, task_queue=queue, workflows=[OutlivesWorkflow], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        handle, worker = await begin(client, settings, start_worker, queue, mode="LOSE")
        assert list(settings.journal.glob("*.json")) == []
        worker.kill()
        worker.wait()
        start_worker(queue, "PASS")
        assert await asyncio.wait_for(handle.result(), 30) == "work at attempt 2"


async def test_worker_that_ended_in_order_is_not_asked_after(client: Client, settings: Settings) -> None:
    """A worker that signed out leaves no identity to look for; one that is alive is not looked for either."""
    await fail_predecessors(client, settings.journal)
    assert [path.suffix for path in settings.journal.iterdir()] == [".worker"]
    assert await fail_predecessors(client, settings.journal) == 0
    sign_out(settings.journal)
    assert list(settings.journal.iterdir()) == []


async def test_running_workers_activities_are_left_alone(
    client: Client, settings: Settings, start_worker: StartWorker
) -> None:
    """What a worker that still runs has in flight is not failed by another one that starts."""
    handle, _ = await begin(client, settings, start_worker, uuid.uuid4().hex)
    assert await fail_predecessors(client, settings.journal) == 0
    assert len(list(settings.journal.glob("*.json"))) == 1
    [pending] = (await handle.describe()).raw_description.pending_activities
    assert pending.attempt == 1


@workflow.defn(name="quick")
class QuickWorkflow:
    """Runs one quick activity."""

    @workflow.run
    async def run(self) -> str:
        """Run it."""
        return await workflow.execute_activity("quick", result_type=str, start_to_close_timeout=LIMIT)


async def run_quick(client: Client, interceptor: JournalInterceptor, act: Callable[[], str]) -> Any:
    """Run one activity through the journal to its end."""
    named = activity.defn(name="quick")(act)
    queue = uuid.uuid4().hex
    with ThreadPoolExecutor(1) as threads:
        worker = Worker(
            client,
            task_queue=queue,
            workflows=[QuickWorkflow],
            activities=[named],
            workflow_runner=UnsandboxedWorkflowRunner(),
            interceptors=[interceptor],
            activity_executor=threads,
        )
        async with worker:
            return await client.execute_workflow("quick", id=f"quick/{queue}", task_queue=queue, result_type=str)


async def test_entry_is_there_while_the_activity_runs_and_a_moment_longer(client: Client, settings: Settings) -> None:
    """The entry is written before the activity runs and stays until its result has surely arrived."""
    seen: list[dict[str, Any]] = []

    def act() -> str:
        seen.extend(json.loads(path.read_text()) for path in settings.journal.glob("*.json"))
        return "done"

    linger = timedelta(milliseconds=300)
    assert await run_quick(client, JournalInterceptor(settings.journal, linger=linger), act) == "done"
    [entry] = seen
    assert (entry["activity_type"], entry["attempt"], entry["process"]) == ("quick", 1, process_name(os.getpid()))
    assert (next(settings.journal.glob("*.json")).stat().st_mode & 0o777) == 0o600
    deadline = time.monotonic() + 20
    while list(settings.journal.iterdir()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_failing_what_has_ended_changes_nothing(client: Client, settings: Settings) -> None:
    """An entry that outlived its activity is dropped without harm; one of a later attempt's predecessor too."""
    interceptor = JournalInterceptor(settings.journal, linger=timedelta(minutes=1))
    await run_quick(client, interceptor, lambda: "done")
    [path] = settings.journal.glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "process": "an-earlier-boot/1/1"}))
    assert await fail_predecessors(client, settings.journal) == 0
    assert list(settings.journal.glob("*.json")) == []


async def test_full_disk_does_not_stop_an_activity(client: Client, settings: Settings) -> None:
    """An activity runs although the journal cannot be written."""
    settings.journal.write_text("a file where the folder should be")
    assert await run_quick(client, JournalInterceptor(settings.journal), lambda: "done") == "done"


async def test_damaged_entry_is_dropped(client: Client, settings: Settings) -> None:
    """A half-written entry stops nobody from starting."""
    settings.journal.mkdir()
    (settings.journal / "half.json").write_text('{"token": "')
    assert await fail_predecessors(client, settings.journal) == 0
    assert list(settings.journal.glob("*.json")) == []


def test_process_names_differ_in_time() -> None:
    """A name stands for one process of one boot, not for a pid."""
    first = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert process_name(first.pid).split("/")[1] == str(first.pid)
        assert process_name(first.pid) != process_name(os.getpid())
    finally:
        first.communicate(b"\n")
    assert process_name(first.pid) == ""
