"""The shipped release template with a forge: announced after the push, or through a protected branch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.testing.forge import serve_forge
from tests.support.guarded import Guarded, make_guarded
from tests.support.installation import Installation, wait_until
from tests.support.repositories import git, make_project
from tests.support.waits import ended


@pytest.fixture
def open_project(tmp_path: Path) -> Iterator[Guarded]:
    """A project whose main takes pushes, and its forge."""
    project = make_project(tmp_path / "src")
    with serve_forge(project.remote) as forge:
        yield Guarded(project, forge)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """A project with a protected main."""
    with make_guarded(tmp_path / "guarded") as made:
        yield made


def release(home: Installation, world: Guarded, flavour: str = "github", **inputs: Any) -> JobView:
    """Submit a release that is announced."""
    world.give_token(home)
    about = {"forge": flavour, "forge_api": world.forge.api(flavour), "project": world.forge.project, **inputs}
    return home.run("release", world.project.path, **about)


def kinds(home: Installation, job: JobView) -> list[str]:
    """The effects of a job's plan."""
    return [f"{view.effect.id} {view.effect.kind}" for view in home.review(job).effects]


def test_the_plain_road_is_as_it_was(working: Installation, open_project: Guarded) -> None:
    """Without the new inputs the plan has the effects and ids that it always had, and no request is sent."""
    job = working.release(open_project.project)
    working.waiting(job)
    assert kinds(working, job) == ["commit git.commit", "tag git.tag", "push git.push"]
    working.approve(job)
    working.done(job)
    assert open_project.forge.log == []


@pytest.mark.parametrize("flavour", ["github", "gitlab"])
def test_pushed_announced_with_a_built_asset_and_taken_back(
    working: Installation, open_project: Guarded, flavour: str
) -> None:
    """Notes and a file that was built when planning are on the forge; `perdure undo` takes page, push and tag away."""
    build = ["sh", "-c", "mkdir dist && cp orders.py dist/orders-1.3.0.txt"]
    job = release(working, open_project, flavour, assets=["dist/*"], build=build)
    working.waiting(job)
    assert kinds(working, job)[-1] == "announce forge.release"
    working.approve(job)
    done = working.done(job)
    (page,) = open_project.forge.releases.values()
    assert "bulk import" in page["notes"].lower() and page["tag"] == "v1.3.0"
    assert [one["name"] for one in open_project.forge.assets.values() if one["name"]] == ["orders-1.3.0.txt"]
    undo = working.undo(done)
    working.approve(undo)
    working.done(undo)
    assert open_project.forge.releases == {} and open_project.ref("refs/tags/v1.3.0") == ""


def test_a_page_that_cannot_be_made_waits_for_a_person(working: Installation, open_project: Guarded) -> None:
    """The release is out when the forge says no: it is not taken back; a person sees to it and it is tried again."""
    job = release(working, open_project)
    open_project.forge.fail("POST", "/releases$", "401", times=1)
    working.approve(job)
    found = working.wait(job, JobPhase.paused)
    assert "announce" in found.summary and open_project.ref("refs/tags/v1.3.0")
    working.post("/v1/steer", {"decision_id": "r" + job.job_id[-11:], "kind": "resume"}, ref=job.job_id)
    working.done(job)
    assert len(open_project.forge.releases) == 1


@pytest.mark.parametrize("way", ["token", "silence"])
def test_a_forge_that_does_not_let_us_look_is_no_drift(working: Installation, open_project: Guarded, way: str) -> None:
    """Before the first effect the job says what it waits for, and goes on with the same plan when it is put right."""
    job = release(working, open_project)
    waiting = working.waiting(job)
    if way == "token":
        open_project.give_token(working, "expired")
    else:
        open_project.forge.fail("GET", "/releases", "500", times=10_000)
    working.decide(waiting.digest, "approve")
    said = {"token": "secrets/forge-token", "silence": "answers 500"}[way]
    wait_until(lambda: said in working.job(job).trouble, "the job to say what it waits for", explain=working.worker_log)
    assert git(open_project.project.path, "tag") == "v1.2.0"
    open_project.give_token(working)
    open_project.forge.faults.clear()
    assert working.done(job).digest == waiting.digest and len(open_project.forge.releases) == 1


def test_a_release_that_a_forge_holds_up_can_be_cancelled(working: Installation, open_project: Guarded) -> None:
    """Nobody has to wait for a forge: cancelled, the job ends and nothing of it has happened."""
    job = release(working, open_project)
    waiting = working.waiting(job)
    open_project.give_token(working, "expired")
    working.decide(waiting.digest, "approve")
    wait_until(lambda: "secrets/forge-token" in working.job(job).trouble, "the job to be held up")
    body = {"decision_id": "c" + job.job_id[-11:], "comment": "not today"}
    working.post("/v1/cancel", body, ref=job.job_id)
    assert ended(working, job).phase is JobPhase.cancelled
    assert git(open_project.project.path, "tag") == "v1.2.0"


def test_somebody_elses_page_is_seen_before_anything_happens(working: Installation, open_project: Guarded) -> None:
    """A release under the tag stops the job before its first effect, with who made it."""
    job = release(working, open_project)
    waiting = working.waiting(job)
    open_project.forge.add_release("v1.3.0", "hands off", author="mallory")
    working.decide(waiting.digest, "approve")
    again = working.wait(job, JobPhase.waiting)
    while again.digest == waiting.digest:
        again = working.waiting(job)
    assert "mallory" in " ".join(working.review(job).findings)
    assert git(open_project.project.path, "tag") == "v1.2.0"
    working.decide(again.digest, "reject")
    assert ended(working, job).phase is JobPhase.rejected


def test_through_a_protected_branch(working: Installation, guarded: Guarded) -> None:
    """`way=pull-request`: one request, merged by a person, then tag and page; the user's branch is theirs to pull."""
    job = release(working, guarded, way="pull-request")
    working.waiting(job)
    assert kinds(working, job) == ["merge forge.pull_request", "tag-merged git.tag_merged", "announce forge.release"]
    working.approve(job)
    guarded.parked(working, job)
    merged = guarded.forge.merge(guarded.number(), "squash")
    working.post("/v1/look", {}, ref=job.job_id)
    working.done(job)
    assert guarded.ref("refs/tags/v1.3.0^{commit}") == merged
    git(guarded.project.path, "pull", "-q", "--tags", "--ff-only", "origin", "main")
    nothing = working.release(guarded.project)
    assert ended(working, nothing).phase is JobPhase.nothing_to_do, "the merged release is no change of its own"


def test_publishing_needs_somebody_who_tells(working: Installation, open_project: Guarded) -> None:
    """`publish` without `published` and `index` is refused when planning: a green nothing could not be told."""
    job = working.release(open_project.project, publish=["true"])
    found = ended(working, job)
    assert found.phase is JobPhase.failed and "nothing says how it is told" in found.summary
