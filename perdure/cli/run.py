"""``perdure run``: from one line to a plan on the screen."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli import codes
from perdure.cli.attend import Attendant
from perdure.cli.door import Door
from perdure.cli.ending import plan_of
from perdure.cli.follow import follow
from perdure.cli.plan_view import SHORT, print_plan
from perdure.cli.session import Session, command
from perdure.cli.starting import ensure_up, no_start_option
from perdure.cli.words import exit_code, new_id
from perdure.contracts.http import JobView, SubmitRequest
from perdure.contracts.job import JobPhase
from perdure.errors import UserError


@command(
    "run",
    unread=codes.WAITING,
    examples=[
        ("perdure run release", "plan a release of this repository"),
        ("perdure run release test='make test'", "with its tests as a check"),
        ("perdure run release version=2.0.0 remote=", "choose the version; push nowhere"),
        ("perdure run release --plan", "only look; 2: it would change"),
        ("perdure run release --detach --json", "from a script"),
    ],
)
@click.argument("template")
@click.argument("inputs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--plan", "plan_only", is_flag=True, help="Make the plan and stop; nothing can be approved.")
@click.option("-d", "--detach", is_flag=True, help="Do not follow: print the job's name and end.")
@no_start_option
@click.option("--request-id", default="", metavar="ID", help="The same id twice is the same job.")
def run(
    session: Session,
    template: str,
    inputs: tuple[str, ...],
    plan_only: bool,
    detach: bool,
    no_start: bool,
    request_id: str,
) -> int:
    """Start a job from TEMPLATE and follow it to its plan.

    Nothing outside a private workspace changes before the plan is approved. On a terminal you are asked for the
    decision; Ctrl-C or `l` leaves, the job waits. `perdure templates show TEMPLATE` lists the inputs.
    """
    request = SubmitRequest(
        template=template,
        inputs=parse_inputs(inputs),
        request_id=request_id or new_id(),
        folder=str(Path.cwd()),
        plan_only=plan_only,
    )
    with session.door() as door:
        if not no_start:
            ensure_up(session, door)
        job = door.post("/v1/jobs", request, JobView)
        if detach:
            return _detached(session, job)
        return _plan(session, door, job) if plan_only else Attendant(session, door, job).attend()


def parse_inputs(inputs: tuple[str, ...]) -> dict[str, str]:
    """Return the inputs by name, as typed.

    Raises:
        UserError: one is not KEY=VALUE, or one is given twice.
    """
    given: dict[str, str] = {}
    for text in inputs:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"{text!r} is not an input; expected KEY=VALUE, for example test='make test'.")
        if name in given:
            raise UserError(f"Input {name!r} is given twice: {given[name]!r} and {value!r}.")
        given[name] = value
    return given


def _detached(session: Session, job: JobView) -> int:
    if session.as_json:
        session.answer(job)
    else:
        session.paper.line(
            (job.name, "title"), " goes on in the background.  Look: ", (f"perdure show {job.number}", "hint")
        )
    return codes.WAITING


def _plan(session: Session, door: Door, job: JobView) -> int:
    session.paper.may_go_unread = True  # its exit code says whether there is something to do
    job, _ = follow(door, job, session.progress)
    review = plan_of(door, job) if job.phase is JobPhase.done else None
    if session.as_json:
        session.answer(job)
    elif review is not None:
        print_plan(session.paper, review)
        session.paper.line("Only planned: nothing has changed.  ", (f"perdure review {review.digest[:SHORT]}", "hint"))
    else:
        session.paper.line("  ", job.summary or job.phase.value.replace("_", " "))
    return codes.CHANGES if review is not None and review.effects else exit_code(job.phase)
