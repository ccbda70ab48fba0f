"""Asks the person at the terminal, and notices when the question is no longer open."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable

from perdure.cli.paper import Paper, Row, Span

LOOK_SECONDS = 2.0
"""How often the server is asked whether somebody else has decided meanwhile."""


def ask(paper: Paper, question: Row, is_open: Callable[[], bool]) -> str | None:
    """Return the line typed, or ``None`` once the question is no longer open.

    Raises:
        EOFError: the terminal was closed, or Ctrl-D.
    """
    paper.write(paper.paint(*question))
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], LOOK_SECONDS)
        if ready:
            return _read_line()
        if not is_open():
            paper.write("\n")
            return None


def ask_text(paper: Paper, question: str) -> str:
    """Return one line of text; empty on Ctrl-D."""
    paper.write(paper.paint(question))
    try:
        return _read_line()
    except EOFError:
        paper.write("\n")
        return ""


def choices(letters: str, words: dict[str, str]) -> Row:
    """Set the choices as "[a]pprove [d]iff …: ", the letters standing out."""
    spans: list[Span] = []
    for letter in letters:
        end = ": " if letter == letters[-1] else " "
        spans += [("[", "dim"), (letter, "key"), ("]", "dim"), words[letter][1:] + end]
    return spans


def _read_line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.strip()
