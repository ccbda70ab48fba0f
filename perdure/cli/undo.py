"""``undo`` and ``cancel``: ways back."""

from __future__ import annotations

import click

from perdure.cli import codes
from perdure.cli.attend import Attendant
from perdure.cli.decide import comment_option, detach_option, passphrase_option, read_passphrase
from perdure.cli.follow import last_position
from perdure.cli.plans import read_job, with_passphrase
from perdure.cli.session import Session, command
from perdure.cli.starting import door_to_jobs, no_start_option
from perdure.cli.words import new_id
from perdure.contracts.http import CancelRequest, JobView, UndoRequest
from perdure.contracts.job import JobPhase


@command(
    "undo",
    unread=codes.WAITING,
    examples=[
        ("perdure undo 1", "plan the way back of job 1, and ask"),
        ("perdure undo 1 --detach", "plan it; decide later by its digest"),
    ],
)
@click.argument("job")
@detach_option
@no_start_option
def undo(session: Session, job: str, detach: bool, no_start: bool) -> int:
    """Take a finished job back, newest effect first, as a plan of its own that you approve.

    It works from the ledger alone, also days later. Only what this job did is undone, and only while it is still so.
    """
    with door_to_jobs(session, no_start=no_start) as door:
        target = read_job(door, job)
        view = door.post("/v1/undo", UndoRequest(request_id=new_id()), JobView, ref=target.job_id)
        if detach:
            if session.as_json:
                session.answer(view)
            else:
                hint = (f"perdure show {view.number}", "hint")
                session.paper.line((view.name, "title"), f" takes {target.name} back.  Look: ", hint)
            return codes.WAITING
        return Attendant(session, door, view).attend()


@command(
    "cancel",
    unread=codes.WAITING,
    examples=[("perdure cancel 3 -m 'wrong branch'", "stop; what was done is taken back")],
)
@click.argument("job")
@comment_option
@passphrase_option
@detach_option
@no_start_option
def cancel(session: Session, job: str, comment: str, passphrase_stdin: bool, detach: bool, no_start: bool) -> int:
    """Stop a job at its next safe point. What it has already applied is taken back."""
    with door_to_jobs(session, no_start=no_start) as door:
        target = read_job(door, job)
        seen = last_position(door, target.job_id)
        decision_id = new_id()

        def send(passphrase: str) -> JobView:
            request = CancelRequest(decision_id=decision_id, comment=comment, passphrase=passphrase)
            return door.post("/v1/cancel", request, JobView, ref=target.job_id)

        given = read_passphrase() if passphrase_stdin else ""
        view = with_passphrase(send, passphrase=given, may_ask=session.may_ask)
        session.progress.line(f"Asked {view.name} to stop.")
        if detach:
            if session.as_json:
                session.answer(view)
            return codes.OK
        attendant = Attendant(session, door, view)
        attendant.own.add(decision_id)
        code = attendant.attend(after=seen, decided=view.digest, moved=False)
    if attendant.job.phase is JobPhase.done:
        session.notes.line("  Too late to stop it: everything was done before the next safe point.")
        return codes.CONFLICT
    return codes.OK if attendant.job.phase is JobPhase.cancelled else code
