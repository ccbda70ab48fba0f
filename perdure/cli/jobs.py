"""``perdure jobs``: what there is and what waits."""

from __future__ import annotations

import click

from perdure.cli.paper import Row, Span
from perdure.cli.plan_view import SHORT
from perdure.cli.session import Session, command
from perdure.cli.words import ago, own_words, phase_span
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase

HEADER = ("#", "JOB", "PHASE", "PLAN", "WHAT", "CHANGED")


@command(
    "jobs",
    examples=[
        ("perdure jobs", "the last jobs, newest first"),
        ("perdure jobs --open", "only those that go on or wait for somebody"),
        ("perdure jobs --thread release-orders --json", "one thread's, for a script"),
    ],
)
@click.option("--thread", default=None, metavar="NAME", help="Only jobs of this thread.")
@click.option("--open", "only_open", is_flag=True, help="Only jobs that have not ended.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="At most so many.")
def jobs(session: Session, thread: str | None, only_open: bool, limit: int) -> None:
    """List jobs, newest first, with the digest of each one's plan."""
    with session.door() as door:
        found = door.get("/v1/jobs", list[JobView], thread=thread, open=only_open, limit=limit)
    if session.as_json:
        session.answer(found)
    elif not found:
        what = "No job is open." if only_open else "No jobs yet. Start one: perdure run release"
        session.paper.line((what, "dim"))
    else:
        session.paper.table([job_row(job) for job in found], header=HEADER, shrink=4)


def job_row(job: JobView) -> Row:
    """One job as a row of the table."""
    digest: Span = (job.digest[:SHORT], "digest") if job.digest else ""
    return [
        (str(job.number), "title"),
        job.name,
        phase_span(job.phase),
        digest,
        what_of(job),
        (ago(job.updated_at), "dim"),
    ]


def what_of(job: JobView) -> str:
    """What there is to know about a job in one line."""
    if job.undone_by:
        return f"{job.title} · taken back by {job.undone_by}"
    if job.phase is JobPhase.waiting and job.missing:
        return f"{job.title} · needs {', '.join(job.missing)}"
    return " · ".join(filter(None, (job.title, own_words(job))))
