"""What is put before a model with its next turn, beside what it said and what its tools answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from activities.agent_desk import AgentDesk, Steering, now
from perdure.contracts.agent import LoopFinding
from perdure.contracts.agent_run import CallRecord, TurnInput
from perdure.contracts.decisions import MESSAGES, Decision
from perdure.contracts.messages import Message, TextPart
from perdure.policy.loops import find_loop, next_step
from perdure.store.agent_rows import AgentLook
from perdure.store.transcripts import Line, make_message


@dataclass(frozen=True)
class Written:
    """What was put into the transcript for a turn."""

    number: int
    """Of the answer that follows."""
    delivered: tuple[str, ...] = ()
    """Ids of people's messages among it."""


Rewinding = Callable[[Decision], str]
"""Takes the workspace back as a decision says; returns what the agent is told."""


def write_news(desk: AgentDesk, question: TurnInput, look: AgentLook, steering: Steering, rewind: Rewinding) -> Written:
    """Put what is new since the last answer into the transcript; take the workspace back, where a person said so.

    Written before the model is asked: an attempt that follows finds it there, under the same numbers.

    Raises:
        Conflict: an answer to this turn was written just now.
    """
    number = max(question.number, look.length)
    news = [*_given(question, look, steering), *_warning(question, look)]
    words = [word for word in steering.words if word.kind in MESSAGES and word.id in look.undelivered]
    for word in words:
        text = f"The goal was changed: {word.comment}" if word.kind == "amend" else word.comment
        text = rewind(word) if word.kind == "rewind" else text
        news.append((f"say/{word.id}", _message(question, f"say/{word.id}", text, word.by)))
    news += [_late(desk, question, call) for call in look.late]
    lines = [Line(number + place, key, message) for place, (key, message) in enumerate(news)]
    ids = tuple(word.id for word in words)
    if lines:
        late = [call.key for call in look.late]
        desk.agents.deliver(question.agent_id, question.turn, lines, ids, late=late, at=now())
    return Written(number + len(lines), ids)


def circle(question: TurnInput, look: AgentLook) -> tuple[LoopFinding | None, str]:
    """Whether it goes round in circles, and who is to be told: ``go_on``, ``tell_model`` or ``tell_person``."""
    finding = find_loop(look.traces)
    if finding is None:
        return None, "go_on"
    cleared = max((number for number, key in look.keys if key.startswith("more/")), default=-1)
    told = [int(key.rpartition("/")[2]) for number, key in look.keys if key.startswith("loop/") and number > cleared]
    return finding, next_step(finding, told, turn=question.turn)


def has_news_of_more(look: AgentLook, steering: Steering) -> bool:
    """Whether a person gave more since the model was last asked."""
    known = {key for _, key in look.keys}
    return any(word.kind == "more" and f"more/{word.id}" not in known for word in steering.words)


def _given(question: TurnInput, look: AgentLook, steering: Steering) -> Iterator[tuple[str, Message]]:
    """What people gave more, which also clears what was said about circles."""
    known = {key for _, key in look.keys}
    for word in steering.words:
        key = f"more/{word.id}"
        if word.kind == "more" and key not in known:
            yield key, _message(question, key, f"{word.by} gave you more to work with ({word.comment}). Go on.")


def _warning(question: TurnInput, look: AgentLook) -> Iterator[tuple[str, Message]]:
    """What loop detection found, when it is the model's turn to hear it."""
    finding, step = circle(question, look)
    if finding is not None and step == "tell_model":
        key = f"loop/{question.turn}"
        yield key, _message(question, key, finding.sentence)


def _late(desk: AgentDesk, question: TurnInput, call: CallRecord) -> tuple[str, Message]:
    """How a call ended that went on beside the turns: what a tool says, under a tool's name."""
    assert call.late is not None  # its state says so
    key = f"late/{call.turn}/{call.position}"
    head = f"[Call {call.turn}/{call.position} ({call.tool}), which went on beside you, has ended: {call.status}.]"
    part = TextPart(text=f"{head}\n{desk.blobs.get_json(call.late)['text']}")
    return key, make_message(f"{question.agent_id}#{key}", part, role="user", source="tool")


def _message(question: TurnInput, key: str, text: str, person: str = "") -> Message:
    source = "person" if person else "perdure"
    name = f"{question.agent_id}#{key}"
    return make_message(name, TextPart(text=text), role="user", source=source, person=person)
