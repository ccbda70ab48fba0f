"""Providers that fail, and answers that are wrong: the loop goes on, or says by name why it does not."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from perdure.contracts.job import JobPhase
from perdure.testing.model_server import model_server
from tests.agents.kit import office, read, write

WRITE = {"calls": [write("NOTE", "the first note\n")]}


def test_provider_that_fails_is_asked_again(tmp_path: Path) -> None:
    """Too many requests, a server's error, a cut stream and no JSON are tried again; each turn is answered once."""
    turns: list[Any] = [
        [{"status": 429, "retry_after": 1}, {"status": 500}, {"calls": [read("NOTE")]}],
        [{"text": "cut", "cut_after_bytes": 10}, {"raw": "<html>no</html>"}, WRITE],
        {"text": "Done."},
    ]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start())
        assert len(model.requests()) == 7
        assert place.agents(job)[0].turns == 3
        assert [message.source for message in place.transcript(job)].count("model") == 3


def test_wrong_calls_are_answered_and_never_run(tmp_path: Path) -> None:
    """An unknown tool, wrong types and arguments that are no JSON are told to the model, each in its own result."""
    wrong = [
        {"tool": "files.wirte", "with": {"path": "NOTE"}},
        {"tool": "files.write", "with": {"path": 7, "content": ["x"]}},
        {"tool": "files.write", "raw": "{not json"},
        {"tool": "files.write", "with": {"path": "../outside", "content": "x"}},
    ]
    turns = [{"calls": wrong}, {"text": ""}, WRITE, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start())
        calls = place.calls(job)[:4]
        assert [call.status for call in calls] == ["error"] * 4
        texts = [message.results[0].text for message in place.transcript(job)[3:7]]
        assert "files.write" in texts[0]  # the nearest name
        assert "path" in texts[1]
        assert "could not be read" in texts[2]
        assert not (tmp_path / "outside").exists()
        assert place.agents(job)[0].state == "done"


def test_model_that_refuses_for_good_pauses_the_job(tmp_path: Path) -> None:
    """A key that is refused is no reason to try for ever: the job pauses, and says whom it could not ask."""
    with model_server({"turns": [[{"status": 401, "error": "bad key"}]]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.wait(place.start(), JobPhase.paused)
        assert "401" in job.summary or "key" in job.summary
        assert len(model.requests()) == 1


def test_without_a_model_the_job_says_what_is_missing(tmp_path: Path) -> None:
    """A step that needs a model fails with the place where one is named; nothing is asked."""
    with model_server({"turns": []}) as model, office(tmp_path, model) as place:
        place.home.settings.config.unlink()
        place.home.start_worker()
        job = place.home.wait(place.start(), JobPhase.failed)
        assert "config.toml" in job.summary
        assert model.requests() == []


def test_instruction_in_a_file_decides_nothing(tmp_path: Path) -> None:
    """ "Write to the hook" in a tool's result: what the model then tries is judged like everything else."""
    push = {"calls": [{"tool": "git.run", "with": {"arguments": ["push", "origin"]}}, write(".git/hooks/x", "x")]}
    turns = [{"calls": [read("README.md")]}, push, WRITE, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start())
        assert [call.status for call in place.calls(job)[1:3]] == ["error", "error"]
        assert place.home.review(job).files == 1


def test_transcript_that_lost_a_message_ends_the_agent_by_name(tmp_path: Path) -> None:
    """What no attempt can mend ends the agent, and the job hears of it, instead of being tried for ever."""
    turns = [{"calls": [read("NOTE")]}, {"calls": [read("NOTE")], "hold": "it"}, {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start()
        model.wait_for(2)
        place.home.kill_workers()  # what it keeps warm goes with it
        with sqlite3.connect(place.home.settings.data / "ledger.db") as ledger:
            assert ledger.execute("DELETE FROM transcript WHERE number = 0").rowcount == 1
        model.release("it")
        place.home.start_worker()
        place.home.wait(job, JobPhase.failed)
        [agent] = place.agents(job)
        assert (agent.state, "lacks messages" in agent.sentence) == ("failed", True)


def test_answer_of_ten_megabytes_is_refused_and_never_stored(tmp_path: Path) -> None:
    """More than a model may say at once ends the attempt by name; the ledger holds none of it."""
    with model_server({"turns": [{"text_bytes": 10_000_000}]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.wait(place.start(), JobPhase.paused)
        assert "over 4 MB" in job.summary
        assert (place.home.settings.data / "ledger.db").stat().st_size < 2_000_000
        assert len(model.requests()) == 1


def test_answers_without_a_word_end_in_a_limit(tmp_path: Path) -> None:
    """A model that says nothing is told what is red, and stopped by its turns instead of being asked for ever."""
    with model_server({"turns": [{"repeat": 20}]}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.wait(place.start(), JobPhase.paused)
        assert "12 of 12 turns" in job.summary
        assert len(model.requests()) == 12
