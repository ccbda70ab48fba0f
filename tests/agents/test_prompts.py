"""A prompt is one question with a typed answer: used as data, mended within bounds, never half taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.job import JobPhase
from perdure.testing.model_server import model_server
from tests.agents.kit import office, wait_until

GOOD = {"json": {"title": "All is well", "risks": []}}
WRONG = {"json": {"title": "", "risks": "none"}}
TALK = {"text": "Sure! Here is what I think: all is well."}


def test_typed_answer_is_the_steps_value(tmp_path: Path) -> None:
    """What the model answered is data for the stages after it; the review says that a model answered."""
    with model_server({"turns": [GOOD]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start("asked"))
        assert any("was answered by a model" in finding for finding in place.home.review(job).findings)
        [agent] = place.agents(job)
        assert (agent.state, agent.turns, agent.calls) == ("answered", 1, 0)
        assert agent.cost_microdollars > 0
        place.home.approve(job)
        place.home.done(job)
        assert (place.repository / "REPORT").read_text() == "All is well\n"
        [request] = model.requests()
        assert request.body["response_format"]["json_schema"]["schema"]["required"] == ["title", "risks"]
        assert "What is there to say about first at" in place.asked()[0][-1]["content"]


def test_answer_can_end_the_job(tmp_path: Path) -> None:
    """``finish_when`` reads a model's answer like a rule's."""
    risky = {"json": {"title": "Stop", "risks": ["a", "b", "c"]}}
    with model_server({"turns": [risky]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.wait(place.start("asked"), JobPhase.nothing_to_do)
        assert job.summary == "Stop: too risky."


@pytest.mark.parametrize("first", [WRONG, TALK, {"text": ""}, {"raw": '{"choices": 7}'}])
def test_answer_that_does_not_fit_is_mended(tmp_path: Path, first: dict[str, Any]) -> None:
    """A wrong answer is told what is wrong with it, place by place; the next one counts."""
    turns = [first, GOOD] if "raw" not in first else [[first, GOOD]]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start("asked"))
        assert len(model.requests()) == 2
        if first is WRONG:
            assert 'risks is "none"; expected a list.' in place.asked()[1][-1]["content"]
        assert place.agents(job)[0].state == "answered"


def test_repairs_are_bounded_and_the_end_has_a_name(tmp_path: Path) -> None:
    """After so many repairs the step ends as ``answer``, and with ``fail`` the job fails by that name."""
    with model_server({"turns": [WRONG, TALK, GOOD]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.wait(place.start("asked"), JobPhase.failed)
        assert "got no answer of a model (answer: No answer fitted, although it was told 1 times" in job.summary
        assert len(model.requests()) == 2
        assert place.agents(job)[0].state == "answer"


def test_person_lets_a_prompt_go_on(tmp_path: Path) -> None:
    """With ``ask`` the job pauses instead; what a person says is in the next request, and gives it new patience."""
    with model_server({"turns": [WRONG, TALK, WRONG, GOOD]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.wait(place.start("asked-on"), JobPhase.paused)
        assert "No answer fitted" in job.summary
        place.steer(job, "say", "JSON only, please")
        place.home.waiting(job)
        assert len(model.requests()) == 4
        assert any("JSON only, please" in str(message["content"]) for message in place.asked()[2])


def test_prompt_without_an_answer_leaves_null(tmp_path: Path) -> None:
    """With ``keep_rule_result`` and no rule the value is null, said in the review; without a model likewise."""
    with model_server({"turns": [TALK, TALK]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start("asked-maybe"))
        assert any("It has no value." in finding for finding in place.home.review(job).findings)
        place.home.approve(job)
        place.home.done(job)
        assert (place.repository / "REPORT").read_text() == "no title\n"
        place.home.settings.config.unlink()
        again = place.home.waiting(place.start("asked-maybe", name="again"))
        assert any("skipped: no model is configured" in finding for finding in place.home.review(again).findings)
        assert len(model.requests()) == 2


def test_prompt_that_needs_a_model_names_the_setting(tmp_path: Path) -> None:
    """A prompt that is not optional fails where no model is configured, and says where one is named."""
    with model_server({"turns": []}) as model, office(tmp_path, model) as place:
        place.home.settings.config.unlink()
        place.home.start_worker()
        job = place.home.wait(place.start("asked"), JobPhase.failed)
        assert "config.toml" in job.summary


@pytest.mark.parametrize(
    "point",
    [f"agents.{method}#1:{when}" for method in ("open", "end_turn", "close") for when in ("before", "after")],
)
def test_killed_anywhere_a_prompt_is_asked_once_more_at_most(tmp_path: Path, point: str) -> None:
    """A worker that dies around any write of a prompt's leaves the same end; a kept answer is not asked for."""
    with model_server({"turns": [WRONG, GOOD]}) as model, office(tmp_path, model) as place:
        with place.home.dying_worker(point):
            job = place.home.waiting(place.start("asked"))
        assert len(model.requests()) <= (3 if point == "agents.end_turn#1:before" else 2)
        sources = [message.source for message in place.transcript(job)]
        assert sources == ["charter", "goal", "model", "perdure", "model"]
        assert place.agents(job)[0].turns == 2


def test_answer_in_flight_is_asked_for_again(tmp_path: Path) -> None:
    """Killed while the model is asked, the next worker asks the same question once."""
    with model_server({"turns": [{**GOOD, "hold": "it"}]}) as model, office(tmp_path, model) as place:
        worker = place.home.start_worker()
        job = place.start("asked")
        model.wait_for(1)
        worker.kill()
        worker.wait()
        place.home.start_worker()
        model.wait_for(2)
        model.release("it")
        place.home.waiting(job)
        assert len(model.requests()) == 2
        assert place.agents(job)[0].turns == 1


def test_nothing_is_asked_beyond_the_jobs_budget(tmp_path: Path) -> None:
    """A prompt gets what is left of the job's budget, whatever its own limits say; what is reserved must fit."""
    dear = {**GOOD, "usage": {"input": 700_000, "output": 50_000}}
    with model_server({"turns": [dear, GOOD]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start("asked"))
        place.home.decide(job.digest, "request_changes", comment="look again")
        wait_until(lambda: place.home.job(job).phase.is_final, "the end")
        assert "budget is used up" in place.home.job(job).summary
        assert len(model.requests()) == 1


def test_cancelled_job_gives_its_prompt_up(tmp_path: Path) -> None:
    """A cancel ends the question in flight."""
    with model_server({"turns": [{**GOOD, "hold": "it"}]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start("asked")
        model.wait_for(1)
        place.home.post("/v1/cancel", {"decision_id": "stop-it", "comment": "no need"}, ref=job.job_id)
        place.home.wait(job, JobPhase.cancelled)
        wait_until(lambda: place.agents(job)[0].state == "cancelled", "the prompt's end")
