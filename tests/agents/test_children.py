"""Agents that start agents: fewer rights, a part of the budget, a typed answer, and the same end whoever dies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from perdure.contracts.agent_run import AgentSpec
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.store.agents import Agents
from perdure.testing.model_handle import ModelServer
from perdure.testing.model_play import Asked
from perdure.testing.model_script import Answer
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, read, wait_until, write

Turns = list[dict[str, Any]]
NOTE = write("NOTE", "the first note\n")


def delegate(task: str, **more: Any) -> dict[str, Any]:
    """A call that starts an agent."""
    return {"tool": "agents.delegate", "with": {"task": task, **more}}


def report(text: str) -> dict[str, Any]:
    """A child's answer."""
    return {"json": {"report": text}}


@dataclass(frozen=True)
class Play:
    """What is answered in one job: by its own agent, and by children whose tasks begin with their names."""

    parent: Turns
    children: dict[str, Turns]


def play(*parent: dict[str, Any], **children: Turns) -> Play:
    """A play whose parent writes the note at last."""
    return Play([*parent, {"calls": [NOTE]}, {"text": "Done."}], children)


def answer(asked: Asked) -> Answer:
    """Answer whoever asks, by the job and the turn."""
    goal = next(str(message["content"]) for message in asked.messages if message["role"] == "user")
    if any("You work for another agent" in text for text in asked.texts):
        job, child = goal.split("\n\n")[1].split()[0].split("/")
        turns = PLAYS[job].children[child]
    else:
        turns = PLAYS[goal.split()[1].rstrip(":").split("~")[0]].parent
    found = turns[min(asked.turn, len(turns) - 1)]
    calls = [{**call, "id": f"call_{asked.turn}_{place}"} for place, call in enumerate(found.get("calls", []))]
    return Answer.model_validate({**found, "calls": calls})


def results(place: Office, job: JobView) -> list[str]:
    """What the calls of the job's own agent were answered with."""
    return [result.text for message in place.transcript(job) for result in message.results]


def specs(place: Office, job: JobView) -> list[AgentSpec]:
    """How the agents of a job were made, by the calls that started them."""
    with place.home.ledger() as ledger:
        rows = sorted(Agents(ledger.database).of_job(job.job_id), key=lambda row: row.agent_id)
    return [AgentSpec.model_validate(place.home.blobs.get_json(row.spec)) for row in rows]


PLAYS: dict[str, Play] = {
    "beside": play(
        {
            "calls": [
                delegate("beside/a does a", tools=["files.write"], paths=["docs/a.md"], answer={"lines": "number"}),
                delegate("beside/b does b"),
            ]
        },
        a=[{"calls": [write("docs/a.md", "a\n")]}, {"json": {"lines": 1}}],
        b=[{"calls": [write("docs/b.md", "b\n")]}, report("b is written")],
    ),
    "wide": play(
        {
            "calls": [
                delegate("wide/a", tools=["shell.run"]),
                delegate("wide/a", paths=["**"]),
                delegate("wide/a", paths=["docs/../src/**"]),
                delegate("wide/b", paths=["docs/**"]),
            ]
        },
        b=[
            {"calls": [write("docs/kept/x", "x"), write("NOTE", "not mine\n"), write("docs/ok", "x\n")]},
            report("tried"),
        ],
    ),
    "deep": play(
        {"calls": [delegate("deep/a", tools=["agents.delegate", "files.read"])]},
        a=[{"calls": [delegate("deep/b", tools=["agents.delegate"])]}, {"calls": [delegate("deep/b")]}, report("up")],
        b=[{"calls": [delegate("deep/c")]}, report("at the bottom")],
    ),
    "leased": play(
        {"calls": [delegate("leased/a", turns=2)]},
        {"calls": [delegate("leased/a", turns=30)]},
        a=[{"calls": [read("NOTE")]}, {"calls": [read("docs/x")]}, {"calls": [read("NOTE")]}, report("late")],
    ),
    "killed": play({"calls": [delegate("killed/a")]}, a=[{"calls": [write("docs/a", "a\n")]}, report("a is written")]),
    "cancelled": play({"calls": [delegate("cancelled/a")]}, a=[{"text": "never", "hold": "never"}, report("x")]),
    "heard": play({"calls": [delegate("heard/a")]}, a=[{"calls": [read("NOTE")], "hold": "heard"}, report("x")]),
    "ended": play(
        {"calls": [delegate("ended/a")]}, a=[{"calls": [write("docs/a", "a\n")]}, {**report("x"), "hold": "ended"}]
    ),
}


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with model_server(answer) as server:
        yield server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("children"), model) as found:
        yield found


@pytest.fixture
def worked(place: Office) -> Iterator[Office]:
    """The office with a worker; it may be the one of the test before."""
    if not any(worker.poll() is None for worker in place.home.workers):
        place.home.start_worker()
    yield place


def asked_in(model: ModelServer, job: str) -> list[str]:
    """The requests about one job, whole, as text."""
    return [text for one in model.requests() if f"For {job}:" in (text := str(one.body)) or f"{job}/" in text]


def begin(place: Office, name: str) -> JobView:
    """Start the job of a play."""
    return place.start("lead", name=name)


def test_children_work_beside_each_other_and_answer_by_fields(worked: Office) -> None:
    """Two agents do their parts in the same workspace; their answers, turns and cost are their parent's to see."""
    job = worked.home.waiting(begin(worked, "beside"))
    assert worked.home.review(job).files == 3
    first, *below = worked.agents(job)
    assert [(one.parent, one.state, one.turns, one.calls) for one in below] == [(1, "answered", 2, 1)] * 2
    assert (first.turns, first.calls, first.children.turns, first.children.calls) == (3, 3, 4, 2)
    assert first.children.cost_microdollars == sum(one.cost_microdollars for one in below) > 0
    assert '"lines": 1' in results(worked, job)[0]
    assert "b is written" in results(worked, job)[1]
    child = specs(worked, job)[1]
    assert (child.tools, child.paths, child.depth) == (("files.write",), ("docs/a.md",), 1)


def test_child_never_has_more_than_its_parent(worked: Office) -> None:
    """Tools, paths and denials of its parent bind a child, and what it asks for beyond them starts nothing."""
    job = worked.home.waiting(begin(worked, "wide"))
    assert len(worked.agents(job)) == 2
    told = results(worked, job)
    assert "You cannot pass on what you have not: shell.run" in told[0]
    assert all("Outside of what you may change" in text for text in told[1:3])
    calls = worked.calls(job, 1)
    assert [call.status for call in calls] == ["denied", "error", "ok"]
    assert calls[0].verdict is not None
    assert calls[0].verdict.rule == "template.permissions.1"


def test_depth_is_bounded(worked: Office) -> None:
    """An agent two below the job's own starts none."""
    job = worked.home.waiting(begin(worked, "deep"))
    assert [spec.depth for spec in specs(worked, job)] == [0, 1, 2]
    assert specs(worked, job)[2].tools == ("files.read",)
    assert [call.status for call in worked.calls(job, 1)] == ["error", "ok"]
    assert [call.status for call in worked.calls(job, 2)] == ["error"]
    assert [agent.parent for agent in worked.agents(job)] == [0, 1, 2]


def test_budget_is_leased_and_what_is_left_comes_back(worked: Office) -> None:
    """A child stops at its lease by name; what children used counts above, what they did not use is free again."""
    job = worked.home.waiting(begin(worked, "leased"))
    assert [agent.state for agent in worked.agents(job)] == ["done", "turns", "answered"]
    first, second = (spec.limits for spec in specs(worked, job)[1:])
    assert (first.turns, second.turns) == (2, 20 - 2 - 2)  # two of its own, two of the first child's
    assert second.cost_microdollars * 2 < 1_000_000
    assert "stopped without an answer (turns)" in results(worked, job)[0]
    assert worked.calls(job)[0].status == "error"


@pytest.mark.parametrize(
    "point",
    [
        *(f"agents.open_child#1:{when}" for when in ("before", "after")),
        *(f"agents.close#1:{when}" for when in ("before", "after")),  # the child's
        "agents.end_turn#2:after",
        "agents.end_call#2:before",  # the call that started it
        "agents.end_call#2:after",
    ],
)
def test_killed_anywhere_the_end_is_the_same(place: Office, model: ModelServer, point: str) -> None:
    """Whatever step a worker dies at, one child was started, it did its part once, and its answer is its parent's."""
    place.home.kill_workers()
    asked = len(model.requests())
    with place.home.dying_worker(point):
        job = place.home.waiting(begin(place, f"killed~{point.replace('.', '-').replace('#', '-').replace(':', '-')}"))
    first, child = place.agents(job)
    assert (first.state, first.turns, child.state, child.turns) == ("done", 3, "answered", 2)
    assert [call.status for call in place.calls(job, 1)] == ["ok"]
    assert "a is written" in results(place, job)[0]
    assert len(model.requests()) - asked <= 6


def test_cancel_reaches_agents_below(worked: Office, model: ModelServer) -> None:
    """A cancel gives up the call in flight of a child; both end by that name."""
    asked = len(model.requests())
    job = begin(worked, "cancelled")
    model.wait_for(asked + 2)
    worked.home.post("/v1/cancel", {"decision_id": "stop-it", "comment": "no need"}, ref=job.job_id)
    worked.home.wait(job, JobPhase.cancelled)
    wait_until(
        lambda: [one.state for one in worked.agents(job)] == ["cancelled"] * 2,
        "both ends",
        explain=worked.home.worker_log,
    )
    assert len(model.requests()) == asked + 2


def test_word_reaches_every_agent_at_work(worked: Office, model: ModelServer) -> None:
    """What a person says is in the next request of the child that works and in that of its parent, once each."""
    asked = len(model.requests())
    job = begin(worked, "heard")
    model.wait_for(asked + 2)
    worked.steer(job, "say", "keep it short")
    model.release("heard")
    worked.home.waiting(job)
    assert [text.count("keep it short") for text in asked_in(model, "heard")] == [0, 0, 1, 1, 1]


async def test_child_that_somebody_ended_goes_on(worked: Office, model: ModelServer) -> None:
    """A child's workflow that was ended from outside is started again when somebody says something."""
    asked = len(model.requests())
    job = begin(worked, "ended")
    model.wait_for(asked + 3)
    client = await worked.home.temporal()
    await client.get_workflow_handle(worked.agents(job)[1].agent_id).terminate()
    model.release("ended")
    worked.steer(job, "say", "are you there?")
    worked.home.waiting(job)
    assert [agent.state for agent in worked.agents(job)] == ["done", "answered"]
