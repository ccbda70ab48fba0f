"""An agent that goes round in circles hears of it first, then a person does, with what was repeated."""

from __future__ import annotations

from pathlib import Path

from perdure.contracts.job import JobPhase
from perdure.testing.model_server import model_server
from tests.agents.kit import office, read, write

SAME = {"calls": [read("NOTE")]}


def test_circle_is_told_to_the_model_and_then_to_a_person(tmp_path: Path) -> None:
    """The fourth request says what was done three times over; three turns later the job pauses until somebody helps."""
    turns = [{**SAME, "repeat": 6}, {"calls": [write("NOTE", "the first note\n")]}, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.wait(place.start(), JobPhase.paused)
        told = "files.read was called 3 times in a row with the same arguments and gave the same answer."
        assert [sum(told in str(one.get("content")) for one in asked) for asked in place.asked()] == [0, 0, 0, 1, 1, 1]
        assert job.summary.startswith("files.read was called 6 times in a row")
        assert place.agents(job)[0].tools == {"files.read": 6}
        place.steer(job, "more", '{"turns": 2}')
        place.home.waiting(job)
        assert "gave you more to work with" in str(place.asked()[6])
        assert place.agents(job)[0].state == "done"
