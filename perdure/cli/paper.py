"""What commands write on: colour on a terminal, aligned columns, and no character that is not what it looks like."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from typing import TextIO

from perdure.contracts.visible import visible

Span = str | tuple[str, str]
"""Text, or text and the name of a style in ``STYLES``."""

Row = Sequence[Span]

STYLES = {
    "title": "1",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "busy": "36",
    "digest": "1;35",
    "dim": "2",
    "hint": "36",
    "added": "32",
    "removed": "31",
    "hunk": "36",
    "key": "1;36",
}
"""SGR codes of the eight basic colours: every colour scheme keeps these readable."""

GAP = "  "
LONGEST_LINE = 100
"""Running text is never set wider, whatever the terminal."""


class Paper:
    """One output stream. Everything written through it was made visible first."""

    def __init__(
        self, out: TextIO, *, color: bool = False, is_terminal: bool = False, moves: bool = False, columns: int
    ) -> None:
        self.out = out
        self.color = color
        self.is_terminal = is_terminal
        self.moves = moves
        """Whether a line can be written over: a terminal that is not a dumb one."""
        self.columns = columns
        self.may_go_unread = False
        """Go on without a word when whoever reads has left, because the command's end counts: ``run --plan | head``."""

    @property
    def width(self) -> int:
        """Columns for running text."""
        return min(self.columns, LONGEST_LINE)

    def paint(self, *spans: Span) -> str:
        """Return the spans as one text, with colour codes where colour is on."""
        return "".join(self._paint_one(span) for span in spans)

    def code(self, line: str, style: str = "") -> str:
        """Return one line of source text, painted: as :meth:`paint`, with its tabs kept."""
        return self._codes(visible(line, keep_lines=True).replace("\n", "^J"), style)

    def line(self, *spans: Span) -> None:
        """Write one line."""
        self.write(self.paint(*spans) + "\n")

    def lines(self, text: str, *, indent: str = "", style: str = "") -> None:
        """Write a text of several lines, each behind ``indent``."""
        for line in text.splitlines():
            self.line(indent, (line, style))

    def write(self, painted: str) -> None:
        """Write what :meth:`paint` gave, at once."""
        try:
            self.out.write(painted)
            self.out.flush()
        except BrokenPipeError:
            if not self.may_go_unread:
                raise
            self.out = io.StringIO()

    def table(self, rows: Sequence[Row], *, header: Sequence[str] = (), shrink: int = -1, indent: str = GAP) -> None:
        """Write rows in aligned columns.

        On a terminal column ``shrink`` is cut with an ellipsis where the table would be wider than the screen; in a
        pipe nothing is ever cut.
        """
        for line in self.set_table(rows, header=header, shrink=shrink, indent=indent):
            self.write(line + "\n")

    def set_table(
        self, rows: Sequence[Row], *, header: Sequence[str] = (), shrink: int = -1, indent: str = GAP
    ) -> list[str]:
        """Return the painted lines of :meth:`table`."""
        all_rows: list[Row] = [[(title, "dim") for title in header], *rows] if header else list(rows)
        if not all_rows:
            return []
        widths = self._widths(all_rows, shrink, len(indent))
        return [(indent + self._set_row(row, widths)).rstrip() for row in all_rows]

    def _widths(self, rows: Sequence[Row], shrink: int, used: int) -> list[int]:
        count = max(len(row) for row in rows)
        widths = [
            max((text_width(text_of(row[at])) for row in rows if at < len(row)), default=0) for at in range(count)
        ]
        spare = self.columns - used - sum(widths) - len(GAP) * (count - 1)
        if self.is_terminal and spare < 0 and shrink >= 0:
            widths[shrink] = max(8, widths[shrink] + spare)
        return widths

    def _set_row(self, row: Row, widths: Sequence[int]) -> str:
        return GAP.join(self._set_cell(cell, width) for cell, width in zip(row, widths, strict=False))

    def _set_cell(self, cell: Span, width: int) -> str:
        text = cut(text_of(cell), width)
        style = cell[1] if isinstance(cell, tuple) else ""
        return self._codes(text, style) + " " * (width - text_width(text))

    def _paint_one(self, span: Span) -> str:
        return self._codes(text_of(span), span[1] if isinstance(span, tuple) else "")

    def _codes(self, text: str, style: str) -> str:
        if not self.color or not style or not text:
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def open_paper(out: TextIO) -> Paper:
    """Return the paper for a stream: colour only on a terminal, and there only without ``NO_COLOR`` or a dumb one."""
    if not out.isatty():
        return Paper(out, columns=LONGEST_LINE)
    # rich knows the conventions (NO_COLOR, TERM=dumb) and reads them itself; it costs 80 ms, so only here.
    from rich.console import Console

    console = Console(file=out)
    color = console.color_system is not None and not console.no_color
    return Paper(out, color=color, is_terminal=True, moves=not console.is_dumb_terminal, columns=_columns(out))


def text_of(span: Span) -> str:
    """The span's text, every steering or hidden character written out."""
    return visible(span[0] if isinstance(span, tuple) else span)


def text_width(text: str) -> int:
    """Columns that the text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """Return the text, ended by an ellipsis where it is wider than ``width`` columns."""
    if text_width(text) <= width:
        return text
    kept = list(text)
    while kept and text_width("".join(kept)) > width - 1:
        kept.pop()
    return "".join(kept).rstrip() + "…"


def joined(parts: Iterable[Row], gap: str = "   ") -> list[Span]:
    """Return the parts' spans with a gap between each two."""
    spans: list[Span] = []
    for part in parts:
        spans += [gap, *part] if spans else part
    return spans


def _columns(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or 80
    except OSError:
        # A stream that says it is a terminal and has no size: an editor's output window.
        return 80
