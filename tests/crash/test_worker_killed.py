"""A worker that dies anywhere: the same job goes on, and every effect happens once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.points import apply_points, gate_points, undo_points
from tests.support.installation import Installation, wait_until
from tests.support.outside import Outside, make_outside

SAMPLE = 9
"""Every ninth point runs in the ordinary tests; all of them in ``make torture``."""


def _sweep(points: list[str]) -> list[object]:
    return [
        pytest.param(point, id=point, marks=[] if number % SAMPLE == 0 else [pytest.mark.torture])
        for number, point in enumerate(points)
    ]


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    """A project of its own for each test."""
    return make_outside(tmp_path)


def test_points_are_generated_from_the_registry() -> None:
    """The sweep covers every kind of effect that is registered, forward and back; the number is printed."""
    total = len(apply_points()) + len(gate_points()) + len(undo_points())
    print(f"{total} kill points")
    assert total >= 100


@pytest.mark.parametrize("point", _sweep([*apply_points(), *gate_points()]))
def test_killed_anywhere_on_the_way(home: Installation, outside: Outside, point: str) -> None:
    """Killed at any step of admission, gate or effect, the job ends applied and each effect happened once."""
    with home.dying_worker(point):
        job = outside.start(home)
        home.approve(job)
        home.done(job)
    outside.assert_applied_once()


@pytest.mark.parametrize("point", _sweep(undo_points()))
def test_killed_while_undoing(home: Installation, outside: Outside, point: str) -> None:
    """Killed anywhere while a job is taken back, everything ends as before, each way back walked once."""
    first = home.start_worker()
    job = outside.start(home)
    home.approve(job)
    done = home.done(job)
    first.kill()
    first.wait()
    with home.dying_worker(point):
        undo = home.undo(done)
        home.approve(undo)
        home.done(undo)
    outside.assert_taken_back()


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
