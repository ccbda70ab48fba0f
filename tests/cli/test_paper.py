"""Paper: alignment, widths, and what never reaches a terminal."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.live import LiveLine
from perdure.cli.paper import Paper, cut, text_width


def paper(*, columns: int = 40, is_terminal: bool = False, color: bool = False) -> tuple[Paper, io.StringIO]:
    """A paper and what is written on it."""
    out = io.StringIO()
    return Paper(out, color=color, is_terminal=is_terminal, columns=columns), out


def test_columns_are_aligned_by_what_is_seen() -> None:
    """Wide characters take two columns, combining ones none; colour codes take no room."""
    sheet, out = paper(color=True)
    sheet.table([[("日本", "good"), "x"], ["abcd", "x"], ["e\u0301abc", "x"]])
    rows = out.getvalue().replace("\x1b[32m", "").replace("\x1b[0m", "").splitlines()
    assert {text_width(row[: row.index("x")]) for row in rows} == {2 + 4 + 2}


def test_a_terminal_cuts_only_the_column_that_may_shrink() -> None:
    """The table fits the screen; the cut is seen as an ellipsis."""
    sheet, out = paper(columns=30, is_terminal=True)
    sheet.table([["7f3a91c2", "a very long description of things", "end"]], shrink=1)
    (row,) = out.getvalue().splitlines()
    assert text_width(row) <= 30
    assert row.endswith("end") and "…" in row
    assert "7f3a91c2" in row


def test_a_pipe_is_never_cut() -> None:
    """Scripts and files get the whole text, whatever the width."""
    sheet, out = paper(columns=30)
    sheet.table([["7f3a91c2", "a very long description of things", "end"]], shrink=1)
    assert "a very long description of things" in out.getvalue()


@given(st.text(), st.integers(1, 30))
def test_cut_text_is_never_too_wide(text: str, width: int) -> None:
    """Whatever the text, the cut one fits; a text that fits is left alone."""
    found = cut(text, width)
    assert text_width(found) <= width or text_width(text) <= width
    assert text_width(text) > width or found == text


@given(st.lists(st.text(), max_size=4))
def test_nothing_written_steers_the_terminal(texts: list[str]) -> None:
    """Any text in any place of a line or table comes out printable and on its own line."""
    sheet, out = paper()
    sheet.line(*texts)
    sheet.table([[(text, "bad") for text in texts]])
    written = out.getvalue()
    assert written.count("\n") <= 2
    assert all(char.isprintable() for char in written.replace("\n", ""))


def test_items_go_to_a_new_line_where_the_line_is_full() -> None:
    """No item is broken; each line stays within the width."""
    sheet, out = paper(columns=40)
    with LiveLine(sheet) as live:
        for number in range(6):
            live.add(f"item {number} ✓ done")
    lines = out.getvalue().splitlines()
    assert len(lines) > 1
    assert all(text_width(line) <= 40 for line in lines)
    assert " ".join(" ".join(lines).split()) == " ".join(f"item {number} ✓ done" for number in range(6))


def test_an_item_wider_than_the_terminal_is_written_once() -> None:
    """A line that the terminal has wrapped is not drawn again with every tick: its first rows would stay behind."""
    out = io.StringIO()
    sheet = Paper(out, is_terminal=True, moves=True, columns=20)
    with LiveLine(sheet) as live:
        live.start("release-orders/1")
        live.add("gather ✓ 14 commits since v1.2.0")
        for what in ("reading", "thinking", "writing"):
            live.busy(what)
        live.add("draft ✓")
    assert out.getvalue().count("14 commits") == 1
    assert "draft ✓" in out.getvalue()
