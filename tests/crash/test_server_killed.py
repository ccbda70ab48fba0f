"""The Temporal server dies at any point of a job and comes back on its file: the job ends right, each effect once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from perdure.contracts.job import JobPhase
from tests.support.holding import ensure_holdable, held
from tests.support.installation import Installation, wait_until
from tests.support.outside import Outside
from tests.support.people import owner, refusal
from tests.support.small import Small
from tests.support.witnesses import assert_nothing_left, receipts, refuse_pushes

HEARTBEAT_SECONDS = 5
"""``workflows.calls.HEARTBEAT``: after so long without a beat Temporal gives an activity out again."""

torture = pytest.mark.torture


@contextmanager
def outage(home: Installation, *, of_worker: bool = False) -> Iterator[None]:
    """SIGKILL the server, or the server and the worker; they are back at the end of the block."""
    home.server.kill()
    if of_worker:
        home.kill_workers()
    try:
        yield
    finally:
        home.server.restart()
        ensure_holdable(home)


@torture
def test_killed_while_gathering(working: Installation, outside: Outside) -> None:
    """Killed while sources are read, the stages go on where they were."""
    with held(working, "ledger.note_job[gathering]:after") as hold:
        job = outside.start(working)
        hold.wait()
        with outage(working):
            hold.release()
    working.approve(job)
    working.done(job)
    outside.assert_applied_once()


@torture
def test_killed_while_people_are_waited_for(working: Installation, outside: Outside) -> None:
    """Killed while a job is parked at its gate, the gate is there again and takes the decision."""
    job = working.waiting(outside.start(working))
    with outage(working):
        assert working.job(job).phase is JobPhase.waiting  # the ledger answers without it
    working.approve(job)
    working.done(job)
    outside.assert_applied_once()


@pytest.mark.parametrize("of_worker", [pytest.param(False, marks=torture), True])
def test_killed_between_decision_and_first_effect(working: Installation, outside: Outside, of_worker: bool) -> None:
    """Killed when all is decided and nothing begun, alone or with the worker, the approved plan is applied once."""
    job = outside.start(working)
    with held(working, "ledger.begin_effect[git.commit]:before") as hold:
        working.approve(job)
        hold.wait()
        with outage(working, of_worker=of_worker):
            hold.release()
    working.done(job)
    outside.assert_applied_once()


@pytest.mark.parametrize("of_worker", [False, pytest.param(True, marks=torture)])
def test_killed_in_the_middle_of_an_effect(working: Installation, outside: Outside, of_worker: bool) -> None:
    """Killed while a command runs: it ends once. A worker that lives keeps the command; a new one ends it first."""
    (outside.counter / "slow").touch()
    job = outside.start(working)
    working.approve(job)
    wait_until(lambda: outside.lines("began"), "the command to begin", explain=working.worker_log)
    with outage(working, of_worker=of_worker):
        if not of_worker:
            (outside.counter / "go").touch()
    if of_worker:
        wait_until(lambda: len(outside.lines("began")) == 2, "the second attempt", explain=working.worker_log)
        (outside.counter / "go").touch()
    working.done(job)
    outside.assert_applied_once()


@torture
def test_gone_for_longer_than_an_effect_may_be_silent(working: Installation, outside: Outside) -> None:
    """After an outage longer than a heartbeat the effect may be given out again: the attempt that runs goes on."""
    (outside.counter / "slow").touch()
    job = outside.start(working)
    working.approve(job)
    wait_until(lambda: outside.lines("began"), "the command to begin", explain=working.worker_log)
    with outage(working):
        time.sleep(HEARTBEAT_SECONDS + 2)  # the outage itself, not a guess at something else's duration
    (outside.counter / "go").touch()
    working.done(job)
    assert outside.lines("began") == ["1.3.0 began"]
    outside.assert_applied_once()


@torture
def test_killed_while_undoing(working: Installation, outside: Outside) -> None:
    """Killed while a failed application is taken back, each way back is walked once and the cause is kept."""
    refuse_pushes(outside)
    job = outside.start(working)
    with held(working, "effect.do[git.push]:before") as pushing:
        working.approve(job)
        pushing.wait()
        with held(working, "effect.do[git.tag]:before") as untagging:
            pushing.release()
            untagging.wait()
            with outage(working):
                untagging.release()
    end = working.wait(job, JobPhase.failed)
    assert "refused the push" in end.summary
    assert receipts(working, job)[-3:] == ["undo note done", "undo tag done", "undo commit done"]
    assert_nothing_left(outside)


@torture
def test_decision_made_without_a_server_is_passed_on(working: Installation, small: Small) -> None:
    """Deciding while the server is gone is recorded, said so, and passed on by itself when the server is back."""
    job = working.waiting(small.start(working))
    with outage(working), owner(working) as one:
        problem = refusal(one.decide(job.digest, "approve"))
        assert problem.kind == "SetupError"
        assert "Your decision is recorded and counts" in problem.message
        small.assert_untouched()
    working.done(job)
    small.assert_applied_once()
