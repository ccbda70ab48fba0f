"""Long results made short for a request: a head, a tail, and how to read the rest. What is stored stays whole."""

from __future__ import annotations

import weakref

from perdure.contracts.messages import Message, ResultPart, estimate_tokens

HEAD_CHARACTERS = 400
TAIL_CHARACTERS = 200
SHORTENED = "~short"
"""Ends the id of a shortened copy."""

_COPIES: dict[str, tuple[weakref.ref[Message] | None, Message | None]] = {}
"""By id: the message that was shortened, and its copy; ``None`` where it is short."""
_MOST_COPIES = 20_000
"""So many copies of some 600 characters are kept; measured: 500 turns took 37 ms a turn without them."""


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
