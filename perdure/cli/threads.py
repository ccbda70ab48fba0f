"""``perdure threads``: what each lasting workspace has done, and letting one rest."""

from __future__ import annotations

from typing import Literal

import click

from perdure.cli.catalog import THREADS
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.paper import Paper, Row, Span
from perdure.cli.session import Session, command
from perdure.cli.words import ago, clock, counted, phase_span
from perdure.contracts.threads import ThreadJob, ThreadRow, ThreadView, ThreadWordRequest


@click.group(
    "threads",
    cls=LazyGroup,
    sections=THREADS,
    context_settings=CONTEXT,
    examples=[
        ("perdure threads list", "every lasting workspace"),
        ("perdure threads show release-orders", "what it did, who decided, what is left over"),
    ],
)
def threads() -> None:
    """A thread is a lasting workspace with one responsibility, such as the releases of one repository.

    By default there is one for each template and target. What it tells comes from the ledger.
    """


@command("list", examples=[("perdure threads list --archived", "those that were put away, too")])
@click.option("--archived", is_flag=True, help="Archived ones too.")
def list_threads(session: Session, archived: bool) -> None:
    """List threads with what each did last."""
    with session.door() as door:
        found = door.get("/v1/threads", list[ThreadRow], archived=archived)
    if session.as_json:
        session.answer(found)
    elif not found:
        session.paper.line(("No threads yet. A first job makes one: perdure run release", "dim"))
    else:
        session.paper.table([_row(one) for one in found], header=("THREAD", "TEMPLATE", "JOBS", "LAST", ""), shrink=4)


@command("show", examples=[("perdure threads show release-orders", "the last fifty jobs, newest first")])
@click.argument("thread")
def show_thread(session: Session, thread: str) -> None:
    """Tell a thread's history: its jobs, who decided, what was taken back, what is left over, what was missed."""
    with session.door() as door:
        found = door.get(f"/v1/threads/{thread}", ThreadView)
    if session.as_json:
        session.answer(found)
    else:
        _write(session.paper, found)


@command("pause", examples=[("perdure threads pause release-orders 'freeze until the fair'", "nothing new begins")])
@click.argument("thread")
@click.argument("note")
def pause_thread(session: Session, thread: str, note: str) -> None:
    """Start nothing new in THREAD; NOTE says why. Open jobs go on; fires of its schedules are held, not lost."""
    _say(session, thread, "pause", note)


@command("resume", examples=[("perdure threads resume release-orders", "held fires become one job")])
@click.argument("thread")
def resume_thread(session: Session, thread: str) -> None:
    """Let THREAD start jobs again."""
    _say(session, thread, "resume", "")


@command("archive", examples=[("perdure threads archive release-orders", "its evidence stays")])
@click.argument("thread")
@click.option("-m", "--message", "note", default="", help="Why.")
def archive_thread(session: Session, thread: str, note: str) -> None:
    """Put THREAD away: it is listed no more and starts nothing. It must have no open jobs and no schedules."""
    _say(session, thread, "archive", note)


def _say(session: Session, thread: str, kind: Literal["pause", "resume", "archive"], note: str) -> None:
    with session.door() as door:
        request = ThreadWordRequest(kind=kind, note=note)
        found = door.post(f"/v1/threads/{thread}/words", request, ThreadView)
    if session.as_json:
        session.answer(found)
    else:
        session.paper.line((thread, "title"), f" is {found.about.state}.")


def _row(row: ThreadRow) -> Row:
    jobs = counted(row.jobs, "job") + (f", {row.open} open" if row.open else "")
    last: Span = phase_span(row.last_phase) if row.last_phase else ("–", "dim")
    when = ago(row.last_at) if row.last_at else ""
    state = f"‖ {row.state} {row.note}" if row.state != "active" else ""
    schedules = counted(row.schedules, "schedule") if row.schedules else ""
    return [
        (row.thread, "title"),
        ", ".join(row.templates),
        jobs,
        last,
        "  ".join(filter(None, (when, schedules, state))),
    ]


def _write(paper: Paper, found: ThreadView) -> None:
    about = found.about
    state = "" if about.state == "active" else f"   {about.state}: {about.note}".rstrip(": ")
    paper.line((about.thread, "title"), (state, "warn"))
    counts = f"{found.done} done, {found.taken_back} taken back, {found.failed} failed, {about.open} open"
    paper.line(f"  {counted(about.jobs, 'job')}: {counts}")
    if found.deciders:
        approved = ", ".join(f"{who} ×{count}" for who, count in found.deciders.items())
        paper.line(f"  Approved by {approved}")
    for name in found.schedules:
        paper.line("  Schedule ", (name, "hint"))
    for text in found.waits:
        paper.line("  ", ("◆ waits: ", "warn"), text)
    for text in found.leftovers:
        paper.line("  ", ("✗ left over: ", "bad"), text)
    paper.line()
    paper.table([_job_row(job) for job in found.jobs], header=("JOB", "WHEN", "PHASE", "WHAT", "WHO"), shrink=3)
    _write_trouble(paper, found)


def _write_trouble(paper: Paper, found: ThreadView) -> None:
    if found.fires:
        paper.line()
        rows: list[Row] = [[("◆", "warn"), clock(fire.at), fire.what, fire.key, fire.detail] for fire in found.fires]
        paper.table(rows, header=("", "WHEN", "", "FIRE", ""), shrink=4)
    for name, text in found.notes.items():
        paper.line("  note ", (name, "title"), f": {text}")


def _job_row(job: ThreadJob) -> Row:
    what = f"{job.title} · taken back by {job.undone_by}" if job.undone_by else job.title
    asked = f"schedule {job.schedule}" if job.schedule else job.requester
    return [job.name, clock(job.created_at), phase_span(job.phase), what, "; ".join([asked, *job.decided])]
