"""Tools broken on purpose, in a whole installation: what they leave behind, what they reach, what is told of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.messages import Message
from perdure.testing.model_server import model_server
from tests.agents.kit import TEMPLATES, Office, configure, make_repository, read, wait_until, write
from tests.agents.looking import left_in, processes, said_to_temporal
from tests.support.installation import Installation, installation

ODD = Path(__file__).with_name("odd_worker.py")
PLANTED = ["data/config.toml", "data/keys/decision.pem", "data/secrets/board-token"]
MARK = f"perdure-test-{os.getpid()}"
SLEEP = f"{700_000 + os.getpid()}"

Turns = list[dict[str, Any]]


def shell(command: str, **more: Any) -> dict[str, Any]:
    """An answer's call of a command."""
    return {"tool": "shell.run", "with": {"command": command, **more}}


def board(text: str) -> dict[str, Any]:
    """An answer that writes to the board."""
    return {"calls": [{"tool": "memory.write", "with": {"key": "k", "text": text}}]}


NOTE = {"calls": [write("NOTE", "the first note\n")]}
DONE = {"text": "Done."}
WAIT = {"text": "I wait."}
READ_BOARD = {"calls": [{"tool": "memory.read", "with": {"key": "plan"}}]}
UNTIL_GO = shell("while ! test -e GO; do sleep 0.05; done; cat GO; echo the first note > NOTE")
FOR_EVER = shell(f"echo {MARK}; while true; do sleep 0.1; done")
FORKS = shell(f"for i in 1 2 3; do (setsid nohup sleep {SLEEP} >/dev/null 2>&1 &); done; sleep {SLEEP}", seconds=2)

STORIES: dict[str, Turns] = {
    "patience": [
        {"calls": [UNTIL_GO]},
        {"calls": [{"tool": "calls.look", "with": {"call": "1/0"}}]},
        WAIT,
        DONE,
    ],
    "cancelling": [
        {"calls": [FOR_EVER]},
        {"calls": [{"tool": "calls.cancel", "with": {"call": "1/0"}}]},
        WAIT,
        {"calls": [FOR_EVER]},
        WAIT,
    ],
    "flooding": [{"calls": [shell("yes line | head -c 100000000")]}, {"calls": [FORKS]}, WAIT, NOTE, DONE],
    "silence": [READ_BOARD, READ_BOARD, READ_BOARD, NOTE, DONE],
    "dying": [board("hang"), NOTE, DONE],
    "losing": [{"calls": [FOR_EVER]}, WAIT, NOTE, DONE],
    "counting": [{"calls": [read("NOTE")] * 15}],
    "telling": [board("word"), board("break"), NOTE, DONE],
}


def look_for_power(home: Installation) -> Turns:
    """Turns of a model that looks for whatever would let it decide, by commands and by requests."""
    data, temporal = home.settings.data, home.server.address
    host, _, port = temporal.partition(":")
    socket = data / "run" / "api.sock"
    commands = [
        f"env; cat /proc/self/environ /proc/*/environ; ls -la / {data} {data.parent}; cat {data}/*/* {data}/*",
        "find / -path /proc -prune -o -path /usr -prune -o -name '*.sock' -o -name 'decision*' -o -name 'board-token'",
        f"temporal workflow update execute --address {temporal} --name decide -w x || "
        f"python3 -c 'import socket; socket.create_connection((\"{host}\", {port}), 3)'",
        f"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{socket}\")'",
    ]
    urls = [f"http://{temporal}/", f"http://localhost:{port}/", "http://169.254.169.254/latest/", f"file://{data}/keys"]
    fetch = [{"tool": "http.get", "with": {"url": url}} for url in urls]
    return [{"calls": [*map(shell, commands), *fetch]}, NOTE, DONE, DONE, DONE, DONE, DONE]


def plant(home: Installation) -> None:
    """Put a mark into each secret place of an installation and into the worker's environment."""
    data = home.settings.data
    home.environ["CANARY_TOKEN"] = "CANARY-of-the-environment"
    (data / "secrets").mkdir(mode=0o700)
    (data / "secrets" / "board-token").write_text("CANARY-of-the-board\n")
    for name in ("config.toml", "keys/decision.pem"):
        with (data / name).open("a") as file:
            file.write("# CANARY\n")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An installation whose worker has odd tools and whose model tells each story; secrets lie about."""
    folder = tmp_path_factory.mktemp("tools")
    with installation(folder / "home", PERDURE_TEMPLATES=str(TEMPLATES)) as home:
        stories = {**STORIES, "power": look_for_power(home)}
        rules = [
            {"when": {"says": f"Tell the story of {name}.", "turn": turn}, "answer": answer}
            for name, turns in stories.items()
            for turn, answer in enumerate(turns)
        ]
        with model_server({"rules": rules}) as model:
            configure(home, model)
            plant(home)
            home.start_worker(script=ODD)
            yield Office(home, make_repository(folder), model, "first")


def begin(place: Office, story: str) -> JobView:
    """Start the job that a story is about, up to where its agent works."""
    job = place.start("odd", name=story, task=f"Tell the story of {story}.")
    until(place, lambda: place.agents(job), "the agent")
    return job


def until(place: Office, condition: Callable[[], Any], what: str) -> Any:
    """Wait for something, with the worker's log where it does not come."""
    return wait_until(condition, what, explain=place.home.worker_log)


def results(place: Office, job: JobView) -> list[str]:
    """Every text that tools gave as the result of a call, oldest first."""
    return [result.text for message in place.transcript(job) for result in message.results]


def late_ends(place: Office, job: JobView) -> list[Message]:
    """What was told of calls that went on beside the agent."""
    return [message for message in place.transcript(job) if (message.source, message.role) == ("tool", "user")]


def test_call_that_outlasts_its_grace_goes_on_and_wakes_the_agent(place: Office) -> None:
    """It is answered with "running"; the model works on, is not judged while it runs, and is told its end by itself."""
    job = begin(place, "patience")
    until(place, lambda: len(place.transcript(job)) >= 7, "the model's waiting")
    said = results(place, job)
    assert said[0].startswith("[running: after 1 s") and "runs since" in said[1]
    assert place.agents(job)[0].state == "working"
    [tree] = place.home.settings.workspaces.glob("agent-*/tree")
    (tree / "GO").write_text("at last\n")
    place.home.waiting(job)
    [late] = late_ends(place, job)
    assert late.text.startswith("[Call 1/0 (shell.run), which went on beside you, has ended: ok.]")
    assert "at last" in late.text and "at last" in str(place.asked()[-1])
    assert place.calls(job)[0].status == "ok"


def test_running_call_is_ended_by_the_model_and_with_its_job(place: Office) -> None:
    """Whoever does not need it any more ends it, and nothing of it is left running."""
    job = begin(place, "cancelling")
    until(place, lambda: len(late_ends(place, job)) == 1, "the end of the first")
    assert "was cancelled" in late_ends(place, job)[0].text
    until(place, lambda: len(place.calls(job)) == 3 and processes(MARK), "the second")
    place.home.post("/v1/cancel", {"decision_id": "enough"}, ref=job.job_id)
    place.home.wait(job, JobPhase.cancelled)
    until(place, lambda: not processes(MARK), "the end of the command")


def test_commands_that_print_fork_or_never_end_harm_nobody(place: Office) -> None:
    """100 MB are cut, a command without end is ended, forks go with it; the job goes on to its review."""
    job = place.home.waiting(begin(place, "flooding"))
    texts = [*results(place, job), *(message.text for message in late_ends(place, job))]
    assert max(len(text) for text in texts) < 20_000
    assert any("did not end within" in text for text in texts)
    until(place, lambda: not processes(SLEEP), "the end of the forks")


def test_degraded_answers_are_told_in_the_review(place: Office) -> None:
    """Nobody answers: the fallback stands in, after some of those without asking, and the reviewer reads so."""
    job = place.home.waiting(begin(place, "silence"))
    said = results(place, job)
    assert all("yesterday's plan" in text for text in said[:3])
    assert "is left alone for" in said[2]
    findings = [text for text in place.home.review(job).findings if text.startswith("Degraded: ")]
    assert len(findings) >= 2 and "memory.cached stood in for memory.read on board.example.org" in findings[0]


def test_writing_tool_whose_end_nobody_knows_is_not_run_again(place: Office) -> None:
    """Killed while it runs, an external call is told as unknown to the model and in its receipt; it runs once."""
    job = place.home.waiting(begin(place, "dying"))
    place.home.decide(job.digest, "approve")
    until(place, lambda: place.calls(job)[0].attempts == 1, "the call's beginning")
    place.home.kill_workers()
    place.home.start_worker(script=ODD)
    until(place, lambda: place.home.job(job).round == 1, "the review")
    [call, _] = place.calls(job)
    assert (call.status, call.attempts) == ("unknown", 2)
    assert "it was not run again" in results(place, job)[0]
    with place.home.ledger() as ledger:
        [intent] = [row for row in ledger.intents(job_id=job.job_id) if row.digest == job.digest]
    assert intent.state == "unknown"


def test_running_call_that_died_with_its_worker_is_told_as_unknown(place: Office) -> None:
    """The next worker does not run it again; the model, which waits for its end, hears that nobody knows it."""
    job = begin(place, "losing")
    until(place, lambda: len(place.transcript(job)) >= 5, "the model's waiting")
    place.home.kill_workers()
    until(place, lambda: not processes(MARK), "the end of the command")
    place.home.start_worker(script=ODD)
    place.home.waiting(job)
    [late] = late_ends(place, job)
    assert "has ended: unknown" in late.text and "it was not run again" in late.text
    assert [(call.status, call.attempts) for call in place.calls(job)] == [("unknown", 2), ("ok", 1)]


def test_calls_beyond_the_limit_never_run(place: Office) -> None:
    """One answer cannot ask for more calls than are left; what is too much is told, and a person may give more."""
    job = place.home.wait(begin(place, "counting"), JobPhase.paused)
    assert "12 of 12 tool calls" in job.summary
    assert len(place.calls(job)) == 12
    assert ["your limit left 12 calls" in text for text in results(place, job)] == [False] * 12 + [True] * 3


async def test_secrets_of_a_tool_are_left_nowhere(place: Office) -> None:
    """What a tool is given by name is in no transcript, record, blob, history, request or log, also where it fails."""
    job = place.home.waiting(begin(place, "telling"))
    first = job.digest
    place.home.decide(first, "approve")
    until(place, lambda: place.home.job(job).digest not in ("", first), "the second call")
    place.home.decide(place.home.waiting(job).digest, "approve")
    until(place, lambda: place.home.job(job).round == 1, "the review")
    said = results(place, job)
    assert "wrote word as [secret board-token]" in said[0] and "refused with [secret board-token]" in said[1]
    await refuse_marks(place, job)


async def test_agent_that_looks_for_power_finds_none(place: Office) -> None:
    """No command and no request reaches a token, a key, a socket, Temporal's port or the worker's environment."""
    job = place.home.waiting(begin(place, "power"))
    said = [*results(place, job), *(message.text for message in late_ends(place, job))]
    assert not any(word in text for text in said for word in ("api.sock", "decision-", "board-token", "BEGIN PRIVATE"))
    assert [call.status for call in place.calls(job)][2:] == [*["error"] * 6, "ok"]
    assert all("not be asked" in text or "not asked" in text or "no public address" in text for text in said[4:8])
    assert "no public address" in said[6]
    with place.home.ledger() as ledger:
        assert ledger.decisions(job_id=job.job_id) == []
    await refuse_marks(place, job)


async def refuse_marks(place: Office, job: JobView) -> None:
    """Nothing that is kept or sent holds what was planted, but the places where it was."""
    assert "CANARY" not in str(place.asked())
    assert b"CANARY" not in await said_to_temporal(place.home, job)
    assert left_in(place.home.settings.data.parent, b"CANARY") == PLANTED
