"""The shipped release with a model: wording is the model's, facts stay the rules'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure.contracts.http import JobView
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, wait_until
from tests.support.repositories import Project, git, make_project


def reworded(*texts: tuple[int, str]) -> dict[str, Any]:
    """An answer with new words for entries."""
    return {"json": {"entries": [{"number": number, "text": text} for number, text in texts]}}


def plan(place: Office, folder: Path) -> tuple[Project, JobView]:
    """A release of a small project, waiting for its decision."""
    place.home.start_worker()
    project = make_project(folder)
    return project, place.home.waiting(place.home.release(project))


def test_model_words_the_entries_and_the_review_says_so(tmp_path: Path) -> None:
    """The model's words are in changelog, notes and tag; what was there before, and whose words they are, is told."""
    script = {"turns": [reworded((1, "You can now import many orders at once."))]}
    with model_server(script) as model, office(tmp_path, model) as place:
        project, job = plan(place, tmp_path / "world")
        review = place.home.review(job)
        assert any("Wording of 1 of" in finding and "scripted" in finding for finding in review.findings)
        assert any("became" in finding for finding in review.findings)
        assert "You can now import many orders at once. (" in review.diff
        [agent] = place.agents(job)
        assert (agent.state, agent.turns, agent.calls) == ("answered", 1, 0)
        place.home.approve(job)
        place.home.done(job)
        assert "many orders" in git(project.path, "tag", "-l", "--format=%(contents)", "v1.3.0")


def test_answer_that_changes_facts_is_told_and_then_refused(tmp_path: Path) -> None:
    """A model that brings in what was not there is told so; in the end the rule's text stands, and that is said."""
    wrong = reworded((1, "You can now import 500 orders at once, see https://example.org."))
    with model_server({"turns": [wrong, wrong, wrong]}) as model, office(tmp_path, model) as place:
        _, job = plan(place, tmp_path / "world")
        review = place.home.review(job)
        assert "500 orders" not in review.diff
        assert any("stays as the rules wrote it" in finding for finding in review.findings)
        assert [agent.state for agent in place.agents(job)] == ["answer"]
        asked = place.asked()
        assert len(asked) == 3
        assert "'500'" in asked[1][-1]["content"]


def test_model_that_fails_leaves_the_release_as_the_rules_made_it(tmp_path: Path) -> None:
    """No answer of any use: the plan is the same as without a model, and says why."""
    with model_server({"turns": [[{"status": 401, "error": "bad key"}]]}) as model, office(tmp_path, model) as place:
        _, job = plan(place, tmp_path / "world")
        assert any("got no answer of a model (model:" in finding for finding in place.home.review(job).findings)


def test_next_round_keeps_the_words_and_asks_nobody(tmp_path: Path) -> None:
    """A reviewer who changes the version sees the same words again: the same question is not asked twice."""
    script = {"turns": [reworded((1, "You can now import many orders at once."))]}
    with model_server(script) as model, office(tmp_path, model) as place:
        _, job = plan(place, tmp_path / "world")
        place.home.decide(job.digest, "request_changes", changes={"version": "9.0.0"})
        again = wait_until(
            lambda: now if (now := place.home.job(job)).digest not in ("", job.digest) else None, "the next plan"
        )
        assert again is not None
        review = place.home.review(place.home.waiting(job))
        assert "9.0.0" in review.diff
        assert "You can now import many orders at once. (" in review.diff
        assert len(model.requests()) == 1
