"""Record the histories of real jobs: ``python -m tests.replay.record [SCENARIO …]``; without names all of them.

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
from typing import Any

from perdure.client import installed_version
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.names import JobId, gate_id, thread_id
from perdure.runtime.payload_keys import KEY_FILE
from perdure.store.agents import Agents
from perdure.testing.model_server import model_server
from tests.agents.kit import TEMPLATES, Office, configure, make_repository, read, write
from tests.replay.stored import HISTORIES, KEY, store
from tests.support.installation import ROOT, Installation, installation, wait_until
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


def agents_at_work(home: Installation, folder: Path) -> list[JobView]:
    """Agents: calls beside each other, a person's word, a pause, a summary beside the loop; one that was cancelled."""
    folder.mkdir(parents=True)
    turns: list[dict[str, Any]] = [
        {"calls": [read("NOTE"), read("README.md")]},
        {"calls": [read("README.md")], "hold": "word"},
        {"text": "word " * 3200},
        {"calls": [write("NOTE", "the first note\n")]},
        {"text": "Done.", "hold": "end"},
    ]
    summary = {"when": {"says": "You write the summary"}, "answer": {"text": "It looked around."}}
    with model_server({"rules": [summary], "turns": turns}) as model:
        configure(home, model, window=9000, max_output=1000)
        place = Office(home, make_repository(folder), model, "agents")
        job = place.start()
        stopped = Office(home, place.repository, model, "stopped").start()
        model.wait_for(4)
        home.post("/v1/cancel", {"decision_id": "cancel-agent", "comment": "no need"}, ref=stopped.job_id)
        stopped = home.wait(stopped, JobPhase.cancelled)
        place.steer(job, "say", "keep it short")
        place.steer(job, "pause")
        model.release("word")
        home.wait(job, JobPhase.paused)
        place.steer(job, "resume")
        wait_until(lambda: _is_summarized(place, job), "the summary")
        model.release("end")
        home.approve(job)
        return [home.done(job), stopped]


def _is_summarized(place: Office, job: JobView) -> bool:
    with place.home.ledger() as ledger:
        agents = Agents(ledger.database)
        return agents.summaries.newest(agents.of_job(job.job_id)[0].agent_id) is not None


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
    agents_at_work,
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
    templates = folder / "templates"
    shutil.copytree(ROOT / "tests" / "crash" / "templates", templates)
    shutil.copy(TEMPLATES / "note.yaml", templates)
    with installation(folder, PERDURE_TEMPLATES=str(templates)) as home:
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
    """Run the scenarios that are named, else all, and replace their recordings of this version."""
    out = HISTORIES / installed_version()
    wanted = [scenario for scenario in SCENARIOS if not sys.argv[1:] or scenario.__name__ in sys.argv[1:]]
    if wanted == list(SCENARIOS):
        shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="record-") as name, recording(Path(name)) as home:
        for scenario in wanted:
            shutil.rmtree(out / scenario.__name__, ignore_errors=True)
            jobs = scenario(home, Path(name) / "worlds" / scenario.__name__)
            count = asyncio.run(fetch(home, jobs, out / scenario.__name__))
            print(f"{scenario.__name__}: {count} histories")
    size = sum(path.stat().st_size for path in out.rglob("*.json"))
    print(f"{out}: {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
