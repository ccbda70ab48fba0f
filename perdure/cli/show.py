"""``perdure show``: one job, stage by stage, live while it goes on."""

from __future__ import annotations

import click

from perdure.cli import codes
from perdure.cli.attend import Attendant
from perdure.cli.door import Door
from perdure.cli.ending import plan_of, say_end
from perdure.cli.follow import Watch
from perdure.cli.jobs import what_of
from perdure.cli.live import LiveLine
from perdure.cli.plan_view import print_plan
from perdure.cli.plans import read_job
from perdure.cli.session import Session, command
from perdure.cli.story import Story
from perdure.cli.words import clock, phase_span
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase


@command(
    "show",
    examples=[
        ("perdure show", "the last job; live while it goes on"),
        ("perdure show releases/3", 'job 3 of the thread "releases"'),
        ("perdure show 3 --no-follow", "how it is now, and end"),
    ],
)
@click.argument("job", default="@last")
@click.option("--follow/--no-follow", "-f", default=None, help="Stay until it rests; default: on a terminal.")
def show(session: Session, job: str, follow: bool | None) -> int:
    """Show a job: its stages, its plan, what was done; live while it goes on.

    On a terminal a waiting plan is asked about as `perdure run` does. Ctrl-C ends the showing, never the job.
    """
    with session.door() as door:
        view = read_job(door, job)
        if session.as_json and not follow:
            session.answer(view)
            return codes.OK
        _head(session, view)
        stays = session.may_ask if follow is None else follow
        if stays and not view.phase.is_final:
            return Attendant(session, door, view).attend()
        _tell(session, door, view)
        return codes.OK


def _head(session: Session, job: JobView) -> None:
    paper = session.progress
    paper.line((job.name, "title"), f"   job {job.number}   ", phase_span(job.phase), "   ", what_of(job))
    asked = f"{job.template}, asked for by {job.requester} on {clock(job.created_at)}"
    paper.line("  ", (asked, "dim"))


def _tell(session: Session, door: Door, job: JobView) -> None:
    """Tell what has happened so far, without waiting."""
    with LiveLine(session.paper) as live:
        story = Story(live, job.name)
        for event in Watch(door, job.job_id, lambda text: live.say([text])).rest():
            story.tell(event)
        story.finish()
    review = plan_of(door, job)
    if review is not None:
        print_plan(session.paper, review)
    if job.phase.is_final or job.phase is JobPhase.unknown:
        say_end(session.paper, door, job)
    elif job.phase is JobPhase.waiting and job.expires_at:
        session.paper.line(f"Waiting until {clock(job.expires_at)}.  ", (f"perdure review {job.number}", "hint"))
