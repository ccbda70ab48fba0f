"""What outsiders must have seen when a job took itself back before anything reached the remote."""

from __future__ import annotations

from perdure.contracts.http import JobView
from tests.support.installation import Installation
from tests.support.outside import Outside
from tests.support.repositories import git

MAIN, TAG = "refs/heads/main", "refs/tags/v1.3.0"


def assert_nothing_left(outside: Outside) -> None:
    """The project is as it was; its branch went there and back once, and the remote never moved."""
    path = outside.project.path
    assert git(path, "log", "-1", "--format=%s") == "fix(api): an empty order is refused"
    assert git(path, "tag") == "v1.2.0"
    assert git(path, "status", "--porcelain") == ""
    assert len(outside.project.moves(MAIN)) == 5, outside.project.moves(MAIN)
    assert outside.project.pushes(MAIN) == outside.project.pushes(TAG) == []
    assert git(outside.project.remote, "tag") == "v1.2.0"
    assert not (outside.folder / "RELEASED").exists()
    assert outside.lines("done.log") == outside.lines("undone.log") == []


def taken_back(home: Installation, job: JobView) -> list[str]:
    """Ids of the effects whose undo has ended, in the order of their receipts, each with how: ``tag done``."""
    events = home.get("/v1/events", ref=job.job_id)["events"]
    bodies = [event["body"] for event in events if event["kind"] == "effect.receipt"]
    return [f"{body['effect_id']} {body['state']}" for body in bodies if body["direction"] == "undo"]


def receipts(home: Installation, job: JobView) -> list[str]:
    """Every receipt of a job in the order they were written: ``do tag done``."""
    events = home.get("/v1/events", ref=job.job_id)["events"]
    bodies = [event["body"] for event in events if event["kind"] == "effect.receipt"]
    return [f"{body['direction']} {body['effect_id']} {body['state']}" for body in bodies]


def refuse_pushes(outside: Outside, script: str = "exit 1") -> None:
    """Make the remote's own hook refuse every push; ``script`` may do more before it does."""
    hook = outside.project.remote / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)
