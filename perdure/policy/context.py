"""What goes into a request to a model: pinned messages always, the rest as far as the window holds it.

Deterministic, and stable from turn to turn: what was once shortened or left out stays so, in large steps, so that a
provider's cache of the beginning stays useful. Nothing stored is changed: a shortened message is a copy with an id of
its own.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from perdure.contracts.agent import Assembled, ContextInput
from perdure.contracts.messages import Message, ResultPart, TextPart, estimate_tokens
from perdure.errors import StageFailed

KEPT_WHOLE = 4
"""The newest rounds, whose results are shortened last."""
HEAD_CHARACTERS = 400
TAIL_CHARACTERS = 200
SHORTENED = "~short"
"""Ends the id of a shortened copy."""
_NOTE_TOKENS = 40
"""Kept for the note that says what was left out."""

_COPIES: dict[str, tuple[weakref.ref[Message] | None, Message | None]] = {}
"""By id: the message that was shortened, and its copy; ``None`` where it is short."""
_MOST_COPIES = 20_000
"""So many copies of some 600 characters are kept; measured: 500 turns took 37 ms a turn without them."""

_EIGHTHS = (6, 32)
"""Least and most of a provider's count over our estimate, in eighths."""


@dataclass
class _Round:
    """Messages that stay or go together: an answer of the model and the results of its calls, or one other message."""

    messages: list[Message]
    whole: int = 0
    short: int = 0
    """Tokens when all is whole, and when its results are shortened."""
    is_person: bool = False
    is_short: bool = False
    is_out: bool = False

    @property
    def tokens(self) -> int:
        return 0 if self.is_out else self.short if self.is_short else self.whole


@dataclass
class _Window:
    """Rounds laid down one after the other within a limit, as the turns did it."""

    limit: int
    rounds: list[_Round] = field(default_factory=list)
    tokens: int = 0

    @property
    def low(self) -> int:
        """Where shrinking stops: two thirds, so that it need not be done again soon."""
        return self.limit * 2 // 3

    def lay(self, one: _Round) -> None:
        """Add the newest round; when it does not fit, shorten results oldest first, then leave rounds out."""
        self.rounds.append(one)
        self.tokens += one.tokens
        if self.tokens <= self.limit:
            return
        self._shrink(self.rounds[:-KEPT_WHOLE], "is_short")
        if self.tokens > self.limit:
            self._shrink(self.rounds[-KEPT_WHOLE:], "is_short")
        if self.tokens > self.limit:
            self._shrink([old for old in self.rounds[:-1] if not old.is_person], "is_out")
        if self.tokens > self.limit:
            self._shrink(self.rounds[:-1], "is_out")

    def _shrink(self, rounds: Sequence[_Round], how: str) -> None:
        for one in rounds:
            if self.tokens <= self.low:
                return
            self.tokens -= one.tokens
            setattr(one, how, True)
            self.tokens += one.tokens


def assemble(given: ContextInput) -> Assembled:
    """Return what goes into a request, and whether a summary should be made beside the loop.

    Always there: charter (with prohibitions, decisions and open questions), goal, summary, and the newest round. Every
    call keeps its result: rounds stay or go as a whole. Results are shortened first, to a head, a tail and how to read
    the rest; then rounds are left out, people's messages last.

    Raises:
        StageFailed: what must be there does not fit the window.
    """
    scale = _scale(given)
    room = given.window_tokens - given.reserved_tokens
    pinned = [*given.charter, given.goal, *([given.summary] if given.summary else [])]
    taken = sum(_tokens(message, scale) for message in pinned)
    window = _Window(room - taken - _NOTE_TOKENS)
    for one in _rounds(given.messages[given.summarized :], scale):
        window.lay(one)
    if window.tokens > window.limit or window.limit <= 0:
        raise StageFailed(_too_small(given, taken, window))
    left_out = sum(len(one.messages) for one in window.rounds if one.is_out)
    least = sum(one.short for one in window.rounds[:-KEPT_WHOLE]) + sum(o.whole for o in window.rounds[-KEPT_WHOLE:])
    recent = [message for one in window.rounds if not one.is_out for message in _shown(one)]
    return Assembled(
        messages=(*pinned, *([_note_left_out(left_out)] if left_out else []), *recent),
        tokens=taken + window.tokens,
        shortened=sum(message.id.endswith(SHORTENED) for message in recent),
        left_out=left_out,
        wants_summary=bool(left_out) or taken + least > room * 2 // 3,
    )


def summary_end(given: ContextInput) -> int:
    """Return how many of ``messages`` the next summary should cover: all but about the newest third of the window.

    Never fewer than the last one covered, and always up to the beginning of a round.
    """
    scale = _scale(given)
    keep = (given.window_tokens - given.reserved_tokens) // 3
    end = len(given.messages)
    for one in reversed(list(_rounds(given.messages[given.summarized :], scale))):
        keep -= one.short
        if keep < 0 and end < len(given.messages):
            break
        end -= len(one.messages)
    return max(end, given.summarized)


def shorten(message: Message) -> Message:
    """Return a copy whose long results are a head, a tail and a reference; the message itself when none is long.

    Made once for a message that is kept warm: every turn asks again.
    """
    known, copy = _COPIES.get(message.id, (None, None))
    if known is not None and known() is message:
        return copy or message
    if len(_COPIES) >= _MOST_COPIES:
        _COPIES.clear()
    copy = _shorten(message)
    _COPIES[message.id] = (weakref.ref(message), None if copy is message else copy)
    return copy


def _shorten(message: Message) -> Message:
    parts = tuple(_short_result(part) if isinstance(part, ResultPart) else part for part in message.parts)
    if parts == message.parts:
        return message
    return message.model_copy(update={"id": message.id + SHORTENED, "parts": parts, "tokens": estimate_tokens(parts)})


def _short_result(part: ResultPart) -> ResultPart:
    text = part.text
    if len(text) <= 2 * (HEAD_CHARACTERS + TAIL_CHARACTERS):
        return part
    cut = len(text) - HEAD_CHARACTERS - TAIL_CHARACTERS
    how = f"read it with output.read, output={part.blob.sha256}/{part.blob.size_bytes}" if part.blob else "call again"
    middle = f"\n[… {cut} characters were shortened to save room; {how} if they are needed …]\n"
    return part.model_copy(update={"text": text[:HEAD_CHARACTERS] + middle + text[-TAIL_CHARACTERS:]})


def _shown(one: _Round) -> list[Message]:
    return [shorten(message) for message in one.messages] if one.is_short else one.messages


def _rounds(messages: Sequence[Message], scale: int) -> Iterator[_Round]:
    current: list[Message] = []
    for message in messages:
        if current and message.role != "tool":
            yield _measure(current, scale)
            current = []
        current.append(message)
    if current:
        yield _measure(current, scale)


def _measure(messages: list[Message], scale: int) -> _Round:
    whole = sum(_tokens(message, scale) for message in messages)
    short = sum(_short_tokens(message, scale) for message in messages)
    return _Round(messages, whole, short, is_person=messages[0].source == "person")


def _tokens(message: Message, scale: int) -> int:
    return -(-(message.tokens or estimate_tokens(message.parts)) * scale // 8)


def _short_tokens(message: Message, scale: int) -> int:
    """A shortened copy is made only to be measured where it could be smaller."""
    return _tokens(shorten(message), scale) if message.role == "tool" else _tokens(message, scale)


def _scale(given: ContextInput) -> int:
    """The provider's count over our estimate, in eighths and rounded up: steps, so that it seldom moves."""
    if not given.counted_messages:
        return 8
    counted = given.messages[given.summarized : given.counted_messages]
    estimated = sum(_tokens(message, 8) for message in (*given.charter, given.goal, *counted))
    low, high = _EIGHTHS
    return max(low, min(high, -(-given.counted_tokens * 8 // max(1, estimated))))


def _note_left_out(count: int) -> Message:
    text = f"[{count} earlier messages are left out here: there is no room for them. The record keeps them whole.]"
    parts = (TextPart(text=text),)
    return Message(id=f"left-out~{count}", role="user", source="perdure", parts=parts, tokens=estimate_tokens(parts))


def _too_small(given: ContextInput, taken: int, window: _Window) -> str:
    return (
        f"The model's window of {given.window_tokens} tokens is too small: charter, goal and summary need {taken}, the "
        f"newest round {window.tokens}, and {given.reserved_tokens} are kept for the answer. "
        "Choose a model with a larger window, or make charter and goal shorter."
    )
