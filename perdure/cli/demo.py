"""``perdure demo``: a real release of a scratch clone, killed in the middle, counted from outside, taken back."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perdure.cli import codes
from perdure.cli.ask import ask
from perdure.cli.demo_world import World, add_example_work, scratch_world
from perdure.cli.ending import say_end
from perdure.cli.follow import follow
from perdure.cli.plan_view import SHORT, print_plan
from perdure.cli.plans import decide, read_plan
from perdure.cli.session import Session, command
from perdure.cli.words import counted, new_id
from perdure.contracts.http import AuditReport, JobView, Review, SubmitRequest, UndoRequest
from perdure.contracts.job import JobPhase
from perdure.errors import PerdureError

if TYPE_CHECKING:
    from perdure.cli.door import Door
    from perdure.settings import Settings

_HELD_SECONDS = 60.0


class DemoFailed(PerdureError):
    """Something in the demo was not as promised; the message says what."""


@command(
    "demo",
    examples=[
        ("perdure demo", "a small example project, or the checkout that Perdure runs from"),
        ("perdure demo ~/src/orders", "a scratch clone of your repository; it is not touched"),
    ],
)
@click.argument("repository", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Decide as the demo's reviewer without asking.")
def demo(session: Session, repository: Path | None, yes: bool) -> int:
    """See a release wait for you, survive `kill -9` in the middle of a push, finish once, and be taken back.

    Everything happens in a scratch folder with an installation of its own, removed at the end.
    """
    started = time.monotonic()
    with scratch_world(repository or _own_checkout()) as world:
        settings = session.private_settings(world.data)
        result = _Demo(session, settings, world, ask=session.may_ask and not yes).run()
    session.progress.line(("✓ ", "good"), f"All removed. {time.monotonic() - started:.0f} s in all.")
    if session.as_json:
        session.answer({**result, "seconds": round(time.monotonic() - started)})
    return codes.OK


class _Demo:
    """One demo, step by step."""

    def __init__(self, session: Session, settings: Settings, world: World, *, ask: bool) -> None:
        self._paper = session.progress
        self._settings = settings
        self._world = world
        self._ask = ask
        self._seen = 0
        """Position of the last event that was told."""

    def run(self) -> dict[str, object]:
        """Run it; returns what was counted. Stops the scratch installation in any case."""
        from perdure.cli.door import open_door
        from perdure.runtime.supervisor import down, up

        self._say(f"1. A scratch clone of {self._world.origin}, a bare remote with a witness, a real Temporal server.")
        up(self._settings)
        try:
            with open_door(self._settings) as door:
                return self._release(door)
        finally:
            down(self._settings)

    def _release(self, door: Door) -> dict[str, object]:
        self._say("2. The plan.")
        job, review = self._plan(door)
        print_plan(self._paper, review)
        self._say("3. The decision.")
        self._confirm(f"Approve plan {review.digest[:SHORT]} (in the scratch world)? ")
        decide(door, review.digest, "approve")
        self._say("4. kill -9 on the worker, in the middle of the push.")
        self._kill_in_push()
        job, _ = follow(door, job, self._paper, after=self._seen, decided=review.digest)
        self._expect(job, JobPhase.done)
        say_end(self._paper, door, job)
        counts = self._count(review)
        report = self._audit(door, job)
        undone = self._undo(door, job)
        return {"digest": review.digest, "witness": counts, "records": report.records, "undone_by": undone.name}

    def _plan(self, door: Door) -> tuple[JobView, Review]:
        job = self._submit(door)
        if job.phase is JobPhase.nothing_to_do:
            self._paper.line("Nothing to release there: the demo commits a feature and a fix to its clone.")
            add_example_work(self._world)
            job = self._submit(door)
        self._expect(job, JobPhase.waiting)
        return job, read_plan(door, job.digest)

    def _submit(self, door: Door) -> JobView:
        request = SubmitRequest(template="release", request_id=new_id(), folder=str(self._world.clone))
        job, self._seen = follow(door, door.post("/v1/jobs", request, JobView), self._paper)
        return job

    def _confirm(self, question: str) -> None:
        if not self._ask:
            self._paper.line(("NOBODY IS ASKED: the demo decides as its own reviewer.", "warn"))
            return
        answer = ask(self._paper, [question, "[y]es [n]o: "], lambda: True)
        if (answer or "").strip().lower() not in {"y", "yes", "a"}:
            raise click.Abort

    def _kill_in_push(self) -> None:
        """Kill the worker while the remote holds its push. Its supervisor starts the next one by itself."""
        from perdure.runtime.supervisor import status

        deadline = time.monotonic() + _HELD_SECONDS
        while not self._world.held.exists():
            if time.monotonic() > deadline:
                raise DemoFailed(f"The push did not reach the remote within {_HELD_SECONDS:.0f} s.")
            time.sleep(0.02)
        worker = next(process.pid for process in status(self._settings).processes if process.name == "worker")
        os.kill(worker, signal.SIGKILL)
        self._world.let_go()
        self._paper.line("  ", ("✗ ", "bad"), f"worker {worker} killed; commit and tag were done, the push was not.")

    def _count(self, review: Review) -> dict[str, int]:
        self._say("5. Each effect, counted by the remote's own hook.")
        counts = self._world.witnessed()
        for ref, count in counts.items():
            mark = ("✓ ", "good") if count == 1 else ("✗ ", "bad")
            self._paper.line("  ", mark, f"{ref}: {counted(count, 'time')}")
        if len(counts) < 2 or set(counts.values()) != {1}:
            raise DemoFailed(f"The witness counted {counts}; expected the branch and the tag, once each.")
        return counts

    def _audit(self, door: Door, job: JobView) -> AuditReport:
        report = door.get("/v1/audit", AuditReport, ref=job.job_id)
        self._say(f"6. The audit: {report.records} records, {'no gaps' if report.ok else 'GAPS'}.")
        if not report.ok:
            raise DemoFailed("; ".join(finding.detail for finding in report.findings if finding.severity != "ok"))
        return report

    def _undo(self, door: Door, job: JobView) -> JobView:
        self._say("7. Taken back, as a plan of its own.")
        undo = door.post("/v1/undo", UndoRequest(request_id=new_id()), JobView, ref=job.job_id)
        undo, seen = follow(door, undo, self._paper)
        self._expect(undo, JobPhase.waiting)
        review = read_plan(door, undo.digest)
        print_plan(self._paper, review)
        self._confirm(f"Approve plan {review.digest[:SHORT]}? ")
        decide(door, review.digest, "approve")
        undo, _ = follow(door, undo, self._paper, after=seen, decided=review.digest)
        self._expect(undo, JobPhase.done)
        say_end(self._paper, door, undo)
        return undo

    def _expect(self, job: JobView, phase: JobPhase) -> None:
        if job.phase is not phase:
            raise DemoFailed(f"{job.name} is {job.phase} ({job.summary or 'no reason given'}); expected {phase}.")

    def _say(self, text: str) -> None:
        self._paper.line()
        self._paper.line((text, "title"))


def _own_checkout() -> Path | None:
    """The git checkout that this package runs from, if it does."""
    from perdure import application

    root = application.root()
    return root if (root / ".git").exists() else None
