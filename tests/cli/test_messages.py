"""`perdure messages`: channels, and how each message fares."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from perdure.contracts.job import Done
from perdure.contracts.notify import ChannelView, MessageView, ToldView
from tests.cli.conftest import Ended
from tests.cli.world import World

Call = Callable[..., Ended]
AT = datetime(2026, 11, 30, 10, 12, tzinfo=UTC)
SENT = MessageView(
    key="7.waits.0/team",
    channel="team",
    about="waits",
    position=7,
    job_id="job/t/1",
    state="sent",
    due_at=AT,
    sent_at=AT,
)
FAILED = SENT.model_copy(
    update={"key": "9.ended.0/mail", "state": "failed", "error": "refused", "is_doubtful": True, "sent_at": None}
)
TOLD = ToldView(
    channels=[
        ChannelView(name="team", to=["maintainers"], about=["waits"], has_address=True),
        ChannelView(name="mail", to=["*"], about=["ended"], has_address=False),
    ],
    messages=[SENT, FAILED],
)


def test_channels_and_messages_are_listed(call: Call, world: World) -> None:
    """One that lacks its address says so; one that failed says why; a doubt is told."""
    world.routes["GET /v1/messages"] = lambda query, body: TOLD
    out = call("messages").out
    for text in (
        "team",
        "maintainers",
        "secrets/mail is missing",
        "7.waits.0/team",
        "may have been told twice",
        "refused",
    ):
        assert text in out
    assert call("messages", "list", "--json").json["messages"][1]["state"] == "failed"
    world.routes["GET /v1/messages"] = lambda query, body: ToldView(channels=[], messages=[])
    assert "nobody is told anything" in call("messages").out


def test_message_is_sent_again_and_a_channel_is_tried(call: Call, world: World) -> None:
    """What was sent is not sent twice, and that is said."""
    world.routes["POST /v1/messages/again"] = lambda query, body: FAILED.model_copy(update={"state": "waiting"})
    assert "is sent now" in call("messages", "again", FAILED.key).out
    world.routes["POST /v1/messages/again"] = lambda query, body: SENT
    assert "is sent: it is not sent again" in call("messages", "again", SENT.key).out
    world.routes["POST /v1/channels/team/test"] = lambda query, body: Done()
    assert "team took it" in call("messages", "test", "team").out
