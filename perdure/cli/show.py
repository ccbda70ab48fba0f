"""``perdure show``: one job, stage by stage, live while it goes on."""

from __future__ import annotations

from collections.abc import Iterator

import click

from perdure.cli import codes
from perdure.cli.agents import write_agents
from perdure.cli.attend import Attendant
from perdure.cli.door import Door
from perdure.cli.ending import plan_of, say_end
from perdure.cli.follow import Watch
from perdure.cli.jobs import what_of
from perdure.cli.live import LiveLine
from perdure.cli.plan_view import print_plan
from perdure.cli.plans import read_job
from perdure.cli.rounds import split_rounds
from perdure.cli.session import Session, command
from perdure.cli.story import Story
from perdure.cli.words import clock, deadline, phase_span
from perdure.contracts.http import AgentView, EventView, JobView
from perdure.contracts.job import JobPhase
from perdure.reviewing import repositories_of


@command(
    "show",
    examples=[
        ("perdure show", "the last job; live while it goes on"),
        ("perdure show releases/3", 'job 3 of the thread "releases"'),
        ("perdure show 3 --no-follow", "how it is now, and end"),
        ("perdure show 3 --all", "every round, not only the last one"),
    ],
)
@click.argument("job", default="@last")
@click.option("--all", "every_round", is_flag=True, help="Every round stage by stage; default: only the last one.")
@click.option("--follow/--no-follow", "-f", default=None, help="Stay until it rests; default: on a terminal.")
def show(session: Session, job: str, every_round: bool, follow: bool | None) -> int:
    """Show a job: its stages, its plan, what was done; live while it goes on.

    On a terminal a waiting plan is asked about as `perdure run` does. Ctrl-C ends the showing, never the job.
    """
    with session.door() as door:
        view = read_job(door, job)
        if view.phase is JobPhase.waiting_for_merge:  # whoever asks wants to know it now, not at the next look
            view = door.post("/v1/look", {}, JobView, ref=view.job_id)
        if session.as_json and not follow:
            session.answer(view)
            return codes.OK
        _head(session, view)
        stays = session.may_ask if follow is None else follow
        if stays and not view.phase.is_final:
            begun = _tell_earlier(session, door, view, every_round=every_round)
            return Attendant(session, door, view).attend(after=begun)
        _tell(session, door, view, every_round=every_round)
        return codes.OK


def _head(session: Session, job: JobView) -> None:
    paper = session.progress
    paper.line((job.name, "title"), f"   job {job.number}   ", phase_span(job.phase), "   ", what_of(job))
    asked = f"{job.template}, asked for by {job.requester} on {clock(job.created_at)}"
    paper.line("  ", (asked, "dim"))
    if job.trouble:
        paper.line("  ", ("held up: ", "warn"), job.trouble, (" It is tried again by itself.", "dim"))


def _tell_earlier(session: Session, door: Door, job: JobView, *, every_round: bool) -> int:
    """Tell how each round before the last one ended; return the position after which the last one begins."""
    if every_round:
        return 0
    earlier, last = split_rounds(list(_read(session, door, job)))
    for number, ending in enumerate(earlier, 1):
        session.progress.line((f"  round {number}  ", "dim"), *ending)
    return last[0].position - 1 if earlier else 0


def _read(session: Session, door: Door, job: JobView, *, after: int = 0) -> Iterator[EventView]:
    """Every event that there is by now."""
    return Watch(door, job.job_id, lambda text: session.notes.line((text, "warn")), after=after).rest()


def _tell(session: Session, door: Door, job: JobView, *, every_round: bool) -> None:
    """Tell what has happened so far, without waiting: of the rounds before the last one how each ended."""
    begun = _tell_earlier(session, door, job, every_round=every_round)
    with LiveLine(session.paper) as live:
        story = Story(live, job.name)
        for event in _read(session, door, job, after=begun):
            story.tell(event)
        story.finish()
    write_agents(session.paper, door.get("/v1/agents", list[AgentView], ref=job.job_id))
    review = plan_of(door, job)
    if review is not None:
        for place in repositories_of(review):
            session.paper.line("  ", (f"in {place}", "dim"))
        print_plan(session.paper, review)
    if job.phase.is_final or job.phase in {JobPhase.unknown, JobPhase.waiting_for_merge}:
        say_end(session.paper, door, job)
    elif job.phase is JobPhase.waiting and job.expires_at:
        needs = f" for {', '.join(job.missing)}" if job.missing else ""
        until = deadline(job.expires_at)
        session.paper.line(f"Waiting{needs} {until}.  ", (f"perdure review {job.number}", "hint"))
