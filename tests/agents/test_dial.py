"""The dial goes down by itself where trust was lost, and only a person turns it up again."""

from __future__ import annotations

from pathlib import Path

from perdure.testing.model_server import model_server
from tests.agents.kit import office, write
from tests.agents.test_asking import next_wait

OTHER = {"calls": [write("OTHER", "x\n")]}
WRITE = {"calls": [write("NOTE", "the first note\n")]}


def test_denial_worked_around_lowers_the_dial(tmp_path: Path) -> None:
    """Wanting again what a person denied, an agent is asked about each change; a person may trust it anew."""
    turns = [WRITE, OTHER, WRITE, {"calls": [write("THIRD", "x\n")]}, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start("ask"))
        place.steer(job, "dial", "propose")
        place.home.decide(job.digest, "reject", comment="not that file")
        next_wait(place, job, job.digest)  # the last call: the one before it, to OTHER, was free
        assert [call.status for call in place.calls(job)][:3] == ["denied", "ok", "denied"]
        [agent] = place.agents(job)
        assert agent.dial == "confirm"
        events = place.home.get("/v1/events", ref=job.job_id)["events"]
        assert any(event["kind"] == "agent.dial" for event in events)
        [agent] = place.steer(job, "dial", "propose")
        assert agent.dial == "propose"


def test_failed_verification_lowers_the_dial_of_the_next_draft(tmp_path: Path) -> None:
    """An agent that said done, and was sent back by the verification, works on with its changes asked about."""
    turns = [WRITE, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start("redraft"))
        first, second = place.agents(job)
        assert (first.state, second.dial) == ("done", "confirm")
        assert place.calls(job, 1)[0].status == "waits"
