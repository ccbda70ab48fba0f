"""Record the histories of real jobs: ``python -m tests.replay.record``.

Run it before a release, or when a change to a workflow has made the recordings of an unreleased version worthless. It
writes ``histories/<version>/``; those of earlier versions stay, since jobs begun by them may still be open. A real
server, API and worker run every way that a job can go.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.client import installed_version
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.names import JobId, gate_id, thread_id
from perdure.runtime.payload_keys import KEY_FILE
from tests.replay.stored import HISTORIES, KEY, store
from tests.support.installation import Installation, installation, wait_until
from tests.support.outside import ANNOUNCE, make_outside

Scenario = Callable[[Installation, Path], list[JobView]]

BROKEN = ANNOUNCE.replace("  do)    ", "  do)    exit 1; ")
DOUBTFUL = BROKEN.replace('  probe) [ -e "now-$2" ] ;;', "  probe) exit 7 ;;")


def applied_and_undone(home: Installation, folder: Path) -> list[JobView]:
    """One effect of every kind, applied; then taken back by a job of its own."""
    outside = make_outside(folder)
    job = outside.start(home)
    home.approve(job)
    done = home.done(job)
    undo = home.undo(done)
    home.approve(undo)
    return [done, home.done(undo)]


def rejected(home: Installation, folder: Path) -> list[JobView]:
    """A person said no."""
    job = home.waiting(say(home, folder, "rejected"))
    home.decide(job.digest, "reject", comment="not today")
    return [home.wait(job, JobPhase.rejected)]


def changes_requested(home: Installation, folder: Path) -> list[JobView]:
    """A person wanted something else, and approved the second plan."""
    job = home.waiting(say(home, folder, "changes"))
    home.decide(job.digest, "request_changes", comment="louder")
    wait_until(lambda: home.job(job).digest != job.digest and home.job(job).phase is JobPhase.waiting, "the next plan")
    home.approve(job)
    return [home.done(job)]


def failed_and_taken_back(home: Installation, folder: Path) -> list[JobView]:
    """The second effect failed, the first was taken back."""
    job = home.waiting(say(home, folder, "failed"))
    (folder / "announce").write_text(BROKEN)
    home.approve(job)
    return [home.wait(job, JobPhase.failed)]


def in_doubt_and_resolved(home: Installation, folder: Path) -> list[JobView]:
    """Nobody could tell what became of the second effect; a person looked and said done."""
    job = home.waiting(say(home, folder, "doubt"))
    (folder / "announce").write_text(DOUBTFUL)
    home.approve(job)
    unknown = home.wait(job, JobPhase.unknown)
    answer = {"digest": unknown.digest, "effect": 1, "answer": "done", "decision_id": "resolve-doubt"}
    home.post("/v1/resolve", answer, ref=job.job_id)
    return [home.done(job)]


def drifted(home: Installation, folder: Path) -> list[JobView]:
    """The world moved under an approved plan: planned again, and approved again."""
    job = home.waiting(say(home, folder, "drift"))
    (folder / "NOTE").write_text("somebody else's")
    home.approve(job)
    wait_until(lambda: home.job(job).digest != job.digest and home.job(job).phase is JobPhase.waiting, "the next plan")
    home.approve(job)
    return [home.done(job)]


def expired(home: Installation, folder: Path) -> list[JobView]:
    """Nobody answered in time."""
    return [home.wait(say(home, folder, "expired", "announce-soon"), JobPhase.expired)]


def cancelled(home: Installation, folder: Path) -> list[JobView]:
    """A person stopped the job while it waited."""
    job = home.waiting(say(home, folder, "cancelled"))
    home.post("/v1/cancel", {"decision_id": "cancel-it", "comment": "no need"}, ref=job.job_id)
    return [home.wait(job, JobPhase.cancelled)]


def lost_and_started_again(home: Installation, folder: Path) -> list[JobView]:
    """Somebody ended the job and its gate; the decision started both again."""
    job = home.waiting(say(home, folder, "lost"))

    async def terminate() -> None:
        client = await home.temporal()
        for workflow_id in (gate_id(job.job_id, 1), job.job_id):
            await client.get_workflow_handle(workflow_id).terminate()

    asyncio.run(terminate())
    home.approve(job)
    return [home.done(job)]


def planned_only(home: Installation, folder: Path) -> list[JobView]:
    """A plan was all that was asked for."""
    return [home.done(say(home, folder, "planned", plan_only=True))]


SCENARIOS: tuple[Scenario, ...] = (
    applied_and_undone,
    rejected,
    changes_requested,
    failed_and_taken_back,
    in_doubt_and_resolved,
    drifted,
    expired,
    cancelled,
    lost_and_started_again,
    planned_only,
)


def say(home: Installation, folder: Path, word: str, template: str = "announce", **more: bool) -> JobView:
    """Ask for a word to be said."""
    folder.mkdir(parents=True)
    (folder / "announce").write_text(ANNOUNCE)
    return home.run(template, folder, word=word, folder=str(folder), counter=str(folder), **more)


@contextmanager
def recording(folder: Path) -> Iterator[Installation]:
    """An installation with the key of the recordings."""
    key = folder / "data" / "keys" / KEY_FILE
    key.parent.mkdir(mode=0o700, parents=True)
    key.write_text(KEY.hex() + "\n")
    key.chmod(0o600)
    with installation(folder) as home:
        home.start_worker()
        yield home


async def fetch(home: Installation, jobs: list[JobView], out: Path) -> int:
    """Store every run of every workflow that had to do with these jobs; return how many."""
    client = await home.temporal()
    threads = {thread_id(job.thread) for job in jobs}
    names = {f"{job.thread}/{JobId.parse(job.job_id).request}": number for number, job in enumerate(jobs, 1)}
    runs: dict[str, int] = {}
    found = [execution async for execution in client.list_workflows("")]
    for execution in sorted(found, key=lambda execution: (execution.start_time, execution.id)):
        kind, _, rest = execution.id.partition("/")
        mine = next((number for name, number in names.items() if f"{rest}/".startswith(f"{name}/")), None)
        if mine is None and execution.id not in threads:
            continue
        label = "thread" if mine is None else f"{kind}-{mine}"
        runs[label] = runs.get(label, 0) + 1
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        store(out / f"{label}-{runs[label]}.json", await handle.fetch_history())
    return sum(runs.values())


def main() -> int:
    """Run every scenario and replace the recordings of this version."""
    out = HISTORIES / installed_version()
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="record-") as name, recording(Path(name)) as home:
        for scenario in SCENARIOS:
            jobs = scenario(home, Path(name) / "worlds" / scenario.__name__)
            count = asyncio.run(fetch(home, jobs, out / scenario.__name__))
            print(f"{scenario.__name__}: {count} histories")
    size = sum(path.stat().st_size for path in out.rglob("*.json"))
    print(f"{out}: {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
