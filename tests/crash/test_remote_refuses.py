"""The remote says no after the tag: what was done is taken back newest first, and what cannot be is said beside why."""

from __future__ import annotations

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from tests.support.installation import Installation
from tests.support.outside import Outside
from tests.support.repositories import git
from tests.support.waits import asked_again
from tests.support.witnesses import MAIN, TAG, assert_nothing_left, receipts, refuse_pushes

torture = pytest.mark.torture

FORTH = ["do commit done", "do tag done", "do note done"]
BACK = ["undo note done", "undo tag done", "undo commit done"]


def fail(home: Installation, outside: Outside, *phases: JobPhase) -> JobView:
    """Run the job that has every effect to an end that is none of success."""
    job = outside.start(home)
    home.approve(job)
    return home.wait(job, *phases)


def test_refused_push_takes_everything_back(working: Installation, outside: Outside) -> None:
    """A hook of the remote refuses the push: note, tag and commit are taken back in this order, the cause is shown."""
    refuse_pushes(outside, "echo 'no releases on fridays' >&2; exit 1")
    job = fail(working, outside, JobPhase.failed)
    assert job.summary.startswith("effect 4: push:")
    assert "refused the push" in job.summary
    assert "no releases on fridays" in job.summary
    assert receipts(working, job) == [*FORTH, "do push failed", *BACK]
    assert_nothing_left(outside)


@torture
def test_refused_tag_leaves_the_branch_unpushed(working: Installation, outside: Outside) -> None:
    """A remote that would take the branch and not the tag gets neither, and everything is taken back."""
    hook = outside.project.remote / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" != refs/tags/v1.3.0 ] || { echo "tags are mine" >&2; exit 1; }\n')
    hook.chmod(0o755)
    job = fail(working, outside, JobPhase.failed)
    assert "tags are mine" in job.summary
    assert receipts(working, job) == [*FORTH, "do push failed", *BACK]
    assert_nothing_left(outside)


@torture
def test_what_was_pushed_is_taken_back_too(working: Installation, outside: Outside) -> None:
    """A command that fails after the push: the remote is put back as well, each ref there and back once."""
    (outside.counter / "announce").write_text('[ "$1" = probe ] && exit 1\necho "no network" >&2; exit 3\n')
    job = fail(working, outside, JobPhase.failed)
    assert "ended with 3" in job.summary
    assert receipts(working, job) == [*FORTH, "do push done", "do announce failed", "undo push done", *BACK]
    for ref in (MAIN, TAG):
        there, back = (line.split(" ")[:2] for line in outside.project.pushes(ref))
        assert there == back[::-1]
    assert git(outside.project.remote, "tag") == git(outside.project.path, "tag") == "v1.2.0"


def test_undo_that_fails_stands_beside_the_cause(working: Installation, outside: Outside) -> None:
    """The tag was moved by somebody before it could be taken back: the job is stuck, and says what and why."""
    path = outside.project.path
    move = f"unset GIT_QUARANTINE_PATH $(git rev-parse --local-env-vars); git -C {path} tag -f v1.3.0 HEAD~2; exit 1"
    refuse_pushes(outside, move)
    job = fail(working, outside, JobPhase.stuck)
    cause, _, undo = job.summary.partition(" · ")
    assert "refused the push" in cause
    assert "effect 2 was not taken back" in undo
    assert "v1.3.0 is" in undo
    assert receipts(working, job) == [*FORTH, "do push failed", "undo note done", "undo tag failed"]
    assert git(path, "log", "-1", "--format=%s") == "chore(release): 1.3.0"

    undoing = working.undo(job)
    first = working.waiting(undoing)
    assert [view.effect.id for view in working.review(undoing).effects] == ["undo-tag", "undo-commit"]
    working.decide(first.digest, "approve")
    again = asked_again(working, undoing, first.digest)
    assert any("v1.3.0 is" in finding for finding in working.review(undoing).findings), "says why not"
    git(path, "update-ref", TAG, tag_object(working, job))
    working.decide(again.digest, "approve")
    working.done(undoing)
    assert_nothing_left(outside)


@torture
def test_remote_moved_before_it_was_put_back(working: Installation, outside: Outside) -> None:
    """Somebody moves the pushed tag before it is taken back: it is left alone, and undone once it is ours again."""
    path, remote = outside.project.path, outside.project.remote
    script = f'[ "$1" = probe ] && exit 1\ngit -C {remote} tag -f v1.3.0 main~2 && exit 3\n'
    (outside.counter / "announce").write_text(script)
    job = fail(working, outside, JobPhase.stuck)
    assert "ended with 3" in job.summary
    assert "effect 4 was not taken back" in job.summary
    assert receipts(working, job)[-2:] == ["do announce failed", "undo push failed"]
    assert git(path, "rev-parse", "v1.3.0^{commit}") == git(path, "rev-parse", "main")

    git(remote, "update-ref", TAG, tag_object(working, job))
    undoing = working.undo(job)
    working.approve(undoing)
    working.done(undoing)
    assert git(remote, "tag") == git(path, "tag") == "v1.2.0"
    assert git(remote, "rev-parse", "main") == git(path, "rev-parse", "main")
    assert git(path, "log", "-1", "--format=%s") == "fix(api): an empty order is refused"
    assert not (outside.folder / "RELEASED").exists()


def tag_object(home: Installation, job: JobView) -> str:
    """Id of the tag that a job's plan makes."""
    return str(home.review(job).effects[1].effect.body["new"])
