"""``perdure approvals``: calls of agents that go without being asked about, as far as somebody said."""

from __future__ import annotations

import click

from perdure.cli.catalog import APPROVALS
from perdure.cli.decide import comment_option, passphrase_option, read_passphrase
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.paper import Row, Span
from perdure.cli.plans import read_plan, with_passphrase
from perdure.cli.session import Session, command
from perdure.cli.words import clock, new_id
from perdure.contracts.http_standing import RevokeRequest, StandingRequest, StandingView
from perdure.contracts.values import parse_duration
from perdure.errors import UserError

_TONES = {"stands": "good", "ended": "dim", "used up": "dim", "revoked": "bad"}


@click.group(
    "approvals",
    cls=LazyGroup,
    sections=APPROVALS,
    context_settings=CONTEXT,
    examples=[
        ("perdure approvals add 7f3a91c2 --lasts 7d", "exactly that call need not ask again for a week"),
        ("perdure approvals add 7f3a91c2 --lasts 8h --target 'command:make *'", "nor any make of its thread today"),
        ("perdure approvals list", "what stands, and how often it was used"),
        ("perdure approvals revoke 4f0c", "from now on it asks again"),
    ],
)
def approvals() -> None:
    """Standing approvals: calls of agents that go by themselves, in one thread, with one tool, until a time.

    Each is a signed decision, and each use of it is recorded. A rule that denies still denies.
    """


@command(
    "add",
    examples=[
        ("perdure approvals add 7f3a91c2 --lasts 7d", "exactly this call, with these arguments"),
        ("perdure approvals add 7f3a91c2 --lasts 1d --target 'file:docs/**' --uses 20", "its tool on any of these"),
        ("perdure approvals add 7f3a91c2 --lasts 1h --argument 'command=make *'", "by what an argument says"),
    ],
)
@click.argument("digest")
@click.option("--lasts", required=True, metavar="DURATION", help="How long it stands: 90m, 8h, 7d.")
@click.option("--target", default="", metavar="PATTERN", help="What calls may touch; * stops at /, ** does not.")
@click.option("--argument", "arguments", multiple=True, metavar="NAME=PATTERN", help="What an argument may say.")
@click.option("--uses", type=click.IntRange(min=1), help="So many calls; left out: any number.")
@comment_option
@passphrase_option
def add_approval(
    session: Session,
    digest: str,
    lasts: str,
    target: str,
    arguments: tuple[str, ...],
    uses: int | None,
    comment: str,
    passphrase_stdin: bool,
) -> None:
    """Let calls like the one of plan DIGEST go from now on; one that waits goes at once.

    It is for the same tool, as it is now, in the same thread and for the same text of its template. Without --target
    and --argument it is for exactly that call's arguments.
    """
    try:
        seconds = int(parse_duration(lasts).total_seconds())
    except ValueError as error:
        raise UserError(f"--lasts: {error}.") from error
    patterns = dict(_pair(text) for text in arguments)
    with session.door() as door:
        plan, decision_id = read_plan(door, digest).digest, new_id()

        def send(passphrase: str) -> StandingView:
            request = StandingRequest(
                decision_id=decision_id,
                digest=plan,
                target=target,
                arguments=patterns,
                lasts_seconds=seconds,
                uses=uses or 0,
                comment=comment,
                passphrase=passphrase,
            )
            return door.post("/v1/approvals", request, StandingView)

        given = read_passphrase() if passphrase_stdin else ""
        made = with_passphrase(send, passphrase=given, may_ask=session.may_ask)
    _answer(session, made, f"Stands until {clock(made.until)}: {made.tool} on {_scope(made)} in {made.thread}.")


@command("list", examples=[("perdure approvals list --thread release-orders", "those of one thread")])
@click.option("--thread", default=None, help="Only this thread's.")
def list_approvals(session: Session, thread: str | None) -> None:
    """List standing approvals, newest first, with those that stand no more."""
    with session.door() as door:
        found = door.get("/v1/approvals", list[StandingView], thread=thread)
    if session.as_json:
        session.answer(found)
    elif not found:
        session.paper.line(("Nothing stands approved. See `perdure approvals add --help`.", "dim"))
    else:
        header = ("ID", "", "THREAD", "TOOL", "ON", "UNTIL", "USED", "BY")
        session.paper.table([_row(one) for one in found], header=header, shrink=4)


@command(
    "revoke", examples=[("perdure approvals revoke 4f0c -m 'the freeze begins'", "a beginning of its id is enough")]
)
@click.argument("approval", metavar="ID")
@comment_option
@passphrase_option
def revoke_approval(session: Session, approval: str, comment: str, passphrase_stdin: bool) -> None:
    """Take a standing approval back: such calls ask again. What went by it stays in the evidence."""
    with session.door() as door:
        decision_id = new_id()

        def send(passphrase: str) -> StandingView:
            request = RevokeRequest(decision_id=decision_id, comment=comment, passphrase=passphrase)
            return door.post(f"/v1/approvals/{approval}/revoke", request, StandingView)

        given = read_passphrase() if passphrase_stdin else ""
        gone = with_passphrase(send, passphrase=given, may_ask=session.may_ask)
    _answer(session, gone, f"Revoked: {gone.tool} on {_scope(gone)} asks again. It was used {gone.used} times.")


def _answer(session: Session, view: StandingView, text: str) -> None:
    if session.as_json:
        session.answer(view)
    else:
        session.paper.line(("✓ ", "good"), (view.id[:8], "digest"), f"  {text}")


def _row(view: StandingView) -> Row:
    state: Span = (view.state, _TONES[view.state])
    used = f"{view.used} of {view.uses}" if view.uses else str(view.used)
    return [(view.id[:8], "digest"), state, view.thread, view.tool, _scope(view), clock(view.until), used, view.by]


def _scope(view: StandingView) -> str:
    if view.exactly:
        return f"exactly: {view.exactly}"
    patterns = [view.target, *(f"{name}={pattern}" for name, pattern in view.arguments.items())]
    return ", ".join(patterns)


def _pair(text: str) -> tuple[str, str]:
    name, equals, pattern = text.partition("=")
    if not equals or not name.strip() or not pattern:
        raise UserError(f"--argument {text!r} is not of the form NAME=PATTERN.")
    return name.strip(), pattern
