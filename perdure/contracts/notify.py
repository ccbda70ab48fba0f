"""Being told: which channels there are, what is told on them, and how each message fares."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perdure.contracts.base import Contract, UtcTime

About = Literal["waits", "reminder", "escalation", "break_glass", "decided", "ended", "trouble", "schedule", "notice"]
"""waits: a plan or an agent waits for people · reminder, escalation: as its rule says · break_glass: somebody let a
plan go alone · decided: a gate ended without approval · ended: a job did · trouble: an effect is unknown, or a job
failed · schedule: its jobs fail again and again, or go well again · notice: what a plan's notify.send says."""

MessageState = Literal["waiting", "sent", "dropped", "failed"]
"""waiting: to be sent, or again · dropped: nobody has to be told any more · failed: given up; it can be sent again."""

EVERYBODY = "*"
CHANNEL_NAME = r"[a-z0-9][a-z0-9-]{0,63}"


class Channel(Contract):
    """``[channels.NAME]`` of ``config.toml``. Its address, one of apprise's, is the secret of the same name."""

    to: list[str] = Field(default=[EVERYBODY], alias="for", min_length=1)
    """People and groups that read it; ``*``: it gets everything that anybody is told."""
    about: list[About] = ["waits", "reminder", "escalation", "break_glass", "decided", "ended", "trouble", "schedule"]
    """What is told there."""


class MessageView(Contract):
    """One message on one channel."""

    key: str
    """The same for every attempt at it, and for nothing else."""
    channel: str
    about: About
    position: int
    """The ledger's record that it tells of."""
    job_id: str = ""
    digest: str = ""
    """Of the plan that it is about; empty: of none."""
    state: MessageState
    attempts: int = 0
    error: str = ""
    """Why the last attempt did not arrive."""
    is_doubtful: bool = False
    """Somebody died while it was being sent: it may have been told twice."""
    due_at: UtcTime
    """When it is sent, or sent again."""
    sent_at: UtcTime | None = None


class ChannelView(Contract):
    """One channel as it stands in the settings."""

    name: str
    to: list[str]
    about: list[About]
    has_address: bool
    """Whether its secret is there."""


class ToldView(Contract):
    """Channels, and the newest messages on them."""

    channels: list[ChannelView]
    messages: list[MessageView]


class AgainRequest(Contract):
    """Send a message again."""

    key: str
