"""What a markup language must say about a changelog, and the three that are known: Markdown, RST, AsciiDoc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from perdure.rules.release.changelog_asciidoc import AsciiDoc
from perdure.rules.release.changelog_markdown import Markdown
from perdure.rules.release.changelog_rst import Rst
from perdure.rules.release.entries import Entry
from perdure.rules.release.markdown_text import Heading, Hidden


class Markup(Protocol):
    """One markup language by lines; lines keep their ends."""

    @property
    def name(self) -> str:
        """Its name in a changelog's ``format``."""
        ...

    def find_headings(self, lines: Sequence[str]) -> list[Heading]:
        """Return the headings in order, not what merely looks like one in code, comments or tables."""
        ...

    def hide(self, lines: Sequence[str]) -> list[Hidden]:
        """For each line: whether it lies in code or a comment."""
        ...

    def write_heading(self, text: str, like: Heading) -> list[str]:
        """Return a heading's lines, without ends, of the same kind and level as another."""
        ...

    def write_body(self, entries: Sequence[Entry], inner: Heading, bullet: str) -> list[str]:
        """Return the lines of a version's body, its sections under headings like ``inner``."""
        ...

    def first_heading(self, headings: Sequence[Heading]) -> Heading:
        """Return the kind of heading that versions get in a file with these, which has none for versions yet."""
        ...

    def inner_heading(self, like: Heading, headings: Sequence[Heading]) -> Heading:
        """Return a kind of heading right below ``like`` in a file with these, which has none there yet."""
        ...


MARKUPS: dict[str, Markup] = {markup.name: markup for markup in (Markdown(), Rst(), AsciiDoc())}

WRITTEN_FORMATS = (*MARKUPS, "absent")
"""Values of a changelog's ``format`` that a release extends; ``absent`` begins a new file in Markdown."""


def markup_named(form: str) -> Markup:
    """Return the markup of a changelog's ``format``."""
    return MARKUPS["markdown" if form == "absent" else form]
