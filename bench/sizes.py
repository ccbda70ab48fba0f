"""What a job weighs: histories and payloads with a 20 MB diff, a parked job, ledger and blobs of a small release."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

from bench.histories import History, read_histories
from bench.home import Home
from bench.kit import Figure, Samples
from bench.projects import copy_project, make_huge_project, make_project

DIFF_BYTES = 20_000_000
EVENTS_BUDGET = 8
PAYLOAD_BUDGET_KB = 16


def measure_huge_diff(home: Home, say: Callable[[str], None]) -> list[Figure]:
    """One release whose diff has 20 MB: the largest payload anywhere, and history events for each effect."""
    project = make_huge_project(home.folder / "huge", "huge", DIFF_BYTES)
    say(f"releasing with a diff of {DIFF_BYTES / 1e6:.0f} MB")
    job_id = home.release("release", project.path)
    review = home.get("/v1/review", ref=job_id)
    diff, effects = review["diff_bytes"], len(review["effects"])
    if diff < DIFF_BYTES:
        raise RuntimeError(f"the diff that was meant to have {DIFF_BYTES} bytes has {diff}")
    histories = _read(home, job_id)
    application = next(history for history in histories if history.workflow_id.startswith("apply/"))
    about = f"{effects} effects, diff of {diff / 1e6:.1f} MB, {len(histories)} executions"
    return [
        Figure("history events per effect", "events", _floats(application.events_per_effect), EVENTS_BUDGET, about),
        Figure(
            "application's history over its effects",
            "events",
            [len(application.events) / effects],
            note="with opening and closing it; two fewer effects would make it larger",
        ),
        Figure(
            "largest payload in any history",
            "KB",
            [max(history.largest_payload_bytes for history in histories) / 1000],
            PAYLOAD_BUDGET_KB,
            about,
        ),
        Figure(
            "history of the whole job", "events", [float(sum(len(h.events) for h in _without_thread(histories)))], None
        ),
        Figure("history of the whole job", "KB", [sum(h.size_bytes for h in _without_thread(histories)) / 1000]),
    ]


def measure_parked(home: Home, runs: int, say: Callable[[str], None]) -> list[Figure]:
    """A job that waits for a person, and what one small release leaves in the stores."""
    say("parking and releasing small jobs")
    made = make_project(home.folder / "parked", "parked")
    samples = Samples()
    for number in range(runs):
        project = copy_project(made, home.folder / "parked", f"copy-{number}")
        before = stored_kb(home.data)
        job_id = home.submit("release", project.path)
        home.ledger.wait(job_id, "job.phase", phase="waiting")
        waiting = [history for history in _without_thread(_read(home, job_id)) if history.is_open]
        samples.add(
            executions=len(waiting),
            events=sum(len(history.events) for history in waiting),
            bytes=sum(history.size_bytes for history in waiting) / 1000,
        )
        home.approve(home.digest(job_id))
        home.ledger.wait(job_id, "history.archived", limit=120)
        after = stored_kb(home.data)
        samples.add(ledger=after["ledger"] - before["ledger"], blobs=after["blobs"] - before["blobs"])
    return [
        samples.figure("executions", "parked job: open executions", "", note="the job and its gate"),
        samples.figure("events", "parked job: history events", "events"),
        samples.figure("bytes", "parked job: history size", "KB"),
        samples.figure("ledger", "ledger per release", "KB", note="rows and indexes, from admission to archive"),
        samples.figure("blobs", "blobs per release", "KB", note="template, results, plan, receipts, histories"),
    ]


def _read(home: Home, job_id: str) -> list[History]:
    temporal = home.state.temporal
    if temporal is None:
        raise RuntimeError("no embedded server")
    return asyncio.run(read_histories(temporal.address, job_id))


def _without_thread(histories: list[History]) -> list[History]:
    return [history for history in histories if not history.workflow_id.startswith("thread/")]


def stored_kb(data: Path) -> dict[str, float]:
    """Used pages of the ledger (not its file, which grows in steps) and bytes of all blobs."""
    database = sqlite3.connect(f"file:{data / 'ledger.db'}?mode=ro", uri=True)
    try:
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    finally:
        database.close()
    blobs = sum(path.stat().st_size for path in (data / "blobs").rglob("*") if path.is_file())
    return {"ledger": (pages - free) * size / 1000, "blobs": blobs / 1000}


def _floats(numbers: list[int]) -> list[float]:
    return [float(number) for number in numbers]
