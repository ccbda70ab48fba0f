"""What no summary may swallow: people's words, their decisions on calls, and questions that nobody has answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perdure.contracts.agent_run import CallRecord
from perdure.contracts.messages import Message

LONGEST_NOTE = 1000
"""Characters of one of the thread's notes; the tool for notes gives the whole."""


def find_records(messages: Sequence[Message], calls: Sequence[CallRecord]) -> tuple[str, ...]:
    """Return, oldest first and word for word, what people said, what is still asked, and what they decided on calls.

    ``messages`` are those that a summary will cover, ``calls`` the agent's calls in them.
    """
    said = [f"{message.person} said: {message.text}" for message in messages if message.source == "person"]
    return (*said, *_open_questions(messages), *filter(None, map(_decision, calls)))


def find_notes(notes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the thread's notes, one line each."""
    return tuple(f"Note {key!r}: {_cut(text)}" for key, text in notes.items())


def _open_questions(messages: Sequence[Message]) -> Iterator[str]:
    """Questions with no word of a person after them."""
    answered = max((place for place, message in enumerate(messages) if message.source == "person"), default=-1)
    for message in messages[answered + 1 :]:
        for result in message.results:
            if result.status == "asks":
                yield f"Asked and not answered yet: {result.text}"


def _decision(call: CallRecord) -> str:
    """What a person decided on one call; empty when nobody was asked."""
    about = f"{call.tool} on {call.target}" if call.target else call.tool
    if call.verdict is not None and call.verdict.rule == "person":
        return f"Denied by a person: {about}: {call.verdict.reason or 'no reason was given'}"
    if call.digest and call.status not in ("", "waits", "denied"):
        return f"Allowed by a person, once: {about} (ended: {call.status})"
    return ""


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_NOTE else text[:LONGEST_NOTE] + " […]"
