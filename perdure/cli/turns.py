"""How turns and calls are written, one line each; and one turn, or a whole transcript, with every word."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.cli.door import Door
from perdure.cli.paper import Paper
from perdure.contracts.messages import CallPart, Message, ResultPart, TextPart
from perdure.contracts.visible import visible
from perdure.contracts.watching import CallView, TranscriptLine, TurnView

PAGE = 100
_SAID = 100
_INDENT = " " * 21


def write_turn(paper: Paper, view: TurnView) -> None:
    """Write a turn as one line, and one for each of its calls."""
    at = view.at.astimezone()
    name = f"agent {view.agent} turn {view.turn}"
    paper.line((f"{at:%Y-%m-%d %H:%M:%S}  ", "dim"), (f"{name:<18}", "title"), f"  {say_turn(view)}")
    for call in view.calls:
        paper.line((_INDENT, "dim"), (f"{call.position + 1:>3} ", "dim"), say_call(call))


def say_turn(view: TurnView) -> str:
    """Who answered, what it took, the beginning of what was said."""
    used = [f"{view.input_tokens}+{view.output_tokens} tokens"] if view.input_tokens is not None else []
    cost = [f"{view.cost_microdollars / 1e6:.4f} USD"] if view.cost_microdollars is not None else []
    said = " ".join(view.text.split())
    said = said if len(said) <= _SAID else said[: _SAID - 1] + "…"
    return " · ".join([view.model, *used, *cost, *view.notes, *([visible(said)] if said else [])])


def say_call(call: CallView) -> str:
    """Tool, target, how it ended, and where its output is."""
    about = [call.tool or "?", call.status or "at work", call.target, call.summary]
    output = f"{call.output.sha256[:12]}({call.output.size_bytes} bytes)" if call.output else ""
    plan = f"plan {call.digest[:8]}" if call.digest else ""
    return "  ".join(visible(" ".join(part.split())) for part in [*about, output, plan] if part)


def read_transcript(door: Door, job_id: str, agent: int, *, start: int = 0) -> Iterator[TranscriptLine]:
    """Read an agent's messages from number ``start`` on, page by page."""
    while True:
        found = door.get("/v1/transcript", list[TranscriptLine], ref=job_id, agent=agent, start=start, limit=PAGE)
        yield from found
        if len(found) < PAGE:
            return
        start = found[-1].number + 1


def one_turn(lines: Iterator[TranscriptLine], turn: int) -> Iterator[TranscriptLine]:
    """Only the messages of one turn: what was new to the model, its answer, what its calls gave."""
    answers, before = 0, list[TranscriptLine]()
    for line in lines:
        if line.message.source == "model":
            answers += 1
            if answers == turn:
                yield from before
            elif answers > turn:
                return
            before = []
        if answers == turn:
            if line.message.role not in ("assistant", "tool"):
                return
            yield line
        elif line.message.role != "tool":
            before.append(line)


def write_message(paper: Paper, line: TranscriptLine) -> None:
    """Write one message, whole."""
    message = line.message
    paper.line((f"[{line.number}] {message.person or message.source}", "title"))
    for part in _parts(message):
        for text in visible(part, keep_lines=True).splitlines():
            paper.line(f"  {text}")


def _parts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, TextPart):
            yield part.text
        elif isinstance(part, CallPart):
            yield f"→ {part.name} {part.raw or part.arguments}"
        elif isinstance(part, ResultPart):
            yield f"← {part.name} ({part.status})"
            yield part.text
