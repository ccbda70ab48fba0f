"""Words about a schedule: pause, resume, trigger, backfill, delete."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.decide import passphrase_option, read_passphrase
from perdure.cli.plans import with_passphrase
from perdure.cli.session import Session, command
from perdure.cli.starting import door_to_jobs, no_start_option
from perdure.cli.words import new_id
from perdure.contracts.schedules import ScheduleView, ScheduleWordRequest


@command("pause", examples=[("perdure schedule pause release 'freeze until the fair'", "the note is shown in lists")])
@click.argument("name")
@click.argument("note")
@passphrase_option
@no_start_option
def pause_schedule(session: Session, name: str, note: str, passphrase_stdin: bool, no_start: bool) -> None:
    """Let schedule NAME rest; NOTE says why. What falls into the pause is not made up for later."""
    found = _say(session, name, passphrase_stdin, no_start, kind="pause", note=note)
    _answer(session, found, f"{name} is paused. Its open jobs go on.  ", f"perdure schedule resume {name}")


@command("resume", examples=[("perdure schedule resume release", "from its next time on, not now")])
@click.argument("name")
@passphrase_option
@no_start_option
def resume_schedule(session: Session, name: str, passphrase_stdin: bool, no_start: bool) -> None:
    """Let schedule NAME fire again, from its next time on. Fires of the pause are given up, and shown so."""
    found = _say(session, name, passphrase_stdin, no_start, kind="resume")
    ahead = next((fire.local for fire in found.next if fire.fires), "never")
    _answer(session, found, f"{name} fires again, next {ahead}.")


@command("trigger", examples=[("perdure schedule trigger release", "one job of it now, also while it is paused")])
@click.argument("name")
@passphrase_option
@no_start_option
def trigger_schedule(session: Session, name: str, passphrase_stdin: bool, no_start: bool) -> None:
    """Start a job of schedule NAME now. Its times go on as they were."""
    found = _say(session, name, passphrase_stdin, no_start, kind="trigger")
    _answer(session, found, f"{name} was asked for a job.  ", f"perdure schedule show {name}")


@command(
    "backfill",
    examples=[("perdure schedule backfill report 2026-11-01 2026-11-30", "each fire of November, in order")],
)
@click.argument("name")
@click.argument("start", metavar="FROM")
@click.argument("end", metavar="TO")
@passphrase_option
@no_start_option
def backfill_schedule(
    session: Session, name: str, start: str, end: str, passphrase_stdin: bool, no_start: bool
) -> None:
    """Run the fires of schedule NAME between two past times, one after the other; those that ran before do not again.

    FROM and TO are times of the schedule's zone (2026-11-01, 2026-11-01T02:30), or with an offset; both are included.
    """
    found = _say(session, name, passphrase_stdin, no_start, kind="backfill", start=start, end=end)
    _answer(session, found, f"{name} makes up for these fires.  ", f"perdure schedule show {name}")


@command("delete", examples=[("perdure schedule delete release", "its jobs and their evidence stay")])
@click.argument("name")
@click.option("-m", "--message", "note", default="", help="Why; signed with the word.")
@passphrase_option
@no_start_option
def delete_schedule(session: Session, name: str, note: str, passphrase_stdin: bool, no_start: bool) -> None:
    """End schedule NAME. Its open jobs go on; what it did stays in the evidence."""
    found = _say(session, name, passphrase_stdin, no_start, kind="delete", note=note)
    _answer(session, found, f"{name} is deleted.")


def _say(session: Session, name: str, passphrase_stdin: bool, no_start: bool, **said: Any) -> ScheduleView:
    about = {**said, "decision_id": new_id()}
    given = read_passphrase() if passphrase_stdin else ""
    with door_to_jobs(session, no_start=no_start) as door:

        def send(passphrase: str) -> ScheduleView:
            request = ScheduleWordRequest.model_validate({**about, "passphrase": passphrase})
            return door.post(f"/v1/schedules/{name}/words", request, ScheduleView)

        return with_passphrase(send, passphrase=given, may_ask=session.may_ask)


def _answer(session: Session, found: ScheduleView, said: str, hint: str = "") -> None:
    if session.as_json:
        session.answer(found)
    else:
        session.paper.line(said, (hint, "hint"))
