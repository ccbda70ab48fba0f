"""What goes into a request to a model: pinned messages always, the rest as far as the window holds it.

Deterministic, and stable from turn to turn: what was once shortened or left out stays so, in large steps, so that a
provider's cache of the beginning stays useful. Nothing stored is changed: a shortened message is a copy with an id of
its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from perdure.contracts.agent import Assembled, ContextInput
from perdure.contracts.messages import Message, TextPart, estimate_tokens
from perdure.errors import StageFailed
from perdure.policy.shorten import SHORTENED, shorten
from perdure.policy.window import WHOLE, Window, measure, rounds_of

__all__ = ["SHORTENED", "Laid", "assemble", "find_summary_end", "next_scale", "shorten", "summary_end"]

_NOTE_TOKENS = 40
"""Kept for the note that says what was left out."""

_SCALES = (6, 32)
"""Least and most of a provider's count over our estimate, in eighths."""
_STEP = 2
"""So many eighths less must be counted before a scale goes down: one that wavers would move the window each turn."""


@dataclass
class Laid:
    """What one agent's last request was assembled from: handed in again, only what is new is laid down."""

    key: tuple[object, ...] = ()
    window: Window | None = None
    count: int = 0
    """How many messages lie in the window."""
    last: str = ""
    """Id of the last of them."""

    def take(self, key: tuple[object, ...], messages: tuple[Message, ...], limit: int, scale: int) -> Window:
        """Return the window with all messages laid down."""
        if not self._continues(key, messages):
            self.key, self.window, self.count = key, Window(limit, scale), 0
        assert self.window is not None  # made just now, or found
        self.window.lay(messages[self.count :])
        self.count, self.last = len(messages), messages[-1].id if messages else ""
        return self.window

    def _continues(self, key: tuple[object, ...], messages: tuple[Message, ...]) -> bool:
        if self.window is None or key != self.key or not 0 < self.count <= len(messages):
            return False
        if messages[self.count - 1].id != self.last:
            return False
        return self.count == len(messages) or messages[self.count].role != "tool"  # else a round has grown


def assemble(given: ContextInput, laid: Laid | None = None) -> Assembled:
    """Return what goes into a request, and whether a summary should be made beside the loop.

    Always there: charter (with prohibitions), goal, records of what people said and decided, summary, and the newest
    round. Every call keeps its result: rounds stay or go as a whole. Results are shortened first, to a head, a tail and
    how to read the rest; then rounds are left out, people's messages last.

    Raises:
        StageFailed: what must be there does not fit the window.
    """
    scale, room = given.scale, given.window_tokens - given.reserved_tokens
    pinned = _pinned(given)
    taken = sum(measure(message, scale) for message in pinned)
    limit = room - taken - _NOTE_TOKENS
    key = (scale, limit, given.summarized)
    window = (laid or Laid()).take(key, given.messages[given.summarized :], limit, scale)
    if window.tokens > limit or limit <= 0:
        raise StageFailed(_too_small(given, taken, window))
    note = [_note_left_out(window.left_out)] if window.left_out else []
    return Assembled(
        messages=(*pinned, *note, *window.shown),
        tokens=taken + window.tokens,
        estimate=(taken + window.tokens) * WHOLE // scale,
        shortened=sum(message.id.endswith(SHORTENED) for message in window.shown),
        left_out=window.left_out,
        wants_summary=bool(window.left_out) or taken + window.least > room * 2 // 3,
    )


def next_scale(before: int, estimate: int, counted: int | None) -> int:
    """Return the scale for the next request: what the provider counted for one that we estimated, in eighths.

    Rounded up, so that too much is kept free rather than too little; it goes up at once, and down only by a step.
    """
    if not counted or estimate <= 0:
        return before
    low, high = _SCALES
    found = max(low, min(high, -(-counted * WHOLE // estimate)))
    return found if found > before or found <= before - _STEP else before


def summary_end(given: ContextInput) -> int:
    """Return how many of ``messages`` the next summary should cover: all but about the newest third of the window.

    Never fewer than the last one covered, and always up to the beginning of a round.
    """
    keep = (given.window_tokens - given.reserved_tokens) // 3
    end = len(given.messages)
    for one in reversed(list(rounds_of(given.messages[given.summarized :], given.scale))):
        keep -= one.short
        if keep < 0 and end < len(given.messages):
            break
        end -= len(one.messages)
    return max(end, given.summarized)


def find_summary_end(given: ContextInput) -> int:
    """Return what :func:`summary_end` does; 0: less than an eighth of the window, not worth a model call."""
    end = summary_end(given)
    covered = rounds_of(given.messages[given.summarized : end], given.scale)
    return end if sum(one.short for one in covered) * 8 >= given.window_tokens - given.reserved_tokens else 0


def _pinned(given: ContextInput) -> list[Message]:
    return [*given.charter, given.goal, *given.records, *([given.summary] if given.summary else [])]


def _note_left_out(count: int) -> Message:
    text = f"[{count} earlier messages are left out here: there is no room for them. The record keeps them whole.]"
    parts = (TextPart(text=text),)
    return Message(id=f"left-out~{count}", role="user", source="perdure", parts=parts, tokens=estimate_tokens(parts))


def _too_small(given: ContextInput, taken: int, window: Window) -> str:
    return (
        f"The model's window of {given.window_tokens} tokens is too small: charter, goal, what people said and the "
        f"summary need {taken}, the newest round {window.tokens}, and {given.reserved_tokens} are kept for the answer. "
        "Choose a model with a larger window, or make charter and goal shorter."
    )
