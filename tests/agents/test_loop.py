"""Turns and tools as durable steps: from a template's agent step to a reviewed commit."""

from __future__ import annotations

from pathlib import Path

from perdure.contracts.job import JobPhase
from perdure.testing.model_server import model_server
from tests.agents.kit import office, read, write
from tests.support.repositories import git


def test_agent_works_until_the_named_check_is_green(tmp_path: Path) -> None:
    """The model's word ends nothing: red checks are told to it, and its work is reviewed before it is committed."""
    script = {
        "answers": [
            {"text": "I look.", "calls": [read("NOTE"), read("README.md")]},
            {"text": "All done."},
            {"calls": [write("NOTE", "the first note\n")]},
            {"text": "Now it is there."},
        ]
    }
    with model_server(script) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start())
        assert [message.source for message in place.transcript(job)] == [
            *("charter", "goal", "model", "tool", "tool"),
            *("model", "perdure", "model", "tool", "model"),
        ]
        assert "grep" in place.transcript(job)[6].text
        assert git(place.repository, "log", "--format=%s") == "feat: begin"
        place.home.approve(job)
        place.home.done(job)
        assert git(place.repository, "show", "HEAD:NOTE") == "the first note"
        [agent] = place.agents(job)
        assert (agent.state, agent.turns, agent.calls) == ("done", 4, 3)
        assert place.home.job(job).phase is JobPhase.done


async def test_agent_that_somebody_ended_goes_on_when_the_job_is_poked(tmp_path: Path) -> None:
    """An agent's workflow that was ended from outside is started again, and goes on from the store."""
    turns = [{"calls": [read("NOTE")]}, {"calls": [write("NOTE", "the first note\n")], "hold": "it"}, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start()
        model.wait_for(2)
        client = await place.home.temporal()
        [agent] = place.agents(job)
        await client.get_workflow_handle(agent.agent_id).terminate()
        model.release("it")
        place.steer(job, "say", "are you there?")
        place.home.waiting(job)
        [agent] = place.agents(job)
        assert agent.state == "done"
        assert agent.words[0].turn in (2, 3)
