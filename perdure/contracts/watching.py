"""What people see of an agent at work: its turns and calls as they were recorded, and text while it comes."""

from __future__ import annotations

from typing import Literal

from perdure.contracts.base import BlobRef, Contract, UtcTime
from perdure.contracts.messages import Message


class CallView(Contract):
    """One call of a turn; its output lies in the transcript, long output whole in a blob."""

    position: int
    tool: str
    target: str = ""
    status: str = ""
    """Empty: it has not ended; ``waits``: for a person."""
    summary: str = ""
    output: BlobRef | None = None
    """The whole output where the model saw a part of it; ``perdure artifacts`` fetches it."""
    digest: str = ""
    """The plan by which a person decided on it."""


class TurnView(Contract):
    """One answered turn."""

    agent: int
    """Which agent of its job, from 1."""
    turn: int
    at: UtcTime
    model: str
    text: str
    """What the model said, its beginning."""
    calls: list[CallView] = []
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_microdollars: int | None = None
    notes: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether all its calls have ended."""
        return all(call.status not in ("", "waits") for call in self.calls)


class LiveView(Contract):
    """One line of what goes on now."""

    kind: Literal["text", "again", "turn", "calm"]
    """``text``: a piece that has just come · ``again``: the turn's text begins anew · ``turn``: one has ended, and its
    calls · ``calm``: nothing new for a while, the connection stands."""
    agent: int = 0
    turn: int = 0
    text: str = ""
    view: TurnView | None = None


class TranscriptLine(Contract):
    """One message of a transcript, whole."""

    number: int
    message: Message
