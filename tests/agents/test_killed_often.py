"""One run whose workers die one after the other, each at its next step: what was said and done is as if none had."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, read, wait_until, write

LONG, SHORT = 30, 3

POINTS = {
    "after each answer is stored": "agents.end_turn#1:after",
    "before the second answer is stored": "agents.end_turn#2:before",
    "after each call is stored": "agents.end_call#1:after",
    "before the second call is stored": "agents.end_call#2:before",
    "after the second file is written": "tool.run[files.write]#2:after",
    "after each command has run": "tool.run[shell.run]#1:after",
}
"""Each worker gets one step further, or one step and the half of the next."""

COUNT = {"tool": "shell.run", "with": {"command": "echo once >> COUNTED"}}


def script(turns: int) -> dict[str, Any]:
    """Each turn reads, writes a file of its own and runs a command that leaves a trace, beside each other."""
    work = [{"calls": [read("NOTE"), write(f"file-{number}", f"{number}\n"), COUNT]} for number in range(turns)]
    return {"turns": [*work, {"calls": [write("NOTE", "the first note\n")]}, {"text": "Done."}]}


def run_by_dying_workers(place: Office, point: str, each: Callable[[JobView, int], None]) -> tuple[JobView, int]:
    """Run a job by workers that die at ``point``, until it waits for a person; return it, and how many died."""
    worker = place.home.start_worker(point)
    job = place.start("long")
    died = 0
    while True:
        wait_until(lambda w=worker: w.poll() is not None or _is_over(place, job), "death or the job's end")
        if worker.poll() is None:
            return job, died
        assert worker.poll() == -signal.SIGKILL, place.home.worker_log()
        died += 1
        each(job, died)
        worker = place.home.start_worker(point)


def _is_over(place: Office, job: JobView) -> bool:
    phase = place.home.job(job).phase
    assert not phase.is_final and phase is not JobPhase.paused, place.home.job(job).summary
    return phase is JobPhase.waiting


def _runs_of_each() -> list[object]:
    """All points over the long run, and one of them over a short one in every ordinary run of the tests."""
    marks = (pytest.mark.torture, pytest.mark.timeout(1200))  # ninety workers start one after the other
    long = [pytest.param(LONG, point, marks=marks, id=f"{point} ({LONG} turns)") for point in POINTS]
    return [pytest.param(SHORT, "after each call is stored", id="after each call is stored"), *long]


@pytest.mark.parametrize(("turns", "point"), _runs_of_each())
def test_killed_at_every_step_nothing_but_the_call_in_flight_is_doubled(tmp_path: Path, turns: int, point: str) -> None:
    """Every answer and result once, in place; every command at most once; only a turn in flight is asked again."""
    with model_server(script(turns)) as model, office(tmp_path, model) as place:
        job, died = run_by_dying_workers(place, POINTS[point], lambda _job, _died: None)
        assert died >= turns // 2
        messages = place.transcript(job)
        told = [message.source for message in messages]
        assert told == ["charter", "goal", *(["model", *["tool"] * 3] * turns), "model", "tool", "model"]
        results = [message.results[0] for message in messages if message.results]
        asked = [call.id for message in messages for call in message.calls]
        assert [result.call_id for result in results] == asked
        calls = place.calls(job)
        assert len(calls) == 3 * turns + 1
        assert {call.tool for call in calls if call.status == "unknown"} <= {"shell.run"}
        unknown = sum(call.status == "unknown" for call in calls)
        counted = place.home.review(job).diff.count("+once")
        assert turns - unknown <= counted <= turns
        again = len(model.requests()) - (turns + 2)
        assert 0 <= again <= (died if "before the second answer" in point else 1)
        assert place.home.review(job).files == turns + 2


def test_what_is_said_at_each_step_is_in_one_request_first_and_never_twice(tmp_path: Path) -> None:
    """A word after every answer, over deaths of workers and runs that continue as new: each is heard once, in order."""
    turns = 6
    config = {"limit.historyCount.suggestContinueAsNew": 30}
    with (
        model_server(script(turns)) as model,
        office(tmp_path, model, server_config=config) as place,
    ):
        said: list[str] = []

        def say(job: JobView, number: int) -> None:
            if number <= turns:
                said.append(f"word number {number}.")
                place.steer(job, "say", said[-1])

        job, _ = run_by_dying_workers(place, POINTS["after each answer is stored"], say)
        bodies = [str(messages) for messages in place.asked()]
        for word in said:
            held = [body.count(word) for body in bodies]
            assert sorted(held) == held and held[-1] == 1, (word, held)
        transcript = [message.text for message in place.transcript(job) if message.source == "person"]
        assert transcript == said
        [agent] = place.agents(job)
        assert [word.turn for word in agent.words] == list(range(2, turns + 2))
        assert len(_runs(place, agent.agent_id)) > 1


def _runs(place: Office, agent_id: str) -> list[str]:
    """The runs of an agent's workflow: more than one where it continued as new."""

    async def find() -> list[str]:
        client = await place.home.temporal()
        return [run.run_id async for run in client.list_workflows(f"WorkflowId = '{agent_id}'")]

    return asyncio.run(find())
