"""A worker that dies anywhere in an agent's work: the same final transcript, nothing doubled but the call in flight."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.http import JobView
from perdure.testing.model_handle import ModelServer
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, read, wait_until, write
from tests.support.repositories import git

TURNS = 5
SAMPLE = 7

COUNT = {"tool": "shell.run", "with": {"command": "echo once >> COUNTED; cat COUNTED | wc -l"}}


def script(turns: int) -> dict[str, Any]:
    """Turns with parallel calls: two reads, a file of its own and, in the third, a command that counts its runs."""
    work = [
        {"calls": [read("NOTE"), write(f"file-{number}", f"{number}\n"), read("README.md")]} for number in range(turns)
    ]
    work[2]["calls"].append(COUNT)
    return {"turns": [*work, {"text": "Done?"}, {"calls": [write("NOTE", "the first note\n")]}, {"text": "Done."}]}


def points(turns: int) -> list[str]:
    """Where the worker dies: around every write of the store, around every run of a tool."""
    found = [f"agents.end_turn#{turn}:{when}" for turn in range(1, turns + 4) for when in ("before", "after")]
    for call in range(1, turns + 3):
        found += [f"agents.begin_call#{call}:{when}" for when in ("before", "after")]
    for call in range(1, 3 * turns + 3):
        found += [f"agents.end_call#{call}:{when}" for when in ("before", "after")]
    for method in ("agents.open", "agents.add_lines", "agents.close"):
        found += [f"{method}#1:{when}" for when in ("before", "after")]
    for tool in ("files.write", "shell.run", "files.read"):
        found += [f"tool.run[{tool}]#1:{when}" for when in ("before", "after")]
    return found


def _sweep() -> list[object]:
    return [
        pytest.param(point, id=point, marks=[] if number % SAMPLE == 0 else [pytest.mark.torture])
        for number, point in enumerate(points(TURNS))
    ]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with model_server(script(TURNS)) as server:
        yield server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("killed"), model) as found:
        yield found


def said(place: Office, job: JobView) -> list[tuple[str, str, tuple[tuple[str, str], ...]]]:
    """A transcript without ids."""
    return [
        (message.source, message.text, tuple((result.name, result.text) for result in message.results))
        for message in place.transcript(job)
    ]


@pytest.fixture(scope="module")
def undisturbed(place: Office) -> list[tuple[str, str, tuple[tuple[str, str], ...]]]:
    """What is said when nobody dies."""
    place.home.start_worker()
    job = place.home.waiting(place.start(name="undisturbed"))
    place.home.kill_workers()
    return said(place, job)


@pytest.mark.parametrize("point", _sweep())
def test_killed_anywhere_the_transcript_is_the_same(
    place: Office, model: ModelServer, undisturbed: list[Any], point: str
) -> None:
    """Killed at any step the agent ends with the transcript of an undisturbed run, and asked at most once more.

    Only a call whose first attempt began and told no end may differ: one that may simply be repeated words its answer
    otherwise ("holds exactly that already"), any other says that its end is unknown and was not run again.
    """
    asked = len(model.requests())
    name = point.replace("[", "-").replace("]", "").replace("#", "-").replace(":", "-").replace(".", "-")
    with place.home.dying_worker(point):
        job = place.home.waiting(place.start(name=name))
    assert len(model.requests()) - asked <= TURNS + 4
    heard = said(place, job)
    unknown = [call for call in place.calls(job) if call.status == "unknown"]
    differences = [(mine, other) for mine, other in zip(heard, undisturbed, strict=True) if mine != other]
    doubtful = [call for call in place.calls(job) if call.attempts > 1]
    assert len(differences) <= len(doubtful) + sum("COUNTED" in str(pair) for pair in differences), differences
    assert {call.tool for call in unknown} <= {"shell.run"}
    counted = place.home.review(job).diff.count("+once")
    assert counted <= 1
    assert counted == 1 or unknown


def test_model_call_in_flight_is_asked_again_once(tmp_path: Path) -> None:
    """Killed while the model is asked, the next worker asks the same turn again, and no other."""
    turns = [{"calls": [read("NOTE")]}, {"calls": [write("NOTE", "the first note\n")], "hold": "it"}, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        worker = place.home.start_worker()
        job = place.start()
        model.wait_for(2)
        worker.kill()
        worker.wait()
        place.home.start_worker()
        model.wait_for(3)
        model.release("it")
        place.home.waiting(job)
        first, second = (request.body["messages"] for request in model.requests()[1:3])
        assert first == second
        assert len(model.requests()) == 4
        wait_until(lambda: place.agents(job)[0].state == "done", "the agent's end")
        assert git(place.repository, "log", "--format=%s") == "feat: begin"
