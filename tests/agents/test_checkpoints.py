"""What an agent's calls did to its workspace can be looked at step by step, while it works and after."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from perdure.contracts.http import JobView
from perdure.testing.model_server import model_server
from tests.agents.kit import Office, office, read, write

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
