"""What an agent's transcript is made of. A message is stored once and never changed; all else refers to it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from perdure.contracts.base import BlobRef, Contract, JsonDict

Role = Literal["system", "user", "assistant", "tool"]

Source = Literal["charter", "goal", "person", "perdure", "model", "tool", "summary"]
"""Who says it. ``person`` only for a signed message in the ledger; ``perdure`` for what the loop itself tells."""

OutcomeStatus = Literal["ok", "error", "denied", "running", "unknown", "asks"]
"""How a tool call ended. ``running``: it outlasted its grace and goes on · ``unknown``: whether it happened cannot be
told, it is not run again · ``asks``: it is a question to a person; the answer follows as another message."""


class TextPart(Contract):
    """Text for, or from, the model."""

    kind: Literal["text"] = "text"
    text: str


class CallPart(Contract):
    """The model wants a tool to run."""

    kind: Literal["call"] = "call"
    id: str
    """The provider's id of the call; made up by the adapter, unique in its message, where the provider gave none."""
    name: str
    arguments: JsonDict = {}
    raw: str = ""
    """The arguments as the model wrote them, only where they could not be read."""
    fault: str = ""
    """Why ``raw`` could not be read; such a call is answered with this and never runs."""


class ResultPart(Contract):
    """What a tool answered."""

    kind: Literal["result"] = "result"
    call_id: str
    name: str
    """Of the tool."""
    status: OutcomeStatus = "ok"
    text: str
    """What the model sees: at most the tool's output limit; head, tail and how to read the middle where it is cut."""
    blob: BlobRef | None = None
    """The whole output where ``text`` is cut."""


Part = Annotated[TextPart | CallPart | ResultPart, Field(discriminator="kind")]


class Message(Contract):
    """One message. Parts of one role only: calls from the assistant, results from a tool."""

    id: str
    """Names exactly this content: whoever converts it may keep what it made by this id, and for the life of a process.

    A shortened copy, made for a request and never stored, has an id of its own (``<id>~<how>``).
    """
    role: Role
    source: Source
    parts: tuple[Part, ...]
    person: str = ""
    """With source ``person``: the principal's name."""
    tokens: int = 0
    """Estimated size for a model (4 bytes of text a token); what a provider counted goes before it."""

    @property
    def text(self) -> str:
        """All its text parts, in order."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> tuple[CallPart, ...]:
        """The calls it asks for, in order."""
        return tuple(part for part in self.parts if isinstance(part, CallPart))

    @property
    def results(self) -> tuple[ResultPart, ...]:
        """The results it carries, in order."""
        return tuple(part for part in self.parts if isinstance(part, ResultPart))


def estimate_tokens(parts: tuple[Part, ...]) -> int:
    """Return about how many tokens parts take: 4 bytes of UTF-8 each, 8 for what stands around a part."""
    total = 0
    for part in parts:
        text = part.name + str(part.arguments) + part.raw if isinstance(part, CallPart) else part.text
        total += 8 + len(text.encode("utf-8", "replace")) // 4
    return total
