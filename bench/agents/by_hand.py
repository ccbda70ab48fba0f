"""A durable loop written by hand on Temporal: ``python -m bench.agents.by_hand URL FOLDER ADDRESS DATABASE``.

The least that a durable conversation needs: messages lie in SQLite as the bytes that go out, an activity
for each model call and each tool call, numbers and names in history. No permissions, limits, people or records. What
Perdure costs more than this is what those cost.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from temporalio.client import Client
    from temporalio.worker import Worker

    from bench.agents.load import Load
    from bench.agents.steps import Steps

QUEUE = "bench-by-hand"


@workflow.defn(name="bench.by-hand")
class ByHand:
    """Ask, read, ask again."""

    @workflow.run
    async def run(self, run: str, task: str) -> int:
        """Return how many messages there are in the end."""
        await self._do("begin", run, task)
        number = 1
        while True:
            calls = await self._do("ask", run, number)
            if not calls:
                return number
            await asyncio.gather(*(self._do("read", run, number, place) for place in range(calls)))
            number += 1 + calls

    async def _do(self, name: str, *arguments: object) -> int:
        found: int = await workflow.execute_activity(
            name,
            args=list(arguments),
            result_type=int,
            start_to_close_timeout=timedelta(minutes=2),
            heartbeat_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=200)),
        )
        return found


async def main(url: str, folder: Path, address: str, database: Path) -> None:
    """Run the worker, and start what standard input says."""
    client = await Client.connect(address)
    steps = Steps(url, folder, database)
    async with (
        Worker(client, task_queue=QUEUE, workflows=[ByHand], activities=[steps.begin, steps.ask, steps.read]),
        asyncio.TaskGroup() as group,
    ):
        while line := await asyncio.to_thread(sys.stdin.readline):
            name, turns, hold = line.split()
            group.create_task(_one(client, Load(name, int(turns), hold == "1")))


async def _one(client: Client, load: Load) -> None:
    about = [load.run, load.task]
    await client.execute_workflow("bench.by-hand", args=about, id=f"by-hand/{load.run}", task_queue=QUEUE)
    print(load.run, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])))
