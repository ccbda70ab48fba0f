"""``approve``, ``reject``, ``request-changes``, ``withdraw``: decisions on exactly one digest."""

from __future__ import annotations

import sys

import click

from perdure.cli import codes
from perdure.cli.attend import Attendant
from perdure.cli.door import Door
from perdure.cli.follow import last_position
from perdure.cli.plan_view import SHORT
from perdure.cli.plans import Kind, decide, read_plan
from perdure.cli.session import Session, command
from perdure.cli.starting import Option, door_to_jobs, no_start_option
from perdure.contracts.base import JsonDict
from perdure.contracts.http import DecideAnswer, Review

comment_option: Option = click.option("-m", "--message", "comment", default="", help="Why; signed with the decision.")
passphrase_option: Option = click.option(
    "--passphrase-stdin", is_flag=True, help="Read the decision key's passphrase from stdin's first line."
)
detach_option: Option = click.option("-d", "--detach", is_flag=True, help="Do not follow what happens then.")


@command(
    "approve",
    unread=codes.WAITING,
    examples=[
        ("perdure approve 7f3a91c2", "let this plan happen, and watch it"),
        ("perdure approve 7f3a91c2 -m 'checked on staging'", "with a signed comment"),
        ("perdure approve 7f3a91c2 --detach", "and do not watch it"),
    ],
)
@click.argument("digest")
@comment_option
@passphrase_option
@detach_option
@no_start_option
def approve(session: Session, digest: str, comment: str, passphrase_stdin: bool, detach: bool, no_start: bool) -> int:
    """Approve the plan whose digest begins with DIGEST (8 digits or more), and nothing else.

    Were the plan drafted again meanwhile, it has another digest and your approval does not reach it.
    """
    with door_to_jobs(session, no_start=no_start) as door:
        return send(session, door, read_plan(door, digest), "approve", comment, passphrase_stdin, detach=detach)


@command(
    "reject",
    unread=codes.WAITING,
    examples=[("perdure reject 7f3a91c2 -m 'not before the freeze ends'", "the job ends here")],
)
@click.argument("digest")
@comment_option
@passphrase_option
@detach_option
@no_start_option
def reject(session: Session, digest: str, comment: str, passphrase_stdin: bool, detach: bool, no_start: bool) -> int:
    """Reject the plan whose digest begins with DIGEST. The job ends; nothing of the plan happens."""
    with door_to_jobs(session, no_start=no_start) as door:
        code = send(session, door, read_plan(door, digest), "reject", comment, passphrase_stdin, detach=detach)
    # Rejecting is what was asked for: the command did its work.
    return codes.OK if code == codes.REFUSED else code


@command(
    "request-changes",
    unread=codes.WAITING,
    examples=[("perdure request-changes 7f3a91c2 -m 'mention the new flag'", "drafted again with your words")],
)
@click.argument("digest")
@click.option("-m", "--message", "comment", required=True, help="What should be different.")
@passphrase_option
@detach_option
@no_start_option
def request_changes(
    session: Session, digest: str, comment: str, passphrase_stdin: bool, detach: bool, no_start: bool
) -> int:
    """Send the plan back to draft with a comment. It returns as a new plan, shown with the difference.

    `perdure edit JOB` changes a version or an entry yourself.
    """
    with door_to_jobs(session, no_start=no_start) as door:
        return send(session, door, read_plan(door, digest), "request_changes", comment, passphrase_stdin, detach=detach)


@command("withdraw", unread=codes.WAITING, examples=[("perdure withdraw 7f3a91c2", "your approval no longer counts")])
@click.argument("digest")
@comment_option
@passphrase_option
@no_start_option
def withdraw(session: Session, digest: str, comment: str, passphrase_stdin: bool, no_start: bool) -> int:
    """Take your approval of a plan back, as long as its first effect has not begun.

    Once it has, `perdure cancel JOB` stops the job and takes back what was done.
    """
    with door_to_jobs(session, no_start=no_start) as door:
        return send(session, door, read_plan(door, digest), "withdraw", comment, passphrase_stdin, detach=True)


@command(
    "break-glass",
    unread=codes.WAITING,
    examples=[("perdure break-glass 7f3a91c2 -m 'site down, dba asleep'", "loud, and in every account of the job")],
)
@click.argument("digest")
@click.option("-m", "--message", "comment", required=True, help="Why it could not wait; everybody reads it.")
@passphrase_option
@detach_option
@no_start_option
def break_glass(
    session: Session, digest: str, comment: str, passphrase_stdin: bool, detach: bool, no_start: bool
) -> int:
    """Let a plan happen alone, in an emergency, although others should decide.

    Only for a plan whose rule lets your group (`break_glass`), with a right of its own, and with a reason. Somebody's
    rejection stands over it.
    """
    with door_to_jobs(session, no_start=no_start) as door:
        return send(session, door, read_plan(door, digest), "break_glass", comment, passphrase_stdin, detach=detach)


def send(
    session: Session,
    door: Door,
    review: Review,
    kind: Kind,
    comment: str,
    passphrase_stdin: bool,
    *,
    detach: bool,
) -> int:
    """Send a decision, say what it amounts to, and follow what comes of it unless ``detach``."""
    seen = last_position(door, review.job.job_id)
    passphrase = read_passphrase() if passphrase_stdin else ""
    answer = deliver(session, door, review, kind, comment, passphrase)
    return follow_up(session, door, review, kind, answer, after=seen, detach=detach)


def deliver(
    session: Session,
    door: Door,
    review: Review,
    kind: Kind,
    comment: str,
    passphrase: str,
    *,
    changes: JsonDict | None = None,
) -> DecideAnswer:
    """Send a decision on a plan; return what it amounts to."""
    return decide(
        door,
        review.digest,
        kind,
        comment=comment,
        changes=changes,
        since=review.since_digest,
        passphrase=passphrase,
        may_ask=session.may_ask,
    )


def follow_up(
    session: Session, door: Door, review: Review, kind: Kind, answer: DecideAnswer, *, after: int, detach: bool
) -> int:
    """Say what a decision amounts to, and follow what comes of it from a position on, unless ``detach``."""
    _say(session, review, kind, answer)
    pending = answer.weighing.outcome in {"pending", "withdrawn"}
    if detach or pending:
        if session.as_json:
            session.answer(answer.job)
        return codes.WAITING if pending and kind != "withdraw" else codes.OK
    attendant = Attendant(session, door, answer.job)
    attendant.own.add(answer.decision_id)
    return attendant.attend(after=after, decided=review.digest)


def read_passphrase() -> str:
    """Return the first line of standard input, without its end."""
    return sys.stdin.readline().rstrip("\r\n")


def _say(session: Session, review: Review, kind: Kind, answer: DecideAnswer) -> None:
    done = {
        "approve": "Approved",
        "reject": "Rejected",
        "request_changes": "Sent back to draft",
        "withdraw": "Withdrawn",
        "break_glass": "GLASS BROKEN:",
    }[kind]
    weighing = answer.weighing
    paper = session.progress
    own = " (self-approved)" if weighing.self_approved and kind == "approve" else ""
    paper.line(f"{done} ", (review.digest[:SHORT], "digest"), f"   {review.title}{own}")
    for ignored in weighing.ignored:
        if ignored.decision_id == answer.decision_id:
            paper.line(("  It does not count: ", "warn"), ignored.why)
    if weighing.outcome == "pending" and weighing.missing:
        paper.line("  Still needed: ", (", ".join(weighing.missing), "warn"))
