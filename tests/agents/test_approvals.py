"""Calls that stand approved, and calls that a person edits: as far as was said, judged again, to the letter."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.names import CALL_ROUNDS
from perdure.testing.model_handle import ModelServer
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, wait_until, write

WORK = {"turns": [{"calls": [write("NOTE", "the first note\n")]}, {"text": "Done."}]}


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with model_server(WORK) as server:
        yield server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("approvals"), model) as found:
        found.home.start_worker()
        yield found


def asked(place: Office, name: str, *, other_than: str = "") -> JobView:
    """A job of the thread that the name makes, whose agent waits for a decision on its call."""
    job = place.home.waiting(place.start("ask", name=name))
    assert job.round >= CALL_ROUNDS
    return job


def next_plan(place: Office, job: JobView) -> JobView:
    """The job once it waits with another plan."""
    wait_until(
        lambda: (now := place.home.job(job)).digest not in ("", job.digest) and now.phase is JobPhase.waiting,
        "another plan",
        explain=place.home.worker_log,
    )
    return place.home.job(job)


def stand(place: Office, digest: str, **scope: Any) -> dict[str, Any]:
    """Let calls like that of a plan go."""
    body = {"decision_id": uuid.uuid4().hex[:12], "digest": digest, "lasts_seconds": 3600, **scope}
    return dict(place.home.post("/v1/approvals", body))


def perdure(place: Office, *words: str) -> Any:
    """What the command line answers, as JSON."""
    argv = [sys.executable, "-m", "perdure", "--data", str(place.home.settings.data), *words, "--json"]
    ended = subprocess.run(argv, env=place.home.environ, capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


def test_standing_approval_lets_exactly_such_calls_go(place: Office) -> None:
    """It is signed, used for what it covers and counted each time, no longer than it stands; the audit agrees."""
    first = asked(place, "standing")
    made = stand(place, first.digest, uses=3)
    final = next_plan(place, first)
    assert (final.round, made["used"]) == (1, 0)
    place.home.decide(final.digest, "reject")
    second = place.home.waiting(place.start("ask", name="standing"))
    assert second.round == 1, "it asked although such a call stands approved"
    [call] = place.calls(second)
    assert (call.status, bool(call.digest)) == ("ok", True)
    used = [
        event for event in place.home.get("/v1/events", ref=second.job_id)["events"] if event["kind"] == "approval.used"
    ]
    assert [event["body"]["approval"] for event in used] == [made["id"]]
    assert perdure(place, "approvals", "list", "--thread", "ask-standing")[0]["used"] == 2
    audit = place.home.get("/v1/audit", ref=second.job_id)
    assert [found for found in audit["findings"] if found["severity"] not in ("ok", "expired")] == []
    place.home.decide(second.digest, "reject")
    assert perdure(place, "approvals", "revoke", made["id"][:6], "-m", "enough")["state"] == "revoked"
    third = asked(place, "standing")
    place.home.decide(third.digest, "reject", comment="no more")


def test_standing_approval_reaches_no_further_than_it_says(place: Office) -> None:
    """No other thread, no other target, not more often than it says; patterns that miss their own call are refused."""
    first = asked(place, "scope")
    wrong = place.home.door.post(
        "/v1/approvals",
        json={"decision_id": "far", "digest": first.digest, "lasts_seconds": 60, "target": "file:docs/**"},
    )
    assert wrong.status_code == 422 and "do not match the call" in wrong.text
    stand(place, first.digest, target="file:N*", uses=1)
    place.home.decide(next_plan(place, first).digest, "reject")
    again = asked(place, "scope")
    other = asked(place, "scope-of-another-thread")
    for job in (again, other):
        place.home.decide(job.digest, "reject", comment="no")


def test_edited_call_is_judged_again_and_runs_as_edited(place: Office) -> None:
    """An edit is a new plan with its author; what the rules deny or the tool does not take cannot be edited in."""
    job = asked(place, "edited")

    def edit(now: JobView, **arguments: str) -> JobView:
        place.home.decide(now.digest, "request_changes", changes={"arguments": arguments})
        return next_plan(place, now)

    denied = edit(job, path="zz-guarded", content="x")
    assert "the change cannot be: template.permissions.1" in str(place.home.review(denied).findings)
    assert "the first note" in place.home.review(denied).effects[0].effect.body["arguments"]
    misfit = edit(denied, pth="NOTE", content="x")
    assert "`pth` is not an argument" in str(place.home.review(misfit).findings)
    edited = edit(misfit, path="NOTE", content="the first note, as edited\n")
    review = place.home.review(edited)
    assert "as edited" in review.effects[0].effect.body["arguments"] and review.authors
    assert "body (arguments) differ" in review.since_previous
    place.home.decide(edited.digest, "approve")
    final = next_plan(place, edited)
    assert "+the first note, as edited" in place.home.review(final).diff
    assert "changed this call before it ran" in place.transcript(job)[3].results[0].text
    assert [call.attempts for call in place.calls(job)] == [1]
