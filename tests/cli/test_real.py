"""The whole of it: the command line against a real API, worker and Temporal server, on a real repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.installation import ROOT, installation
from tests.support.repositories import Project, git, make_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository with something to release."""
    return make_project(tmp_path)


def test_a_release_by_line_from_plan_to_undo(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Plan, review, approve by digest, show, undo, audit, export and verify: each command as documented."""
    with installation(tmp_path_factory.mktemp("i")) as running:
        running.start_worker()

        def line(*args: str, code: int = 0) -> str:
            ended = subprocess.run(
                [sys.executable, "-m", "perdure", *args],
                env={**os.environ, "PERDURE_DATA": str(running.settings.data), "PYTHONPATH": str(ROOT)},
                cwd=project.path,
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert ended.returncode == code, f"{args}: {ended.stdout}{ended.stderr}{running.worker_log()}"
            return ended.stdout

        before = git(project.path, "show-ref")
        planned = line("run", "release", "remote=", "--no-start", code=3)
        digest = json.loads(line("jobs", "--json"))[0]["digest"]
        assert f"PLAN {digest[:8]}" in planned
        assert digest in line("review", digest[:8])
        assert git(project.path, "show-ref") == before
        assert "Take back: perdure undo 1" in line("approve", digest[:8])
        assert git(project.path, "show-ref") != before
        assert "effect.receipt" in line("logs", "1")
        assert '"release"' in line("artifacts", "1", "analyze")
        line("approve", digest[:8], code=75)

        line("undo", "1", code=3)
        undo = json.loads(line("show", "@last", "--json"))["digest"]
        assert "As before. Audit:" in line("approve", undo[:8])
        assert git(project.path, "show-ref") == before
        assert "taken back by" in line("jobs")

        assert "no gaps" in line("audit")
        bundle = project.path.parent / "evidence.zip"
        exported = json.loads(line("audit", "export", str(bundle), "--json"))
        (key,) = exported["public_keys"].values()
        line("audit", "verify", str(bundle), "--key", key, "--head", exported["head"])
        line("audit", "verify", str(bundle), "--key", key, "--head", "0" * 64, code=1)
