"""``perdure messages``: what people were told, where, and what did not arrive."""

from __future__ import annotations

import click

from perdure.cli.catalog import MESSAGES
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.paper import Row, Span
from perdure.cli.session import Session, command
from perdure.cli.words import ago, clock
from perdure.contracts.job import Done
from perdure.contracts.notify import AgainRequest, ChannelView, MessageView, ToldView

_MARKS: dict[str, Span] = {
    "waiting": ("◆", "warn"),
    "sent": ("✓", "good"),
    "dropped": ("–", "dim"),
    "failed": ("✗", "bad"),
}


@click.group(
    "messages",
    cls=LazyGroup,
    sections=MESSAGES,
    default="list",
    context_settings=CONTEXT,
    examples=[
        ("perdure messages", "channels, and what was told on them"),
        ("perdure messages list --failing", "what did not arrive, and why"),
        ("perdure messages test team-chat", "send a word there now"),
    ],
)
def messages() -> None:
    """What people are told: a plan waits for them, a reminder is due, a job ended or needs a look.

    Channels stand in config.toml, their addresses in secrets. A message names a request; nothing is decided by it.
    """


@command("list", examples=[("perdure messages list --failing", "what did not arrive, and why")])
@click.argument("job", required=False)
@click.option("--failing", is_flag=True, help="Only messages that did not arrive so far.")
def list_messages(session: Session, job: str | None, failing: bool) -> None:
    """List channels and the newest messages, of one JOB or of all."""
    with session.door() as door:
        found = door.get("/v1/messages", ToldView, ref=job, failing=failing)
    if session.as_json:
        session.answer(found)
        return
    if not found.channels:
        session.paper.line(("No channels: nobody is told anything. See docs/how-to/be-told.md.", "dim"))
    session.paper.table([_channel(one) for one in found.channels], header=("CHANNEL", "FOR", "ABOUT", ""), shrink=2)
    rows = [_message(one) for one in found.messages]
    session.paper.table(rows, header=("", "MESSAGE", "JOB", "WHEN", ""), shrink=4)


@command("again", examples=[("perdure messages again 812.waits.0/team-chat", "send it now")])
@click.argument("key")
def send_again(session: Session, key: str) -> None:
    """Send the message KEY now: it was given up, or waits for its next attempt."""
    with session.door() as door:
        found = door.post("/v1/messages/again", AgainRequest(key=key), MessageView)
    if session.as_json:
        session.answer(found)
    elif found.state == "waiting":
        session.paper.line(f"{key} is sent now. `perdure messages` says how it went.")
    else:
        session.paper.line(f"{key} is {found.state}: it is not sent again.")


@command("test", examples=[("perdure messages test team-chat", "send a word there now")])
@click.argument("channel")
def try_channel(session: Session, channel: str) -> None:
    """Send a word to CHANNEL, and say whether it took it."""
    with session.door() as door:
        done = door.post(f"/v1/channels/{channel}/test", {}, Done)
    if session.as_json:
        session.answer(done)
    else:
        session.paper.line(("✓ ", "good"), f"{channel} took it.")


def _channel(one: ChannelView) -> Row:
    missing: Span = ("", "dim") if one.has_address else (f"no address: secrets/{one.name} is missing", "bad")
    return [one.name, ", ".join(one.to), ", ".join(one.about), missing]


def _message(one: MessageView) -> Row:
    doubt = "may have been told twice. " if one.is_doubtful else ""
    when = ago(one.sent_at) if one.sent_at else f"due {clock(one.due_at)}" if one.state == "waiting" else ""
    return [_MARKS[one.state], one.key, one.job_id.removeprefix("job/"), when, (doubt + one.error, "dim")]
