"""A deploy strands nobody: a worker whose code does not know open work says so and does not poll."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from perdure.contracts import names
from perdure.contracts.job import ThreadState
from tests.support.installation import Installation, wait_until


def test_worker_refuses_to_strand_work_of_other_code(home: Installation) -> None:
    """Open work of an unknown generation is listed with the way on, the worker ends; once it is gone the next polls."""
    old = f"thread/{uuid.uuid4().hex[:8]}"
    asyncio.run(_start_other_generation(home, old))
    assert old in wait_until(lambda: _start_refused(home), "a worker that refuses")
    asyncio.run(_end(home, old))
    wait_until(lambda: not _is_listed(home), "the old work to be gone")
    worker = home.start_worker()
    assert worker.poll() is None
    home.kill_workers()


def _start_refused(home: Installation) -> str:
    """What a worker says that ends by itself; empty when it polls (the server lists new work a moment later)."""
    argv = [sys.executable, "-P", "-m", "perdure.runtime.run_worker", "--data", str(home.settings.data)]
    process = subprocess.Popen(argv, env=home.environ, stderr=subprocess.PIPE, text=True)
    try:
        _, said = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return ""
    assert process.returncode == 69, said
    assert "pip install perdure==" in said
    return said


async def _start_other_generation(home: Installation, workflow_id: str) -> None:
    client = await home.temporal()
    generation = SearchAttributePair(SearchAttributeKey.for_keyword(names.CODE_ATTRIBUTE), "0")
    await client.start_workflow(
        names.THREAD_WORKFLOW,
        ThreadState(thread=workflow_id.removeprefix("thread/")),
        id=workflow_id,
        task_queue=f"nobody-{workflow_id}",
        search_attributes=TypedSearchAttributes([generation]),
    )


async def _end(home: Installation, workflow_id: str) -> None:
    await (await home.temporal()).get_workflow_handle(workflow_id).terminate()


def _is_listed(home: Installation) -> bool:
    async def count() -> int:
        query = f"ExecutionStatus = 'Running' AND {names.CODE_ATTRIBUTE} = '0'"
        return int((await (await home.temporal()).count_workflows(query)).count)

    return asyncio.run(count()) > 0
