"""The world moves while a job waits or works: it stops there, plans again, shows the difference and asks again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from tests.support.holding import ensure_holdable, held
from tests.support.installation import Installation, wait_until
from tests.support.outside import Outside
from tests.support.people import owner, refusal
from tests.support.repositories import commit, git
from tests.support.small import Small
from tests.support.waits import asked_again, ended
from tests.support.witnesses import MAIN, TAG, receipts

torture = pytest.mark.torture


def approve_after(home: Installation, outside: Outside, happening: Callable[[], object]) -> JobView:
    """Start the job that has every effect, let something happen while it waits, approve all the same."""
    job = home.waiting(outside.start(home))
    happening()
    home.decide(job.digest, "approve")
    return job


def test_branch_moved_while_waiting(working: Installation, outside: Outside) -> None:
    """A commit made while people think is seen before the first effect: the new plan holds it and says so."""
    path = outside.project.path
    job = approve_after(working, outside, lambda: commit(path, "fix: late", orders__py="ORDERS = []\nLATE = 1\n"))
    again = asked_again(working, job, job.digest)
    review = working.review(job)
    assert any("main is" in finding for finding in review.findings)
    assert review.since_previous
    assert receipts(working, job) == []
    working.decide(again.digest, "approve")
    working.done(job)
    assert git(path, "log", "-2", "--format=%s").splitlines() == ["chore(release): 1.3.0", "fix: late"]
    assert len(outside.project.pushes(MAIN)) == len(outside.project.pushes(TAG)) == 1


@torture
def test_tag_appeared_while_waiting(working: Installation, outside: Outside) -> None:
    """Somebody released the same version meanwhile: nothing is applied, and the next version is proposed instead."""
    path = outside.project.path
    job = approve_after(working, outside, lambda: git(path, "tag", "v1.3.0", "HEAD~1"))
    again = asked_again(working, job, job.digest)
    review = working.review(job)
    assert any("v1.3.0 is" in finding for finding in review.findings)
    assert review.title == "1.3.0 → 1.3.1"
    assert receipts(working, job) == []
    working.decide(again.digest, "reject")
    working.wait(job, JobPhase.rejected)
    assert git(path, "rev-parse", "main") == git(outside.project.remote, "rev-parse", "main")


@torture
def test_remote_moved_while_waiting(working: Installation, outside: Outside) -> None:
    """Somebody pushed meanwhile: nothing is applied, and the job ends saying what to do."""
    job = approve_after(working, outside, lambda: push_elsewhere(outside))
    end = ended(working, job)
    assert end.phase is JobPhase.failed
    assert "git pull" in end.summary
    assert receipts(working, job) == []
    assert git(outside.project.path, "log", "-1", "--format=%s") == "fix(api): an empty order is refused"


@torture
@pytest.mark.parametrize(
    ("done", "happening", "said"),
    [
        ("git.commit", lambda outside: git(outside.project.path, "tag", "v1.3.0", "HEAD~2"), "The tag v1.3.0 exists"),
        ("files.write", lambda outside: push_elsewhere(outside), "origin/main is"),
    ],
    ids=["tag appeared", "remote moved"],
)
def test_rest_that_cannot_be_planned_again(
    working: Installation, outside: Outside, done: str, happening: Callable[[Outside], object], said: str
) -> None:
    """A tag or a push of somebody else between two effects leaves no way on: what was done is taken back."""
    job = working.waiting(outside.start(working))
    with held(working, f"ledger.finish_effect[{done}]:after") as hold:
        working.decide(job.digest, "approve")
        hold.wait()
        happening(outside)
    end = ended(working, job)
    assert end.phase is JobPhase.failed
    assert "cannot be planned again" in end.summary
    assert said in end.summary
    assert git(outside.project.path, "log", "-1", "--format=%s") == "fix(api): an empty order is refused"
    assert not (outside.folder / "RELEASED").exists()
    assert len(outside.project.moves(MAIN)) == 5


def push_elsewhere(outside: Outside) -> None:
    """Somebody else pushes a commit to the remote."""
    other = outside.project.path.parent / "other"
    git(other.parent, "clone", "-q", str(outside.project.remote), str(other))
    git(other, "config", "user.name", "Otto")
    git(other, "config", "user.email", "otto@example.org")
    commit(other, "fix: theirs", theirs__py="THEIRS = 1\n")
    git(other, "push", "-q", "origin", "main")


def stop_between(home: Installation, outside: Outside) -> tuple[JobView, JobView]:
    """Change the file that the third effect writes while the second is done; return the job before and after."""
    job = home.waiting(outside.start(home))
    with held(home, "ledger.finish_effect[git.tag]:after") as hold:
        home.decide(job.digest, "approve")
        hold.wait()
        (outside.folder / "RELEASED").write_text("not by Perdure\n")
    return job, asked_again(home, job, job.digest)


def test_file_changed_between_effects(working: Installation, outside: Outside) -> None:
    """It stops at the effect; the rest is planned again with the difference, asked again, and applied once."""
    job, again = stop_between(working, outside)
    review = working.review(job)
    assert [view.effect.id for view in review.effects] == ["note", "push", "announce"]
    assert "commit is done already, by this job." in review.findings
    assert any("RELEASED holds something else" in finding for finding in review.findings)
    assert review.since_previous
    assert receipts(working, job) == ["do commit done", "do tag done"]
    working.decide(again.digest, "approve")
    working.done(job)
    outside.assert_applied_once()


@pytest.mark.parametrize("kind", ["reject", pytest.param("request_changes", marks=torture)])
def test_rest_that_nobody_wants(working: Installation, outside: Outside, kind: str) -> None:
    """When the rest is rejected, or changes are wanted, what was done is taken back newest first."""
    job, again = stop_between(working, outside)
    working.decide(again.digest, kind, comment="no more")
    if kind == "reject":
        assert working.wait(job, JobPhase.rejected).summary.endswith("no more")
    else:
        third = asked_again(working, job, again.digest)
        assert len(working.review(job).effects) == 5, third
    assert receipts(working, job) == ["do commit done", "do tag done", "undo tag done", "undo commit done"]
    path = outside.project.path
    assert git(path, "tag") == git(outside.project.remote, "tag") == "v1.2.0"
    assert git(path, "rev-parse", "main") == git(outside.project.remote, "rev-parse", "main")
    assert outside.project.pushes(MAIN) == outside.project.pushes(TAG) == []
    assert (outside.folder / "RELEASED").read_text() == "not by Perdure\n"
    assert outside.lines("began") == []


def in_doubt(home: Installation, small: Small) -> JobView:
    """Kill the worker in the middle of a command that has no probe; the job as the next worker leaves it."""
    (small.counter / "slow").touch()
    job = home.waiting(small.start(home))
    home.decide(job.digest, "approve")
    wait_until(lambda: small.lines("began"), "the command to begin", explain=home.worker_log)
    home.kill_workers()
    ensure_holdable(home)
    return home.wait(job, JobPhase.unknown)


def resolve(home: Installation, job: JobView, answer: str, effect: int = 1) -> None:
    """Say what became of the command."""
    body = {"decision_id": f"{answer.replace('_', '-')}-{job.number}", "digest": job.digest, "effect": effect}
    home.post("/v1/resolve", {**body, "answer": answer}, ref=job.job_id)


@pytest.mark.parametrize(
    "answer", ["not_done", pytest.param("done", marks=torture), pytest.param("stop", marks=torture)]
)
def test_command_in_doubt_waits_for_a_person(working: Installation, small: Small, answer: str) -> None:
    """Killed in a command that nobody can ask: never run again by itself, it waits until somebody says what became."""
    job = in_doubt(working, small)
    assert job.summary.startswith("announce:")
    assert small.lines("began") == [f"{small.name} began"]
    (small.counter / "go").touch()
    with owner(working) as one:
        body = {"decision_id": "other", "digest": job.digest, "effect": 0, "answer": "done"}
        other = refusal(one.door.post("/v1/resolve", params={"ref": job.job_id}, json=body))
    assert "not in doubt" in other.message
    resolve(working, job, answer)
    end = ended(working, job)
    began = small.lines("began")
    if answer == "not_done":
        assert (end.phase, len(began)) == (JobPhase.done, 2)
        small.assert_applied_once()
    elif answer == "done":
        assert (end.phase, len(began)) == (JobPhase.done, 1)
        assert small.note.exists()
    else:
        assert (end.phase, len(began)) == (JobPhase.failed, 1)
        assert receipts(working, job) == [
            "do note done",
            "do announce unknown",
            "do announce stopped",
            "undo note done",
        ]
        assert not small.note.exists()


SLOW_UNDO = """\
cd "$(dirname "$0")" || exit 9
[ "$1" = undo ] || exit 0
echo "$2 began" >> began; while [ ! -e go ]; do sleep 0.05; done; echo "$2" >> undone.log
"""


@torture
@pytest.mark.parametrize(
    ("answer", "phase", "undone"),
    [("done", JobPhase.failed, 0), ("not_done", JobPhase.failed, 1), ("stop", JobPhase.stuck, 0)],
)
def test_undo_in_doubt_waits_for_a_person(
    working: Installation, small: Small, answer: str, phase: JobPhase, undone: int
) -> None:
    """Killed in an undo that nobody can ask: it waits for a word; the first cause is kept whatever that is."""
    (small.counter / "announce").write_text(SLOW_UNDO)
    job = working.waiting(small.start(working, "doubtful"))
    working.decide(job.digest, "approve")
    wait_until(lambda: small.lines("began"), "the undo to begin", explain=working.worker_log)
    working.kill_workers()
    ensure_holdable(working)
    working.wait(job, JobPhase.unknown)
    (small.counter / "go").touch()
    resolve(working, job, answer, effect=0)
    end = ended(working, job)
    assert end.phase is phase
    assert "ended with 4" in end.summary
    assert len(small.lines("undone.log")) == undone
