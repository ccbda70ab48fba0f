"""A call that asks is a plan of one effect: decided by signed decisions, run once and to the letter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.names import CALL_ROUNDS
from perdure.testing.model_handle import ModelServer
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, patch_of, wait_until, write

WRITE = {"calls": [write("NOTE", "the first note\n")]}
WORK = {"turns": [WRITE, {"text": "Done."}, WRITE, {"text": "Done."}, WRITE, WRITE]}


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with model_server(WORK) as server:
        yield server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("asking"), model) as found:
        found.home.start_worker()
        yield found


def asked(place: Office, name: str) -> JobView:
    """A job whose agent waits for a decision on its first call."""
    job = place.home.waiting(place.start("ask", name=name))
    assert job.round >= CALL_ROUNDS
    return job


def next_wait(place: Office, job: JobView, other_than: str) -> JobView:
    """The job once it waits with another plan."""
    wait_until(
        lambda: (now := place.home.job(job)).digest not in ("", other_than) and now.phase is JobPhase.waiting,
        "another plan",
        explain=place.home.worker_log,
    )
    return place.home.job(job)


def test_approved_call_runs_once_as_it_was_shown(place: Office) -> None:
    """Nothing runs before the decision; the approved arguments run, once, and the receipt is in the ledger."""
    job = asked(place, "approved")
    assert place.calls(job)[0].status == "waits"
    review = place.home.review(job)
    assert "the first note" in review.effects[0].effect.body["arguments"]
    assert review.effects[0].effect.summary == "files.write on file:NOTE"
    place.home.decide(job.digest, "approve")
    final = next_wait(place, job, job.digest)
    assert final.round == 1
    [call] = place.calls(job)
    assert (call.status, call.attempts, call.digest) == ("ok", 1, job.digest)
    with place.home.ledger() as ledger:
        [intent] = [row for row in ledger.intents(job_id=job.job_id) if row.digest == job.digest]
        assert (intent.state, intent.attempts) == ("done", 1)
    audit = place.home.get("/v1/audit", ref=job.job_id)
    assert [found for found in audit["findings"] if found["severity"] not in ("ok", "expired")] == []


POINTS = [
    *(f"agents.{name}#1:{when}" for name in ("ask_about", "begin_call", "end_call") for when in ("before", "after")),
    *(f"ledger.{name}#1:{when}" for name in ("record_plan", "open_gate", "close_gate") for when in ("before", "after")),
    *(f"tool.run[shell.run]#1:{when}" for when in ("before", "after")),
]
SAMPLE = ("agents.ask_about#1:after", "tool.run[shell.run]#1:after")


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=() if point in SAMPLE else pytest.mark.torture) for point in POINTS]
)
def test_killed_anywhere_an_approved_call_runs_at_most_once(tmp_path: Path, point: str) -> None:
    """However often it is asked and looked at, it runs once or its end is unknown; receipt and record agree."""
    count = {"tool": "shell.run", "with": {"command": "echo once >> COUNTED; echo the first note > NOTE"}}
    turns = [{"calls": [count]}, WRITE, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        with place.home.dying_worker(point):
            job = asked(place, "dying")
            place.home.persist(f"/v1/plans/{job.digest}/decisions", {"kind": "approve", "decision_id": "yes"})
            next_wait(place, job, job.digest)
        [call] = place.calls(job)[:1]
        assert call.status == (
            "unknown"
            if point.startswith(("tool.", "agents.begin_call#1:after")) or point == "agents.end_call#1:before"
            else "ok"
        )
        [tree] = place.home.settings.workspaces.glob("agent-*/tree")
        counted = (tree / "COUNTED").read_text() if (tree / "COUNTED").exists() else ""
        assert counted in ("", "once\n") and (counted or call.status == "unknown")
        with place.home.ledger() as ledger:
            [intent] = [row for row in ledger.intents(job_id=job.job_id) if row.digest == job.digest]
        assert (intent.state, intent.attempts) == ({"ok": "done"}.get(call.status, call.status), 1)


def test_denied_call_never_runs_and_is_remembered(place: Office) -> None:
    """A no is told to the model with its reason; the same target is not asked about again, and the third try pauses."""
    job = asked(place, "denied")
    place.home.decide(job.digest, "reject", comment="not that file")
    paused = place.home.wait(job, JobPhase.paused)
    calls = place.calls(job)
    assert [call.status for call in calls] == ["denied", "denied", "denied"]
    assert [call.attempts for call in calls] == [0, 0, 0]
    assert "not that file" in place.transcript(job)[3].results[0].text
    assert "denied" in paused.summary


def test_denied_long_target_is_remembered_whole(tmp_path: Path) -> None:
    """What a person denied with sixty other files is denied alone, too: nothing is cut off before it is compared."""
    many = [f"folder/with/a/rather/long/name/file-{number:03}" for number in range(60)]
    patch = {"tool": "files.patch", "with": {"patch": patch_of(*many, "zz-kept")}}
    again = {"calls": [write("zz-kept", "x\n")]}
    with model_server({"turns": [{"calls": [patch]}, again, again, again]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start("ask"))
        place.home.decide(job.digest, "reject", comment="not that one")
        place.home.wait(job, JobPhase.paused)
        rules = [call.verdict.rule for call in place.calls(job) if call.verdict]
        assert rules == ["person", "denied.before", "denied.before"]


def test_amended_goal_voids_what_was_asked(place: Office) -> None:
    """Who changes the goal takes back the open questions about calls: an old yes is refused."""
    job = asked(place, "amended")
    place.steer(job, "amend", "write it in French")
    answer = place.home.door.post(
        f"/v1/plans/{job.digest}/decisions", json={"kind": "approve", "decision_id": "too-late"}
    )
    assert answer.status_code == 409
    wait_until(lambda: place.calls(job)[0].status == "denied", "the call's end", explain=place.home.worker_log)
    assert place.calls(job)[0].attempts == 0
    wait_until(lambda: any("French" in message.text for message in place.transcript(job)), "the new goal")


def test_call_for_the_goal_before_is_not_asked_about(tmp_path: Path) -> None:
    """What a model wanted before it heard of another goal opens no question; it may ask for what it needs now."""
    turns = [{**WRITE, "hold": "it"}, WRITE, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start("ask")
        model.wait_for(1)
        place.steer(job, "amend", "write it in French")
        model.release("it")
        place.home.waiting(job)
        before, now = place.calls(job)
        assert (before.status, before.digest, before.attempts) == ("denied", "", 0)
        assert now.status == "waits"
        assert "French" in str(place.asked()[1][-1]["content"])


def test_question_to_a_person_waits_for_the_answer(tmp_path: Path) -> None:
    """An agent that asks a person is not asked on before somebody answers; the answer is in the next request."""
    question = {"tool": "ask.person", "with": {"question": "Which colour?", "options": ["red", "blue"]}}
    turns = [{"calls": [question]}, WRITE, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.wait(place.start(), JobPhase.paused)
        assert "Which colour?" in job.summary
        assert len(model.requests()) == 1
        place.steer(job, "say", "blue")
        place.home.waiting(job)
        assert place.asked()[1][-1]["content"].endswith("blue")
