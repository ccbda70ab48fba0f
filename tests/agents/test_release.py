"""The shipped release with a model: wording is the agent's, facts stay the rules'."""

from __future__ import annotations

from pathlib import Path

from perdure.testing.model_server import model_server
from tests.agents.kit import office, read
from tests.support.repositories import make_project


def test_release_words_its_entries_with_a_model(tmp_path: Path) -> None:
    """Without edits of the agent's the release is what the rules wrote; the review says that an agent worked on it."""
    turns = [{"calls": [read("CHANGELOG.md")]}, {"text": "It reads well already."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        project = make_project(tmp_path / "world")
        job = place.home.waiting(place.home.release(project))
        review = place.home.review(job)
        assert any("An agent worked on this (2 turns, 1 calls" in finding for finding in review.findings)
        assert "CHANGELOG.md" in review.diff
        assert place.agents(job)[0].state == "done"
