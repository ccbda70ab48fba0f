"""Two workers on one data folder, and workers that sleep: each effect happens once, whoever does it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from perdure.contracts import names
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from tests.support.files import look_at
from tests.support.holding import held, start_holdable
from tests.support.installation import Installation, wait_until
from tests.support.outside import Outside, make_outside
from tests.support.small import Small
from tests.support.waits import asked_again

torture = pytest.mark.torture

HEARTBEAT_SECONDS = 5
"""``workflows.calls.HEARTBEAT``: after so long without a beat Temporal gives an activity out again."""


@pytest.fixture
def two(module_home: Installation) -> Installation:
    """The installation with two living workers."""
    while sum(process.poll() is None for process in module_home.workers) < 2:
        start_holdable(module_home)
    return module_home


def test_two_workers_share_the_work(two: Installation, tmp_path: Path) -> None:
    """Three releases at once on two workers: every effect of each happens once."""
    worlds = [make_outside(tmp_path / str(number)) for number in range(3)]
    with ThreadPoolExecutor(3) as pool:
        jobs = list(pool.map(lambda outside: two.approve(outside.start(two)), worlds))
        list(pool.map(two.done, jobs))
    for outside in worlds:
        outside.assert_applied_once()


@torture
def test_two_jobs_want_the_same_repository(two: Installation, outside: Outside) -> None:
    """Two approved releases of one repository at once: one is applied, the other one asks again about what is left."""
    jobs = [two.waiting(outside.start(two)) for _ in range(2)]
    with held(two, "ledger.begin_effect[git.commit]:before") as hold:
        for job in jobs:
            two.decide(job.digest, "approve")
        hold.wait()
    first, second = sorted(jobs, key=lambda job: two.wait(job, JobPhase.done, JobPhase.waiting).phase)
    assert two.job(first).phase is JobPhase.done
    asked_again(two, second, second.digest)
    assert any("main is" in finding for finding in two.review(second).findings)
    outside.assert_applied_once()


@torture
def test_one_of_two_workers_is_killed(two: Installation, small: Small) -> None:
    """The worker that runs a command is killed: the other one ends the command before it asks what became of it."""
    job = begin(two, small)
    worker = worker_of(two, job)
    os.kill(worker, signal.SIGKILL)
    two.wait(job, JobPhase.unknown)
    (small.counter / "go").touch()
    assert small.lines("began") == [f"{small.name} began"]
    assert small.lines("done.log") == []


def test_worker_that_slept_goes_on(working: Installation, small: Small) -> None:
    """A machine that sleeps in the middle of a command: given out again, it is neither run twice nor ended."""
    job = begin(working, small)
    with asleep(worker_of(working, job)):
        time.sleep(HEARTBEAT_SECONDS + 1)  # the sleep itself
    wait_until(lambda: 2 in attempts_in_flight(working, job), "the command to be given out again")
    (small.counter / "go").touch()
    working.done(job)
    assert small.lines("began") == [f"{small.name} began"]
    small.assert_applied_once()


@torture
def test_one_of_two_workers_slept(two: Installation, small: Small) -> None:
    """One of two workers sleeps in the middle of a command: the other one leaves the command to it."""
    job = begin(two, small)
    with asleep(worker_of(two, job)):
        wait_until(lambda: len(attempts_in_flight(two, job)) > 1, "the other worker", timedelta(seconds=90))
    (small.counter / "go").touch()
    two.done(job)
    assert small.lines("began") == [f"{small.name} began"]
    small.assert_applied_once()


def begin(home: Installation, small: Small) -> JobView:
    """Start a job and see its slow command begin."""
    (small.counter / "slow").touch()
    job = home.waiting(small.start(home))
    home.decide(job.digest, "approve")
    wait_until(lambda: small.lines("began"), "the command to begin", explain=home.worker_log)
    return job


def worker_of(home: Installation, job: JobView) -> int:
    """The process id of the worker that runs the job's command."""
    with home.ledger() as ledger:
        group = ledger.intents(job_id=job.job_id)[-1].pgid
    return int(Path(f"/proc/{group}/stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def asleep(process: int) -> Iterator[None]:
    """Stop a process for the time of the block."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def attempts_in_flight(home: Installation, job: JobView) -> set[int]:
    """Attempts at effects of a job that the workers' journal names."""
    application = names.application_id(job.job_id, job.round)
    found = set()
    for _, text in look_at(home.settings.journal.glob("*.json"), Path.read_text):
        entry = json.loads(text)
        if (entry["workflow_id"], entry["activity_type"]) == (application, names.APPLY_EFFECT):
            found.add(entry["attempt"])
    return found
