"""``perdure checkpoints`` and ``perdure diff``: what an agent did to its workspace, call by call."""

from __future__ import annotations

import re

import click

from perdure.cli import codes
from perdure.cli.decide import passphrase_option
from perdure.cli.pager import show_lines
from perdure.cli.paper import Row
from perdure.cli.plan_view import paint_diff
from perdure.cli.plans import read_job
from perdure.cli.session import Session, command
from perdure.cli.steer import send_word
from perdure.cli.words import clock, counted
from perdure.contracts.checkpoints import CheckpointView, Rewind
from perdure.errors import UserError

_SPAN = re.compile(r"(\d+)?(\.\.)?(\d+)?")


@command(
    "checkpoints",
    examples=[
        ("perdure checkpoints 3", "one line for each call that wrote"),
        ("perdure diff 3 4..5", "what the fifth one changed"),
    ],
)
@click.argument("job", default="@last")
def checkpoints(session: Session, job: str) -> None:
    """List the checkpoints of an agent's workspace: all its files, after each call that changed some."""
    with session.door() as door:
        view = read_job(door, job)
        found = door.get("/v1/checkpoints", list[CheckpointView], ref=view.job_id)
    if session.as_json:
        session.answer(found)
    elif not found:
        session.paper.line(f"{view.name} has no checkpoints: no agent of it has written anything.")
    else:
        session.paper.table([_row(one) for one in found], header=("N", "TURN", "CALL", "CHANGED", "WHEN"), shrink=3)


@command(
    "diff",
    examples=[
        ("perdure diff 3", "from the base to the last checkpoint"),
        ("perdure diff 3 5", "from the base to checkpoint 5"),
        ("perdure diff 3 4..5", "what the fifth one changed"),
    ],
)
@click.argument("job", default="@last")
@click.argument("span", required=False, metavar="[N..M]")
@click.option("--no-pager", is_flag=True, help="Write it all at once, also on a terminal.")
def diff(session: Session, job: str, span: str | None, no_pager: bool) -> None:
    """Show what an agent changed between two checkpoints of its workspace; 0 is what it began with.

    A plan's own diff is shown by `perdure review JOB --diff`.
    """
    old, new = _read_span(span or "")
    with session.door() as door:
        view = read_job(door, job)
        lines = door.stream_lines("/v1/checkpoints/diff", ref=view.job_id, old=old, new=new)
        show_lines(session.paper, paint_diff(session.paper, lines), pager=not no_pager)


@command(
    "rewind",
    examples=[
        ("perdure rewind 3 4", "shows what goes, asks, and takes the files back to checkpoint 4"),
        ("perdure rewind 3 0 --yes", "back to what it began with, without asking"),
    ],
)
@click.argument("job")
@click.argument("checkpoint", type=click.IntRange(min=0))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@passphrase_option
def rewind(session: Session, job: str, checkpoint: int, yes: bool, passphrase_stdin: bool) -> int:
    """Take the workspace of the agent at work on a job back to a checkpoint; the agent is told, and goes on from there.

    It happens before the agent's next turn, and only if nothing was written since you looked. What it did outside of
    the workspace stays done, and is named. Questions about its calls that wait for somebody are void.
    """
    with session.door() as door:
        view = read_job(door, job)
        found = door.get("/v1/checkpoints", list[CheckpointView], ref=view.job_id)
        last = found[-1].number if found else 0
        gone = [one for one in found if one.number > checkpoint]
        if not gone:
            raise UserError(f"{view.name} has nothing after checkpoint {checkpoint} (the last one is {last}).")
        if not yes:
            session.notes.table([_row(one) for one in gone], header=("N", "TURN", "CALL", "CHANGED", "WHEN"), shrink=3)
            lines = door.stream_lines("/v1/checkpoints/diff", ref=view.job_id, old=checkpoint, new=last)
            for line in paint_diff(session.notes, lines):
                session.notes.write(f"{line}\n")
    if not yes and not _may_go(session, checkpoint, len(gone)):
        session.notes.line("Nothing was taken back.")
        return codes.OK
    text = Rewind(to=checkpoint, seen=last).model_dump_json()
    return send_word(session, job, "rewind", text, passphrase_stdin)


def _may_go(session: Session, checkpoint: int, count: int) -> bool:
    if not session.may_ask:
        raise UserError("Nobody can be asked here. Look with `perdure diff`, then give --yes. Nothing was taken back.")
    question = f"Take {counted(count, 'checkpoint')} back, to {checkpoint}?"
    return click.confirm(question, default=False, err=True)


def _read_span(text: str) -> tuple[int, int]:
    """Read "4..5", "4..", "..5" or "5"; a missing start is the base, a missing end the last one."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise UserError(f"{text!r} names no checkpoints; expected N..M or N, as `perdure checkpoints` numbers them.")
    first, dots, last = match.groups()
    if not dots:
        return 0, int(first or 0)
    return int(first or 0), int(last or 0)


def _row(one: CheckpointView) -> Row:
    kept = f", {counted(one.left_out, 'path')} not kept" if one.left_out else ""
    return [str(one.number), str(one.turn), (one.tool, "title"), f"{counted(one.changed, 'path')}{kept}", clock(one.at)]
