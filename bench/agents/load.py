"""The work load that all three do: so many turns, each one read of a file of 20 KB; the model says when it is done."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

RESULT_BYTES = 20_000
MARK = "BENCH"
PART = re.compile(rb"part-(\d{5})")
_OPENING = re.compile(rb"BENCH run=(\S+) turns=(\d+) hold=(\d)")
SUMMARY = b"You write the summary"
"""Begins the instructions by which Perdure asks for a summary."""
HEAD_BYTES = 20_000
"""The task stands within the first so many bytes of a request, the last result within so many of its end."""
TAIL_BYTES = 60_000


@dataclass(frozen=True)
class Load:
    """One run of it."""

    run: str
    turns: int
    is_held: bool = False
    """The first and the last answer wait until they are released: many agents begin together, none ends before all."""

    @property
    def task(self) -> str:
        """What the first message of the user says; the scripted model reads its script in it."""
        return f"{MARK} run={self.run} turns={self.turns} hold={int(self.is_held)}"


@dataclass(frozen=True)
class Wanted:
    """What a request wants, as the scripted model sees it."""

    load: Load
    turn: int
    """From 0; ``turns``: all was read; one more: the note was written too."""
    is_summary: bool


def read_request(body: bytes) -> Wanted:
    """Say where a conversation is. Only its ends are looked at: it has megabytes.

    Raises:
        ValueError: there is no task in it.
    """
    found = _OPENING.search(body[:HEAD_BYTES])
    if found is None:
        raise ValueError("no task of the bench in the request")
    load = Load(found[1].decode(), int(found[2]), found[3] == b"1")
    last = max((int(number) for number in PART.findall(body[-TAIL_BYTES:])), default=-1)
    is_written = b"NOTE" in body[-2000:]
    return Wanted(load, last + 1 + is_written, SUMMARY in body[:HEAD_BYTES])


def answer(wanted: Wanted, *, with_note: bool) -> dict[str, object]:
    """The model's message: the next part, the note where one is wanted, or the end."""
    if wanted.turn < wanted.load.turns:
        return _call("read", wanted, {"path": part_name(wanted.turn)})
    if wanted.turn == wanted.load.turns and with_note:
        return _call("write", wanted, {"path": "NOTE", "content": "all was read\n"})
    return {"role": "assistant", "content": "Done."}


def part_name(number: int) -> str:
    """Name of the file that a turn reads."""
    return f"part-{number:05}"


def write_parts(folder: Path, count: int) -> None:
    """Write the files: text of its own in each, of exactly ``RESULT_BYTES``."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        name = part_name(number)
        lines = "".join(f"{line * 7919 + number:010} in {name}\n" for line in range(RESULT_BYTES // 25 + 1))
        (folder / name).write_text(lines[:RESULT_BYTES])


def _call(kind: str, wanted: Wanted, arguments: dict[str, str]) -> dict[str, object]:
    function = {"name": f"files-{kind}", "arguments": json.dumps(arguments)}
    call = {"id": f"call_{wanted.turn}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
