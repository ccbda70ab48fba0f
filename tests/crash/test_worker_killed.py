"""A worker that dies anywhere: the same job goes on, and every effect happens once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.effects.registry import default_effects
from tests.crash.points import apply_points, gate_points, kinds_of, park_points, undo_points
from tests.support.guarded import Guarded, make_guarded
from tests.support.installation import Installation, wait_until
from tests.support.outside import Outside, make_outside

SAMPLE = 9
"""Every ninth point runs in the ordinary tests; all of them in ``make torture``."""


APPLY, UNDO = apply_points(kinds_of("everything")), undo_points(kinds_of("everything", undone=True))
GUARDED_APPLY, GUARDED_UNDO = apply_points(kinds_of("guarded")), undo_points(kinds_of("guarded", undone=True))


def _sweep(points: list[str]) -> list[object]:
    return [
        pytest.param(point, id=point, marks=[] if number % SAMPLE == 0 else [pytest.mark.torture])
        for number, point in enumerate(points)
    ]


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    """A project of its own for each test."""
    return make_outside(tmp_path)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """A project behind a forge."""
    with make_guarded(tmp_path) as made:
        yield made


def test_points_are_generated_from_the_registry() -> None:
    """The sweep covers every kind of effect that is registered, forward and back; the number is printed."""
    points = [*APPLY, *gate_points(), *UNDO, *GUARDED_APPLY, *GUARDED_UNDO, *park_points()]
    print(f"{len(points)} kill points")
    assert len(points) >= 180
    there = {kind for template in ("everything", "guarded", "operations") for kind in kinds_of(template)}
    assert sorted(there) == sorted(default_effects())


@pytest.mark.parametrize("point", _sweep([*APPLY, *gate_points()]))
def test_killed_anywhere_on_the_way(home: Installation, outside: Outside, point: str) -> None:
    """Killed at any step of admission, gate or effect, the job ends applied and each effect happened once."""
    with home.dying_worker(point):
        job = outside.start(home)
        home.approve(job)
        home.done(job)
    outside.assert_applied_once()


def undone_by_the_dying(home: Installation, project: Outside | Guarded, point: str) -> JobView:
    """A job that a worker did in peace, taken back by one that dies at ``point``; return the job that took it back."""
    first = home.start_worker()
    job = project.start(home)
    home.approve(job)
    done = home.done(job)
    first.kill()
    first.wait()
    with home.dying_worker(point):
        undo = home.undo(done)
        home.approve(undo)
        home.done(undo)
    return undo


@pytest.mark.parametrize("point", _sweep(UNDO))
def test_killed_while_undoing(home: Installation, outside: Outside, point: str) -> None:
    """Killed anywhere while a job is taken back, everything ends as before, each way back walked once."""
    undone_by_the_dying(home, outside, point)
    outside.assert_taken_back()


@pytest.mark.parametrize("point", _sweep(GUARDED_APPLY))
def test_killed_anywhere_through_a_protected_branch(home: Installation, guarded: Guarded, point: str) -> None:
    """Killed at any step of request, tag or announcement, there is one of each, and the job ends applied."""
    guarded.forge.merges_at_once = "squash"
    with home.dying_worker(point):
        job = guarded.start(home)
        home.approve(job)
        home.done(job)
    guarded.assert_released_once()


@pytest.mark.parametrize("point", _sweep(GUARDED_UNDO))
def test_killed_while_a_tag_and_its_announcement_are_undone(home: Installation, guarded: Guarded, point: str) -> None:
    """Killed anywhere on the way back, tag and release are gone in the end; what is merged stays, and is said."""
    guarded.forge.merges_at_once = "rebase"
    undo = undone_by_the_dying(home, guarded, point)
    guarded.assert_untouched()
    assert "merge cannot be undone" in " ".join(home.review(undo).findings)


@pytest.mark.parametrize("point", _sweep(park_points()))
def test_killed_while_parked_and_while_withdrawing(home: Installation, guarded: Guarded, point: str) -> None:
    """Killed while it looks again, or while a cancelled request is closed: nothing of it is left in the end."""
    with home.dying_worker(point):
        job = guarded.start(home)
        home.approve(job)
        guarded.parked(home, job)
        home.persist(f"/v1/cancel?ref={job.job_id}", {"decision_id": uuid.uuid4().hex[:12]})
        home.wait(job, JobPhase.cancelled)
    guarded.assert_untouched()


def test_command_that_outlives_its_worker_is_ended_before_the_next_attempt(
    home: Installation, outside: Outside
) -> None:
    """`do` goes on when its worker is killed; the next attempt ends it first, so that it happens once."""
    (outside.counter / "slow").touch()
    worker = home.start_worker()
    job = outside.start(home)
    home.approve(job)
    wait_until(lambda: outside.lines("began"), "the command to begin")
    worker.kill()
    worker.wait()
    assert outside.lines("done.log") == []
    home.start_worker()
    wait_until(lambda: len(outside.lines("began")) == 2, "the second attempt")
    (outside.counter / "go").touch()
    home.done(job)
    outside.assert_applied_once()
    home.kill_workers()
