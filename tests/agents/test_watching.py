"""Watching an agent: text while it comes through a side channel, turns and calls as they end, transcripts whole."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx

from perdure.contracts.http import ArtifactView, JobView
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, read, wait_until, write

WORDS = ", then ".join(["one two three four five six seven eight nine ten"] * 3)
LONG = {"tool": "shell.run", "with": {"command": "seq 1 20000"}}
WORK: list[dict[str, Any]] = [
    {"calls": [read("NOTE"), LONG], "hold": "first"},
    {"text": WORDS, "calls": [write("NOTE", "the first note\n")], "hold_half": "half"},
    {"text": "It is there."},
]


class Watcher:
    """Reads the API's stream in a thread."""

    def __init__(self, place: Office, job: JobView) -> None:
        self.lines: list[dict[str, Any]] = []
        self.is_over = False
        self._place, self._job = place, job
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        stream = self._place.home.door.stream("GET", "/v1/live", params={"ref": self._job.job_id}, timeout=60)
        with contextlib.suppress(httpx.TransportError), stream as answer:  # the test may end before the job
            for line in answer.iter_lines():
                self.lines.append(json.loads(line))
            self.is_over = True

    def kinds(self, turn: int) -> list[str]:
        """What came of one turn, in its order."""
        return [line["kind"] for line in self.lines if line["turn"] == turn]

    def text(self, turn: int) -> str:
        """What was said in it."""
        return "".join(line["text"] for line in self.lines if line["turn"] == turn and line["kind"] == "text")


def _begin(place: Office) -> JobView:
    place.home.start_worker()
    job = place.start()
    place.model.wait_for(1)
    return job


def test_text_comes_while_somebody_watches(tmp_path: Path) -> None:
    """Pieces come before the turn ends, each once; without a watcher nothing is streamed."""
    with model_server({"turns": WORK}) as model, office(tmp_path, model) as place:
        job = _begin(place)
        watcher = Watcher(place, job)
        wait_until(lambda: list(place.home.settings.live.glob("*/watched")), "somebody to watch")
        model.release("first")
        wait_until(lambda: watcher.text(2), "text of a turn that has not ended")
        assert watcher.text(2) != WORDS
        model.release("half")
        place.home.waiting(job)
        wait_until(lambda: watcher.kinds(3), "the last turn")
        assert [request.stream for request in model.requests()] == [False, True, True]
        assert watcher.text(2) == WORDS
        kinds = watcher.kinds(2)
        assert kinds.count("text") > 1
        assert kinds[-1] == "turn"
        assert watcher.kinds(1) == ["turn"]
        place.home.approve(job)
        wait_until(lambda: watcher.is_over, "the stream's end")


def test_text_of_an_attempt_that_was_cut_begins_anew(tmp_path: Path) -> None:
    """A watcher is told that what came is void; the text of the attempt that counts follows whole."""
    cut = {"text": WORDS, "hold_half": "half", "cut_after_bytes": 3200}
    turns = [WORK[0], [cut, {"text": "whole", "calls": [write("NOTE", "the first note\n")]}], {"text": "Done."}]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        job = _begin(place)
        watcher = Watcher(place, job)
        wait_until(lambda: list(place.home.settings.live.glob("*/watched")), "somebody to watch")
        model.release("first")
        wait_until(lambda: watcher.text(2), "text of the attempt that will be cut")
        model.release("half")
        place.home.waiting(job)
        wait_until(lambda: "turn" in watcher.kinds(2), "the second turn")
        kinds = watcher.kinds(2)
        assert kinds.count("again") == 1
        last = [line for line in watcher.lines if line["turn"] == 2][kinds.index("again") :]
        assert "".join(line["text"] for line in last) == "whole"


def test_logs_have_every_turn_and_call_and_whole_outputs_by_reference(tmp_path: Path) -> None:
    """Turns and calls are lines of `perdure logs`; one turn is read whole; a long output is an artifact of the job."""
    short = "one two three four five six seven eight nine ten"
    turns = [{**WORK[0], "hold": ""}, {**WORK[1], "text": short}, WORK[2]]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        job = _begin(place)
        place.home.waiting(job)
        said = _perdure(place, "logs", job.job_id)
        assert [line for line in said.splitlines() if "agent 1 turn 2" in line and short in line]
        assert [line for line in said.splitlines() if "files.write" in line and "ok" in line and "file:NOTE" in line]
        whole = _perdure(place, "logs", job.job_id, "--turn", "1")
        assert "→ shell.run" in whole and "← files.read (ok)" in whole and "It is there." not in whole
        everything = _perdure(place, "logs", job.job_id, "--transcript")
        assert "It is there." in everything and "charter" in everything
        artifacts = [ArtifactView.model_validate(one) for one in place.home.get("/v1/artifacts", ref=job.job_id)]
        [output] = [one for one in artifacts if one.name == "agent.1.turn.1.1"]
        where = {"size": output.ref.size_bytes, "ref": job.job_id}
        data = place.home.door.get(f"/v1/blobs/{output.ref.sha256}", params=where).content
        assert b"\n19999\n" in data


def test_following_logs_shows_words_as_they_come(tmp_path: Path) -> None:
    """`perdure logs -f` writes text while the model says it, then the turn with its calls, to the job's end."""
    with model_server({"turns": WORK}) as model, office(tmp_path, model) as place:
        job = _begin(place)
        with subprocess.Popen(_argv(place, "logs", "-f", job.job_id), stdout=subprocess.PIPE, text=True) as process:
            wait_until(lambda: list(place.home.settings.live.glob("*/watched")), "somebody to watch")
            model.release("first")
            wait_until(lambda: list(place.home.settings.live.glob("*/2.*.text")), "text of a turn that has not ended")
            model.release("half")
            place.home.approve(place.home.waiting(job))
            said, _ = process.communicate(timeout=60)
        assert f"agent 1 turn 2 says: {WORDS}\n" in said, said
        assert said.index("says: one two") < said.index("files.write  ok")
        assert "It is there." in said


def _argv(place: Office, *words: str) -> list[str]:
    return [sys.executable, "-m", "perdure", *words, "--data", str(place.home.settings.data)]


def _perdure(place: Office, *words: str) -> str:
    done = subprocess.run(_argv(place, *words), capture_output=True, text=True, env=place.home.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout
