"""Cancel stops what runs: a test command that would go on for minutes is killed, and the job says who stopped it."""

from __future__ import annotations

import uuid
from pathlib import Path

from perdure.contracts.job import JobPhase
from tests.support.installation import Installation, wait_until
from tests.support.repositories import make_project

_MARK = "86399"
"""Seconds that no other command of this machine sleeps."""


def test_cancel_kills_the_running_test_command(home: Installation, tmp_path: Path) -> None:
    """Cancelled while its test runs, the job ends as cancelled and the command is gone, long before its limit."""
    project = make_project(tmp_path)
    home.start_worker()
    job = home.release(project, test=["sleep", _MARK], remote="")
    wait_until(_is_sleeping, "the test command")
    body = {"decision_id": uuid.uuid4().hex[:12], "comment": "wrong branch"}
    home.post("/v1/cancel", body, ref=job.job_id)
    ended = home.wait(job, JobPhase.cancelled)
    assert "wrong branch" in ended.summary
    wait_until(lambda: not _is_sleeping(), "the command's end")
    home.kill_workers()


def _is_sleeping() -> bool:
    return any(_reads(path) == f"sleep\0{_MARK}\0".encode() for path in Path("/proc").glob("[0-9]*/cmdline"))


def _reads(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
