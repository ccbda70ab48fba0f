"""A thread remembers its reviewers: whole jobs on a real server, one after another, on one repository."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.decisions import Weighing
from perdure.contracts.http import JobView, Review
from tests.rules.kit import make_repository, save, tag
from tests.support.installation import Installation
from tests.support.people import Person, person, refusal
from tests.support.waits import asked_again, ended


@dataclass(frozen=True)
class Repository:
    """What the jobs of one thread are about."""

    home: Installation
    path: Path
    out: Path
    people: dict[str, Person]

    def plan(self) -> Review:
        """The plan of a new job that Mara asks for."""
        inputs = {"repo": str(self.path), "out": str(self.out)}
        body = {"template": "strict", "inputs": inputs, "request_id": uuid.uuid4().hex[:12], "folder": str(self.path)}
        answer = self.people["mara"].door.post("/v1/jobs", json=body)
        assert answer.status_code == 200, answer.text
        return self.home.review(self.home.waiting(JobView.model_validate(answer.json())))

    def edit(self, review: Review, by: str, why: str, **changes: Any) -> Review:
        """The next plan of a job whose plan somebody edits."""
        answer = self.people[by].decide(review.digest, "request_changes", comment=why, changes=changes)
        assert answer.status_code == 200, answer.text
        return self.home.review(asked_again(self.home, review.job, review.digest))

    def decide(self, review: Review, by: str, kind: str) -> Weighing:
        """Somebody decides; return what it amounts to."""
        answer = self.people[by].decide(review.digest, kind)
        assert answer.status_code == 200, answer.text
        return Weighing.model_validate(answer.json()["weighing"])

    def reject(self, review: Review) -> None:
        """End a job without anything being applied."""
        self.decide(review, "ada", "reject")
        ended(self.home, review.job)


@pytest.fixture(scope="module")
def people(module_home: Installation) -> Iterator[dict[str, Person]]:
    """Mara submits, Otto and Ada decide."""
    made = [person(module_home, "mara", "submit", "read"), person(module_home, "otto", "decide", "read")]
    made.append(person(module_home, "ada", "decide", "read"))
    with ExitStack() as doors:
        yield {one.name: one for one in map(doors.enter_context, made)}


@pytest.fixture
def repository(working: Installation, people: dict[str, Person], tmp_path: Path) -> Repository:
    """A project at 1.0.4 whose features of the scope ``words`` were always patches, with one more of them."""
    path = make_repository(tmp_path, name=f"app-{uuid.uuid4().hex[:8]}")
    save(path, "feat: begin")
    tag(path, "v1.0.0")
    for number in range(1, 5):
        save(path, f"feat(words): word {number}")
        tag(path, f"v1.0.{number}")
    save(path, "feat(words): another")
    (tmp_path / "out").mkdir()
    return Repository(working, path, tmp_path / "out", people)


def entry_of(review: Review) -> str:
    """The id of the one entry: its commit stands in the notes."""
    content = next(line for line in review.diff.splitlines() if line.startswith("+- "))
    return content.rpartition("(")[2].rstrip(")")


def test_an_override_is_proposed_again_as_its_makers(repository: Repository) -> None:
    """Otto's wording survives the rejected job: it is in the next one's plan, signed, and Otto may not approve it."""
    first = repository.plan()
    reworded = {"op": "reword", "id": entry_of(first), "text": "One word more."}
    second = repository.edit(first, "otto", "says nothing", entries=[reworded])
    assert second.authors == ["otto"]
    repository.reject(second)

    again = repository.plan()
    (told,) = [finding for finding in again.findings if "reworded by otto on " in finding]
    assert '"One word more."' in told and told.endswith(': says nothing (found as "another").')
    assert again.authors == ["otto"]
    own = repository.decide(again, "otto", "approve")
    assert (own.outcome, "wrote a part of this plan" in own.ignored[0].why) == ("pending", True)
    assert repository.decide(again, "ada", "approve").outcome == "satisfied"
    repository.home.done(again.job)
    assert "One word more." in (repository.out / "NOTES").read_text()


def test_what_is_forgotten_is_remembered_as_forgotten(repository: Repository) -> None:
    """Ada takes Otto's wording back: her plan and the next job's are as the commits say."""
    first = repository.plan()
    name = entry_of(first)
    second = repository.edit(first, "otto", "", entries=[{"op": "reword", "id": name, "text": "One word more."}])
    repository.reject(second)
    forgotten = repository.edit(repository.plan(), "ada", "too short", entries=[{"op": "forget", "id": name}])
    assert "One word more." not in forgotten.diff
    repository.reject(forgotten)
    assert "another" in repository.plan().diff


def test_an_edit_that_breaks_a_rule_costs_no_round(repository: Repository) -> None:
    """Refused at once with what is legal: no decision is recorded, and the same plan goes on waiting."""
    plan = repository.plan()
    wrong: list[dict[str, Any]] = [
        {"version": "garbage"},
        {"version": "1.0.3"},
        {"map": {"nonsense": "patch"}},
        {"entries": [{"op": "move", "id": entry_of(plan), "section": "Nonsense"}]},
        {"entries": [{"op": "forget", "id": entry_of(plan)}]},
    ]
    refused = [refusal(repository.people["otto"].decide(plan.digest, "request_changes", changes=one)) for one in wrong]
    assert {problem.exit_code for problem in refused} == {64}
    words = ["is no version", "not above the last release 1.0.4", "expected a type (feat", "expected one of Added,"]
    assert all(word in problem.message for word, problem in zip(words, refused, strict=False)), refused
    with repository.home.ledger() as ledger:
        assert ledger.decisions(job_id=plan.job.job_id) == []
    assert repository.home.job(plan.job).digest == plan.digest
    repository.reject(plan)


def test_the_type_map_is_confirmed_once_and_can_be_refused(repository: Repository) -> None:
    """Learnt and shown with its evidence, confirmed by the approval of that plan; a person's word is above both."""
    first = repository.plan()
    assert [(line.name, line.value) for line in first.settles] == [("feat", "patch"), ("feat(words)", "patch")]
    assert first.settles[1].because == "so it was in 4 of the last 4 releases that such changes decided"
    assert first.title == "1.0.4 → 1.0.5"
    assert repository.decide(first, "ada", "approve").outcome == "satisfied"
    repository.home.done(first.job)

    second = repository.plan()
    assert (second.title, second.settles, second.authors) == ("1.0.4 → 1.0.5", [], [])
    assert any("feat(words) counts as patch, not minor: confirmed by ada on " in one for one in second.findings)

    refused = repository.edit(second, "otto", "the words are an API", map={"feat(words)": "minor"})
    assert (refused.title, refused.authors) == ("1.0.4 → 1.1.0", ["otto"])
    repository.reject(refused)

    third = repository.plan()
    assert (third.title, third.settles, third.authors) == ("1.0.4 → 1.1.0", [], ["otto"])
    (told,) = [one for one in third.findings if "set by otto on " in one]
    assert "the words are an API. The tags show patch" in told
    repository.reject(third)


def test_a_rejected_plan_confirms_nothing(repository: Repository) -> None:
    """A learnt line is new until a plan that shows it is approved."""
    first = repository.plan()
    repository.reject(first)
    assert repository.plan().settles == first.settles
