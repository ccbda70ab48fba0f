"""Markdown changelogs: headings with ``#`` and underlined ones."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.rules.release.entries import Entry
from perdure.rules.release.markdown import write_sections
from perdure.rules.release.markdown_text import Heading, Hidden, find_all_headings, hide_code


class Markdown:
    """CommonMark, as far as headings go."""

    name = "markdown"

    def find_headings(self, lines: Sequence[str]) -> list[Heading]:
        return find_all_headings(lines)

    def hide(self, lines: Sequence[str]) -> list[Hidden]:
        return hide_code(lines)

    def write_heading(self, text: str, like: Heading) -> list[str]:
        if not like.mark:
            return [f"{'#' * like.level} {text}"]
        return [text, like.mark * underline_width(text, like)]

    def write_body(self, entries: Sequence[Entry], inner: Heading, bullet: str) -> list[str]:
        return write_sections(entries, level=inner.level, bullet=bullet)

    def first_heading(self, headings: Sequence[Heading]) -> Heading:
        return Heading(0, 2, "")

    def inner_heading(self, like: Heading, headings: Sequence[Heading]) -> Heading:
        return Heading(0, like.level + 1, "")


def underline_width(text: str, like: Heading) -> int:
    """A row as wide as its text, unless the file's rows have a width of their own."""
    own = like.width if like.width != len(like.text) else 0
    return max(len(text), own, 3)
