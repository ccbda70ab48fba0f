"""The examples in the repository's root are templates that run, and their answers are what a model could say."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.catalog import Catalog, load_entry
from perdure.effects.registry import default_effects
from perdure.policy.templates import check_template
from perdure.rules.registry import default_rules
from perdure.testing.model_server import model_server
from perdure.tools.registry import default_tools
from tests.agents.kit import configure, make_repository
from tests.support.installation import ROOT, installation
from tests.support.repositories import git, make_project

EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


def test_there_are_examples_with_answers() -> None:
    """Each example has a file of answers."""
    assert len(NAMES) >= 2
    assert sorted(path.stem for path in (EXAMPLES / "answers").glob("*.yaml")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_a_template(name: str) -> None:
    """It runs with what is shipped, as it stands."""
    rules = {key: rule.shape for key, rule in default_rules().items()}
    effects = {kind: effect.always_reversible for kind, effect in default_effects().items()}
    entry = Catalog(EXAMPLES).find(name, Path("/"))
    load_entry(
        entry,
        check=lambda template: check_template(template, rules=rules, effects=effects, tools=default_tools()),
    )


def test_release_in_our_words_runs(tmp_path: Path) -> None:
    """Words and risks come from the model, the rest from the rules; what was approved is tagged."""
    answers = EXAMPLES / "answers" / "release-notes-of-ours.yaml"
    with model_server(answers) as model, installation(tmp_path / "home", PERDURE_TEMPLATES=str(EXAMPLES)) as home:
        configure(home, model)
        home.start_worker()
        project = make_project(tmp_path / "world")
        job = home.waiting(home.run("release-notes-of-ours", project.path))
        assert any("is worded by a model" in finding for finding in home.review(job).findings)
        home.approve(job)
        home.done(job)
        told = git(project.path, "tag", "-l", "--format=%(contents)", "v1.3.0")
        assert "many orders at once" in told
        assert "Mind: Scripts that expect an empty order" in told


def test_change_with_helpers_runs(tmp_path: Path) -> None:
    """Two agents write a file each; the commit has the subject that the first one said."""
    answers = EXAMPLES / "answers" / "change-with-helpers.yaml"
    with model_server(answers) as model, installation(tmp_path / "home", PERDURE_TEMPLATES=str(EXAMPLES)) as home:
        configure(home, model)
        home.start_worker()
        repository = make_repository(tmp_path / "world")
        inputs = {"task": "write GREETING and NOTE", "check": ["grep", "-q", "first note", "NOTE"]}
        job = home.waiting(home.run("change-with-helpers", repository, **inputs))
        home.approve(job)
        home.done(job)
        assert git(repository, "log", "-1", "--format=%s") == "Greet people and take a note"
        assert git(repository, "show", "HEAD:GREETING") == "Hello"
