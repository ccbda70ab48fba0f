"""A release through a protected branch: parked until exactly the approved tree is merged, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.names import application_id
from tests.support.guarded import BRANCH, Guarded, make_guarded
from tests.support.installation import Installation, wait_until
from tests.support.repositories import git
from tests.support.waits import asked_again, ended


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """A project of its own for each test."""
    with make_guarded(tmp_path) as made:
        yield made


def park(home: Installation, guarded: Guarded, flavour: str = "github") -> JobView:
    """A job that waits for its merge."""
    job = guarded.start(home, flavour)
    home.approve(job)
    return guarded.parked(home, job)


@pytest.mark.parametrize("flavour", ["github", "gitlab"])
def test_parked_until_merged_then_tagged_and_announced(working: Installation, guarded: Guarded, flavour: str) -> None:
    """The job says what it waits for, with the address; merged, it goes on when somebody looks, and ends."""
    job = park(working, guarded, flavour)
    request = guarded.forge.url + ("/acme/orders/pull/" if flavour == "github" else "/acme/orders/-/merge_requests/")
    assert request in job.summary and job.digest
    assert "waiting for merge" in job.phase.value.replace("_", " ")
    guarded.forge.merge(guarded.number(), "squash")
    working.post("/v1/look", {}, ref=job.job_id)
    working.done(job)
    guarded.assert_released_once()
    report = working.get("/v1/audit", ref=job.job_id)
    assert report["ok"], report


def test_merge_is_found_without_anybody_looking(working: Installation, guarded: Guarded) -> None:
    """A durable timer looks by itself."""
    job = park(working, guarded)
    guarded.forge.merge(guarded.number(), "rebase")
    working.done(job)
    guarded.assert_released_once()


def test_parked_job_holds_no_activity(working: Installation, guarded: Guarded) -> None:
    """While it waits nothing of it runs in any worker, and its history grows by a look a pause."""
    job = park(working, guarded)

    async def pending() -> int:
        client = await working.temporal()
        handle = client.get_workflow_handle(application_id(job.job_id, job.round))
        described = await handle.describe()
        return len(described.raw_description.pending_activities)

    wait_until(lambda: asyncio.run(pending()) == 0, "no activity to run")
    assert not guarded.forge.releases


def test_worker_killed_while_parked(home: Installation, guarded: Guarded) -> None:
    """SIGKILL while it is parked, merged while nobody is there: the next worker goes on, everything once."""
    first = home.start_worker()
    job = park(home, guarded)
    first.kill()
    first.wait()
    guarded.forge.merge(guarded.number(), "merge")
    home.start_worker()
    home.done(job)
    guarded.assert_released_once()
    home.kill_workers()


def test_cancel_while_parked_closes_and_deletes(working: Installation, guarded: Guarded) -> None:
    """`perdure cancel` closes the request and deletes our branch; nothing else had happened."""
    job = park(working, guarded)
    working.post("/v1/cancel", {"decision_id": "c" + job.job_id[-11:]}, ref=job.job_id)
    assert ended(working, job).phase is JobPhase.cancelled
    guarded.assert_untouched()


def test_cancel_leaves_a_branch_that_others_pushed_to(working: Installation, guarded: Guarded) -> None:
    """Somebody's commit on our branch is not thrown away by cancelling."""
    job = park(working, guarded)
    with guarded.forge.lock:  # no look in between: the cancel finds both
        theirs = guarded.forge.git.commit(BRANCH, "more.txt", "theirs\n")
        working.post("/v1/cancel", {"decision_id": "d" + job.job_id[-11:]}, ref=job.job_id)
    assert ended(working, job).phase is JobPhase.cancelled
    assert guarded.ref(f"refs/heads/{BRANCH}") == theirs


def test_merged_with_another_change_is_asked_again(working: Installation, guarded: Guarded) -> None:
    """Another tree was merged: nothing is tagged; the job says so, and plans again from where the branch is."""
    job = park(working, guarded)
    guarded.forge.merge(guarded.number(), "squash", change="one more line\n")
    working.post("/v1/look", {}, ref=job.job_id)
    found = wait_until(
        lambda: (now := working.job(job)).phase.is_final and now, "the job to see it", explain=working.worker_log
    )
    assert guarded.ref("refs/tags/v1.3.0") == "" and guarded.forge.releases == {}
    assert "git pull" in found.summary, found.summary


def test_closed_request_is_withdrawn_and_asked_again(working: Installation, guarded: Guarded) -> None:
    """Closed by somebody: our branch is taken away, a new plan says why and asks again; merged, that is released."""
    job = park(working, guarded)
    guarded.forge.close(guarded.number())
    working.post("/v1/look", {}, ref=job.job_id)
    again = asked_again(working, job, job.digest)
    assert "closed" in " ".join(working.review(job).findings)
    working.approve(again)
    guarded.parked(working, again)
    guarded.forge.merge(guarded.number(), "squash")
    working.post("/v1/look", {}, ref=job.job_id)
    working.done(job)
    assert sorted(one["state"] for one in guarded.forge.requests.values()) == ["closed", "merged"]
    assert guarded.ref("refs/tags/v1.3.0^{commit}") == guarded.ref("refs/heads/main")


def test_moved_target_is_planned_again_from_there(working: Installation, guarded: Guarded) -> None:
    """main went on: the request is withdrawn; with the new commit pulled, the next plan shows what has changed."""
    job = park(working, guarded)
    guarded.forge.git.commit("main", "other.txt", "theirs\n", message="feat: of somebody else")
    git(guarded.project.path, "pull", "-q", "--ff-only", "origin", "main")
    working.post("/v1/look", {}, ref=job.job_id)
    asked_again(working, job, job.digest)
    review = working.review(job)
    assert "origin/main is" in " ".join(review.findings)
    assert "of somebody else" in "\n".join(review.since_previous.splitlines() or [review.diff])
    guarded.assert_untouched()


def test_moved_target_that_was_not_pulled_ends_with_what_to_do(working: Installation, guarded: Guarded) -> None:
    """main went on and the repository is behind: nothing is left, and the job ends saying what to run."""
    job = park(working, guarded)
    guarded.forge.git.commit("main", "other.txt", "theirs\n")
    working.post("/v1/look", {}, ref=job.job_id)
    assert "git pull" in ended(working, job).summary
    guarded.assert_untouched()


def test_forge_down_while_parked_needs_nobody(working: Installation, guarded: Guarded) -> None:
    """A forge that is broken, or a token that expired, is said and looked at again; no person has to resolve it."""
    job = park(working, guarded)
    guarded.give_token(working, "expired")
    working.post("/v1/look", {}, ref=job.job_id)
    wait_until(lambda: "secrets/forge-token" in working.job(job).summary, "the cause", explain=working.worker_log)
    assert working.job(job).phase is JobPhase.waiting_for_merge
    guarded.give_token(working)
    guarded.forge.merge(guarded.number(), "squash")
    working.post("/v1/look", {}, ref=job.job_id)
    working.done(job)
    guarded.assert_released_once()
