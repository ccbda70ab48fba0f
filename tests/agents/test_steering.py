"""A person is heard: words reach the next request, pauses hold, and what was said is shown where it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perdure.contracts.job import JobPhase
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, read, wait_until, write

WORK = [
    {"calls": [read("NOTE")]},
    {"calls": [read("README.md")], "hold": "second"},
    {"calls": [write("NOTE", "the first note\n")]},
    {"text": "It is there."},
]


def _said(place: Office, text: str) -> list[int]:
    """How often each request that was asked held the text."""
    return [sum(text in str(message.get("content")) for message in messages) for messages in place.asked()]


def test_message_is_in_the_next_request_once(tmp_path: Path) -> None:
    """What a person says while a turn is being asked is in the next request, once, with a delivery record."""
    with model_server({"turns": WORK}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start()
        model.wait_for(2)
        [agent] = place.steer(job, "say", "keep it short")
        assert [(word.text, word.turn) for word in agent.words] == [("keep it short", 0)]
        model.release("second")
        place.home.waiting(job)
        assert _said(place, "keep it short") == [0, 0, 1, 1]
        [agent] = place.agents(job)
        assert [(word.text, word.turn) for word in agent.words] == [("keep it short", 3)]


def test_interrupting_gives_the_turn_in_flight_up(tmp_path: Path) -> None:
    """``--now`` cancels the model call that is in flight; the same turn is asked again with what was said."""
    with model_server({"turns": WORK}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start()
        model.wait_for(2)
        place.steer(job, "interrupt", "stop, look at NOTE only")
        model.wait_for(3)
        model.release("second")
        place.home.waiting(job)
        assert [request.ended for request in model.requests()][1] == "client left"
        assert _said(place, "stop, look at NOTE only") == [0, 0, 1, 1, 1]
        [agent] = place.agents(job)
        assert agent.turns == 4
        assert agent.words[0].turn == 2


def test_paused_agent_asks_nothing_until_it_is_resumed(tmp_path: Path) -> None:
    """A paused agent asks no model; it goes on where it was once somebody lets it."""
    with model_server({"turns": WORK}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start()
        model.wait_for(2)
        place.steer(job, "pause")
        place.home.wait(job, JobPhase.paused)
        asked = len(model.requests())
        assert place.agents(job)[0].state == "parked"
        model.release("second")
        place.steer(job, "resume")
        place.home.waiting(job)
        assert len(model.requests()) > asked


@pytest.mark.parametrize("kind", ["say", "pause", "dial", "more"])
def test_nobody_is_told_accepted_when_no_agent_works(tmp_path: Path, kind: str) -> None:
    """Words to a job without an agent at work are refused, with what to do instead."""
    script = {"answers": [{"calls": [write("NOTE", "the first note\n")]}, {"text": "Done."}]}
    text = {"dial": "observe", "more": '{"turns": 3}'}.get(kind, "hello")
    with model_server(script) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start())
        body = {"decision_id": "late", "kind": kind, "text": text}
        answer = place.home.door.post("/v1/steer", json=body, params={"ref": job.job_id})
        assert answer.status_code == 409
        assert "No agent works on" in answer.json()["message"]


def test_limit_parks_the_job_and_more_lets_it_go_on(tmp_path: Path) -> None:
    """At its limit an agent pauses with the reason; what a person gives more is used, and nothing is asked twice."""
    turns = [{"calls": [write("NOTE", f"draft {number}\n")]} for number in range(12)]
    script = {"turns": [*turns, {"calls": [write("NOTE", "the first note\n")]}, {"text": "Done."}]}
    with model_server(script) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.wait(place.start(), JobPhase.paused)
        assert "12 of 12 turns" in job.summary
        assert len(model.requests()) == 12
        place.steer(job, "more", '{"turns": 5}')
        place.home.waiting(job)
        assert len(model.requests()) == 14
        wait_until(lambda: place.agents(job)[0].state == "done", "the agent's end")


def test_commands_speak_to_the_agent_and_show_what_it_did(tmp_path: Path) -> None:
    """`perdure say`, `dial` and `show` do what the API does, in words."""
    with model_server({"turns": WORK}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start()
        model.wait_for(2)

        def perdure(*words: str) -> str:
            argv = [sys.executable, "-m", "perdure", *words]
            ended = subprocess.run(argv, env=place.home.environ, capture_output=True, text=True, timeout=60)
            assert ended.returncode == 0, ended.stdout + ended.stderr
            return ended.stdout

        assert "accepted" in perdure("say", str(job.number), "keep it short")
        assert "dial observe" in perdure("dial", str(job.number), "observe")
        perdure("dial", str(job.number), "propose")
        model.release("second")
        place.home.waiting(job)
        shown = perdure("show", str(job.number), "--no-follow")
        assert "keep it short" in shown
        assert "in the request of turn 3" in shown
        assert "4 turns, 3 calls" in shown


def test_cancelled_job_ends_its_agent(tmp_path: Path) -> None:
    """A cancel gives the model call in flight up, ends the agent by that name, and removes its workspace."""
    with model_server({"turns": WORK}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start()
        model.wait_for(2)
        place.home.post("/v1/cancel", {"decision_id": "stop-it", "comment": "no need"}, ref=job.job_id)
        place.home.wait(job, JobPhase.cancelled)
        wait_until(lambda: place.agents(job)[0].state == "cancelled", "the agent's end", explain=place.home.worker_log)
        assert len(model.requests()) == 2
        assert list(place.home.settings.workspaces.glob("agent-*")) == []
