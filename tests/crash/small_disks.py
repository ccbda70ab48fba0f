"""Jobs on disks that fill up: ``small_disks.py FOLDER SCENARIO…``.

``FOLDER/data/blobs``, ``FOLDER/data/workspaces`` and ``FOLDER/ledger`` are small disks. Each scenario fills one,
lets the worker or the API run into it, looks that nothing was half-done, frees the space again, and sees the job to its
end. A scenario that ends is printed.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.contracts.job import JobPhase
from tests.support.holding import held, newest_log, start_holdable
from tests.support.installation import Installation, installation, wait_until
from tests.support.outside import Outside, make_outside
from tests.support.people import owner, refusal
from tests.support.repositories import git

LEDGER = "ledger/ledger.db"
PAGE = b"\0" * 4096


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Not one more byte fits on the disk; there is space again at the end."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(PAGE):
                continue
        except OSError as error:
            assert error.errno == errno.ENOSPC, os.strerror(error.errno or 0)
    try:
        yield
    finally:
        filler.unlink()


def heard(home: Installation, text: str, times: int) -> None:
    """Wait until the worker has complained about ``text`` so often."""
    wait_until(lambda: newest_log(home).count(text) >= times, text, explain=home.worker_log)


def blobs_full(home: Installation) -> str:
    """How a full blob store is told."""
    return f"The blob folder {home.settings.blobs} is full. Nothing was stored."


def ledger_full(home: Installation) -> str:
    """How a full ledger is told, up to the database's own words."""
    return f"Ledger unreachable at {home.settings.ledger}"


def blob_of_a_source(home: Installation, outside: Outside) -> None:
    """Three sources' results find no space, more often than four attempts each allow: the job is not failed for it."""
    with held(home, "ledger.note_job[gathering]:after") as hold:
        job = outside.start(home)
        hold.wait()
        with full(home.settings.blobs):
            hold.release()
            heard(home, blobs_full(home), 13)
            assert home.job(job).phase is JobPhase.gathering
    home.approve(job)
    home.done(job)
    outside.assert_applied_once()


def workspace_of_a_draft(home: Installation, outside: Outside) -> None:
    """A workspace has no space for its files: the job says so, is not failed for it, and drafts when there is some."""
    with held(home, "ledger.note_job[drafting]:after") as hold:
        job = outside.start(home)
        hold.wait()
        with full(home.settings.workspaces):
            hold.release()
            heard(home, "A disk is full", 5)
            wait_until(lambda: "A disk is full" in home.job(job).trouble, "the job to say so itself")
            assert home.job(job).phase is JobPhase.drafting
    home.approve(job)
    home.done(job)
    outside.assert_applied_once()


def blob_of_a_receipt(home: Installation, outside: Outside) -> None:
    """The receipt of what was just done finds no space: nothing more begins, and it is not done again afterwards."""
    job = outside.start(home)
    with held(home, "effect.do[git.commit]:after") as hold:
        home.approve(job)
        hold.wait()
        with full(home.settings.blobs):
            hold.release()
            heard(home, blobs_full(home), 2)
            with home.ledger() as ledger:
                assert [(row.effect_id, row.state) for row in ledger.intents(job_id=job.job_id)] == [
                    ("commit", "intent")
                ]
            assert git(outside.project.path, "tag") == "v1.2.0"
    home.done(job)
    outside.assert_applied_once()


def ledger_before_the_first_effect(home: Installation, outside: Outside) -> None:
    """The ledger has no space for an intent: nothing starts before it has."""
    job = outside.start(home)
    with held(home, "ledger.begin_effect[git.commit]:before") as hold:
        home.approve(job)
        hold.wait()
        with full(home.settings.data.parent / "ledger"):
            hold.release()
            heard(home, ledger_full(home), 2)
            assert git(outside.project.path, "log", "-1", "--format=%s") == "fix(api): an empty order is refused"
            with home.ledger() as ledger:
                assert ledger.intents(job_id=job.job_id) == []
    home.done(job)
    outside.assert_applied_once()


def ledger_at_a_receipt(home: Installation, outside: Outside) -> None:
    """The ledger has no space for a receipt: the command is not run again when it has."""
    job = outside.start(home)
    with held(home, "ledger.finish_effect[shell.run]:before") as hold:
        home.approve(job)
        hold.wait()
        with full(home.settings.data.parent / "ledger"):
            hold.release()
            heard(home, ledger_full(home), 2)
            assert not home.job(job).phase.is_final
    home.done(job)
    assert outside.lines("began") == ["1.3.0 began"]
    outside.assert_applied_once()


def submission(home: Installation, outside: Outside) -> None:
    """A job that cannot be pinned is refused with the folder's name, and there is none; later the same request runs."""
    inputs = {"folder": str(outside.folder), "counter": str(outside.counter)}
    where = str(outside.project.path)
    request = {"template": "everything", "inputs": inputs, "request_id": "no-space", "folder": where}
    with full(home.settings.blobs):
        problem = refusal(home.door.post("/v1/jobs", json=request))
        assert (problem.kind, problem.exit_code) == ("SetupError", 69)
        assert problem.message.startswith(blobs_full(home))
        assert problem.message.endswith("There is no job; ask for it again then.")
    assert not any(job["job_id"].endswith("no-space") for job in home.get("/v1/jobs"))
    assert home.persist("/v1/jobs", request)["number"]


def decision(home: Installation, outside: Outside) -> None:
    """A decision that cannot be recorded is refused with the ledger's name and does not count; sent again it does."""
    job = home.waiting(outside.start(home))
    with owner(home) as one:
        with full(home.settings.data.parent / "ledger"):
            problem = refusal(one.decide(job.digest, "approve", decision_id="no-space"))
            assert problem.message.startswith(ledger_full(home))
            assert "Nothing was written" in problem.message
        assert home.job(job).phase is JobPhase.waiting
        with home.ledger() as ledger:
            assert ledger.decision("no-space") is None
        assert one.decide(job.digest, "approve", decision_id="no-space").status_code == 200
    home.done(job)
    outside.assert_applied_once()


SCENARIOS: dict[str, Callable[[Installation, Outside], None]] = {
    scenario.__name__: scenario
    for scenario in (
        blob_of_a_source,
        workspace_of_a_draft,
        blob_of_a_receipt,
        ledger_before_the_first_effect,
        ledger_at_a_receipt,
        submission,
        decision,
    )
}


def main(folder: Path, names: list[str]) -> None:
    """Run scenarios on one installation."""
    with installation(folder, PERDURE_LEDGER_URL=f"sqlite:///{folder / LEDGER}") as home:
        start_holdable(home)
        for name in names:
            SCENARIOS[name](home, make_outside(folder / "worlds" / name))
            print(name, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
