"""``perdure key`` on a real API: from no passphrase to one, and a decision that is refused without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.installation import ROOT, installation
from tests.support.repositories import make_project


def test_a_decision_asks_for_the_passphrase_that_the_owner_set(tmp_path: Path) -> None:
    """Approving without it is refused (77), with it the plan is applied; a wrong old one changes nothing."""
    project = make_project(tmp_path / "src")
    with installation(tmp_path / "i") as running:
        running.start_worker()

        def line(*args: str, typed: str = "", code: int = 0) -> str:
            ended = subprocess.run(
                [sys.executable, "-m", "perdure", *args],
                env={**os.environ, "PERDURE_DATA": str(running.settings.data), "PYTHONPATH": str(ROOT)},
                cwd=project.path,
                input=typed,
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert ended.returncode == code, f"{args}: {ended.stdout}{ended.stderr}"
            return ended.stdout + ended.stderr

        assert not json.loads(line("key", "show", "--json"))["has_passphrase"]
        assert "asks for a passphrase" in line("key", "passphrase", "--stdin", typed="\ncorrect horse\n")
        line("key", "passphrase", "--stdin", typed="wrong\nother\n", code=77)
        line("run", "release", "remote=", "--no-start", code=3)
        digest = json.loads(line("jobs", "--json"))[0]["digest"]
        line("approve", digest[:8], code=77)
        line("approve", digest[:8], "--passphrase-stdin", typed="correct horse\n")
        assert "no passphrase" in line("key", "passphrase", "--remove", "--stdin", typed="correct horse\n\n")
