"""What an agent's calls did to its workspace can be looked at step by step, while it works and after."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perdure.contracts.checkpoints import CheckpointRecord
from perdure.contracts.http import JobView
from perdure.store.checkpoints import CheckpointLog
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, read, write
from tests.support.people import refusal

TURNS: list[dict[str, Any]] = [
    {"calls": [read("NOTE")]},
    {"calls": [write("NOTE", "first\n"), write("more/new", "a\n")]},
    {"calls": [write("NOTE", "first\n")]},
    {"calls": [write("NOTE", "the first note\n")]},
    {"text": "Done."},
]


def points(place: Office, job: JobView) -> list[dict[str, Any]]:
    return list(place.home.get("/v1/checkpoints", ref=job.job_id))


def perdure(place: Office, *words: str, code: int = 0) -> str:
    argv = [sys.executable, "-m", "perdure", *words, "--data", str(place.home.settings.data)]
    ended = subprocess.run(argv, capture_output=True, text=True, env=place.home.environ, check=False)
    assert ended.returncode == code, ended.stderr
    return ended.stdout or ended.stderr


def test_each_call_that_wrote_has_a_checkpoint(tmp_path: Path) -> None:
    """Reads and writes of what is there already make none; each other one is listed, and any two can be compared."""
    with model_server({"turns": TURNS}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start())
        found = points(place, job)
        assert [(one["number"], one["turn"], one["tool"], one["changed"]) for one in found] == [
            (1, 2, "files.write", 1),
            (2, 2, "files.write", 1),
            (3, 4, "files.write", 1),
        ]
        assert "files.write" in perdure(place, "checkpoints", str(job.number))
        assert json.loads(perdure(place, "checkpoints", str(job.number), "--json"))[0]["number"] == 1
        assert perdure(place, "diff", str(job.number), "2..3").splitlines()[-2:] == ["-first", "+the first note"]
        whole = perdure(place, "diff", str(job.number))
        assert "+the first note" in whole and "+++ b/more/new" in whole and "-nothing yet" in whole
        assert "no checkpoint 9" in perdure(place, "diff", str(job.number), "9", code=66)


def test_checkpoints_outlive_the_workspace(tmp_path: Path) -> None:
    """They lie with the ledger: the workspace may be gone."""
    with model_server({"turns": TURNS}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.home.waiting(place.start())
        shutil.rmtree(place.home.settings.workspaces, ignore_errors=True)
        assert "+the first note" in perdure(place, "diff", str(job.number), "0..3")


def test_person_takes_the_workspace_back(tmp_path: Path) -> None:
    """The files are as they were at the checkpoint, the agent hears it and goes on, and what was taken back is kept."""
    turns = [
        {"calls": [write("NOTE", "the first note\n")]},
        {"calls": [write("NOTE", "spoilt\n"), write("junk", "j\n")]},
        {"text": "Done.", "hold": "third"},
    ]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start()
        model.wait_for(3)
        number = str(job.number)
        assert "Nobody can be asked" in perdure(place, "rewind", number, "1", code=64)
        assert "nothing after checkpoint 3" in perdure(place, "rewind", number, "3", "--yes", code=64)
        assert "Accepted" in perdure(place, "rewind", number, "1", "--yes")
        model.wait_for(4)  # the turn in flight was given up, and asked again
        model.release("third")
        job = place.home.waiting(job)
        review = place.home.review(job)
        assert "+the first note" in review.diff and "junk" not in review.diff and "spoilt" not in review.diff
        assert any("back to checkpoint 1 (after turn 1)" in str(message) for message in place.asked()[-1])
        assert [(one["number"], one["tool"], one["changed"]) for one in points(place, job)][3:] == [(4, "rewind", 2)]
        assert "+spoilt" in perdure(place, "diff", number, "1..3")
        assert "rewind by" in perdure(place, "show", number, "--no-follow")


def test_rewind_binds_to_what_was_seen(tmp_path: Path) -> None:
    """When more was written since somebody looked, nothing is taken back: at the door, and in the worker again."""
    turns = [
        {"calls": [write("NOTE", "the first note\n")]},
        {"calls": [write("more", "1\n")]},
        {"calls": [write("more", "2\n")], "hold": "third"},
        {"text": "Done."},
    ]
    with model_server({"turns": turns}) as model, office(tmp_path, model) as place:
        place.home.start_worker()
        job = place.start()
        model.wait_for(3)
        late = place.home.door.post("/v1/steer", json=rewind_word(to=0, seen=1), params={"ref": job.job_id})
        assert "1 more calls have written" in refusal(late).message
        place.home.kill_workers()
        place.home.post("/v1/steer", rewind_word(to=0, seen=2), ref=job.job_id)
        with place.home.ledger() as ledger:
            log = CheckpointLog(ledger.database)
            last = log.of_job(job.job_id)[-1].model_dump(exclude={"number", "at"})
            log.add(job.job_id, CheckpointRecord.model_validate({**last, "turn": 9}), at=datetime.now(UTC))
        model.release("third")
        place.home.start_worker()
        job = place.home.waiting(job)
        assert "+the first note" in place.home.review(job).diff
        assert any("nothing was taken back" in str(message) for message in place.asked()[-1])


def rewind_word(**wanted: int) -> dict[str, Any]:
    return {"decision_id": uuid.uuid4().hex[:12], "kind": "rewind", "text": json.dumps(wanted)}
