"""A worker process that can be killed inside an activity: ``journal_worker.py DATA ADDRESS QUEUE STAY|LOSE|PASS``."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from temporalio import activity, workflow
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueRequest
from temporalio.common import RetryPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from perdure.runtime.connect import connect
from perdure.runtime.exit import leave
from perdure.runtime.journal import JournalInterceptor, fail_predecessors
from perdure.settings import Settings

LONG = timedelta(minutes=10)


@workflow.defn(name="outlives")
class OutlivesWorkflow:
    """Runs one activity that nobody but the journal would give out again soon."""

    @workflow.run
    async def run(self, text: str) -> str:
        """Run it."""
        slow = RetryPolicy(initial_interval=LONG)
        return str(await workflow.execute_activity("work", text, start_to_close_timeout=LONG, retry_policy=slow))


def build(data: Path, *, stay: bool) -> object:
    """The activity: the first process writes that it began and stays; a later one answers with its attempt."""

    @activity.defn(name="work")
    async def work(text: str) -> str:
        if stay:
            (data / "began").write_text(text)
            await asyncio.Event().wait()
        return f"{text} at attempt {activity.info().attempt}"

    return work


async def main(data: Path, address: str, queue: str, mode: str) -> None:
    """Poll for ever, after failing what a dead predecessor left. ``LOSE``: be given an activity and never begin it."""
    settings = Settings(data=data, temporal_address=address)
    client = await connect(settings, role="test-worker")
    (data / "failed").write_text(str(await fail_predecessors(client, settings.journal)))
    if mode == "LOSE":
        poll = PollActivityTaskQueueRequest(namespace=client.namespace, identity=client.identity)
        poll.task_queue.name = queue
        task = await client.workflow_service.poll_activity_task_queue(poll)
        (data / "began").write_bytes(task.task_token)
    async with Worker(
        client,
        task_queue=queue,
        workflows=[OutlivesWorkflow],
        activities=[build(data, stay=mode == "STAY")],  # type: ignore[list-item]
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=[JournalInterceptor(settings.journal)],
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
    ):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
    leave(0)
