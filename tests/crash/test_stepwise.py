"""Step by step: a lock, a preflight that is asked again, a person's word between steps, a step that failed."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from tests.support.installation import Installation, wait_until
from tests.support.small import Small


@pytest.fixture
def target(small: Small) -> str:
    """A link with two builds, and the name of its lock."""
    for name in ("blue", "green"):
        (small.counter / name).mkdir()
    (small.counter / "current").symlink_to("blue")
    return uuid.uuid4().hex[:8]


def start(home: Installation, small: Small, target: str, **more: Any) -> JobView:
    """Submit the job."""
    inputs = {"name": small.name, "folder": str(small.folder), "counter": str(small.counter), "target": target}
    return home.run("stepwise", small.folder, **{**inputs, **more})


def resume(home: Installation, job: JobView) -> None:
    """Say go on."""
    home.post("/v1/steer", {"decision_id": uuid.uuid4().hex[:12], "kind": "resume"}, ref=job.job_id)


def cancel(home: Installation, job: JobView) -> None:
    """Say stop."""
    home.post("/v1/cancel", {"decision_id": uuid.uuid4().hex[:12]}, ref=job.job_id)


def link(small: Small) -> str:
    """Where the link points."""
    return str((small.counter / "current").readlink())


def test_person_lets_the_next_step_and_the_failed_one_go_on(working: Installation, small: Small, target: str) -> None:
    """Nothing of a step is begun before its word; a step that failed is tried again, and the same plan ends applied."""
    job = start(working, small, target)
    digest = working.approve(job).digest
    review = working.review(job)
    assert [view.would for view in review.effects] == ["change", "change", "change"]
    assert [view.effect.pause for view in review.effects] == [False, True, False]
    assert [verdict.again for verdict in review.verdicts] == [True, True]
    paused = working.wait(job, JobPhase.paused)
    assert "switch: not begun" in paused.summary
    assert (link(small), small.note.read_text()) == ("blue", small.name)
    resume(working, job)
    failed = wait_until(lambda: _failed(working, job), "the step that fails")
    assert "it did not happen, and a person says how it goes on" in failed.summary
    assert (link(small), small.lines("tried")) == ("green", ["tried"])
    (small.counter / "ready").touch()
    resume(working, job)
    done = working.done(job)
    assert done.digest == digest
    assert small.lines("tried") == ["tried", "tried"]


def _failed(home: Installation, job: JobView) -> JobView | None:
    found = home.job(job)
    return found if found.phase is JobPhase.paused and "tell" in found.summary else None


def test_what_changed_meanwhile_is_told_before_the_next_step(working: Installation, small: Small, target: str) -> None:
    """A step that is not as it was left holds the next one up; cancelled, all that is ours is taken back."""
    job = start(working, small, target)
    working.approve(job)
    working.wait(job, JobPhase.paused)
    small.note.write_text("somebody else's")
    resume(working, job)
    told = wait_until(lambda: (found := working.job(job)) and "step 1 (note) was done" in found.summary and found, "it")
    assert (told.phase, link(small)) == (JobPhase.paused, "blue")
    small.note.write_text(small.name)
    cancel(working, job)
    working.wait(job, JobPhase.cancelled)
    assert not small.note.exists()


def test_red_preflight_stops_before_the_first_step(working: Installation, small: Small, target: str) -> None:
    """Green when the plan was made and red when it is applied: nothing begins, and the facts are read anew."""
    job = working.waiting(start(working, small, target))
    (small.counter / "current").unlink()
    (small.counter / "current").symlink_to("green")
    working.approve(job)
    failed = working.wait(job, JobPhase.failed)
    assert "blue_now" in failed.summary
    small.assert_untouched()


@pytest.mark.torture
def test_same_target_is_never_applied_twice_at_once(working: Installation, small: Small, target: str) -> None:
    """Who waits is told who holds it, and looks at the world only when it is free."""
    first = start(working, small, target)
    working.approve(first)
    working.wait(first, JobPhase.paused)
    second = start(working, small, target, name=f"{small.name}-2")
    working.approve(second)

    def trouble() -> str:
        return working.job(second).trouble

    said = wait_until(trouble, "the second to say what holds it up")
    assert f"held by {first.name} (paused)" in said
    assert "`perdure resume` goes on" in said
    (small.counter / "ready").touch()
    resume(working, first)
    working.done(first)
    failed = working.wait(second, JobPhase.failed)  # by now the preflight finds green
    assert "blue_now" in failed.summary
    assert small.note.read_text() == small.name
