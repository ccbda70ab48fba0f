"""AsciiDoc changelogs: titles with ``=``, or underlined; delimited blocks and comments are passed over."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.rules.release.entries import Entry, group_by_section
from perdure.rules.release.markdown import write_entry
from perdure.rules.release.markdown_text import Heading, Hidden

_TITLE = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)[ \t]*\r?\n?")
_ROW = re.compile(r"([=\-~^+])\1{3,}")
_BLOCK = re.compile(r"(?:-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|`{3,}|[|,:!]={3,})[ \t]*\r?\n?")
# `Bug Fixes::` heads a list in many changelogs.
_LABEL = re.compile(r"([^\W\d_][\w &/-]*)::[ \t]*\r?\n?")
_LABEL_LEVEL = 7
_LEVELS = "=-~^+"
_SPECIAL = re.compile(r"\{(?=[\w-]+\})|<<(?=\S)")


class AsciiDoc:
    """Titles of Asciidoctor."""

    name = "asciidoc"

    def find_headings(self, lines: Sequence[str]) -> list[Heading]:
        hidden = self.hide(lines)
        found = []
        for number, line in enumerate(lines):
            title = _TITLE.fullmatch(line)
            if hidden[number]:
                continue
            if title:
                found.append(Heading(number, len(title[1]), title[2], mark=title[1][0]))
            elif label := _LABEL.fullmatch(line):
                found.append(Heading(number, _LABEL_LEVEL, label[1], mark="::"))
            elif _is_underlined(lines, number):
                row = lines[number + 1].rstrip()
                found.append(Heading(number, _LEVELS.index(row[0]) + 1, line.strip(), 2, row[0], len(row)))
        return found

    def hide(self, lines: Sequence[str]) -> list[Hidden]:
        """Blocks between two equal rows, and lines that begin with ``//``."""
        hidden: list[Hidden] = []
        fence = ""
        for number, line in enumerate(lines):
            bare = line.rstrip()
            if fence:
                hidden.append("comment" if fence[0] == "/" else "code")
                fence = "" if bare == fence else fence
            elif _BLOCK.fullmatch(line) and not (number and _is_underlined(lines, number - 1)):
                fence = bare
                hidden.append("comment" if bare[0] == "/" else "code")
            else:
                hidden.append("comment" if line.startswith("//") else "")
        return hidden

    def write_heading(self, text: str, like: Heading) -> list[str]:
        if like.mark == "::":
            return [f"{text}::"]
        if like.size == 1:
            return [f"{(like.mark or '=') * like.level} {text}"]
        # The row may differ from its title by one character at most.
        return [text, like.mark * max(len(text), 4)]

    def write_body(self, entries: Sequence[Entry], inner: Heading, bullet: str) -> list[str]:
        lines: list[str] = []
        for section, members in group_by_section(entries):
            lines += ["", *self.write_heading(escape(section), inner), ""]
            for entry in members:
                lines += _write_entry(entry, bullet)
        return lines[1:]

    def first_heading(self, headings: Sequence[Heading]) -> Heading:
        return Heading(0, 2, "", mark="=")

    def inner_heading(self, like: Heading, headings: Sequence[Heading]) -> Heading:
        return Heading(0, like.level + 1, "", mark=like.mark if like.size == 1 else "=")


def _is_underlined(lines: Sequence[str], number: int) -> bool:
    """Whether a title begins there whose row is as wide as itself, give or take one; blocks have a free width."""
    title, row = lines[number].rstrip(), lines[number + 1].rstrip() if number + 1 < len(lines) else ""
    return (
        bool(title)
        and title[0].isalnum() | (title[0] == "[")
        and bool(_ROW.fullmatch(row))
        and abs(len(row) - len(title)) <= 1
        and (number == 0 or not lines[number - 1].strip())
    )


def _write_entry(entry: Entry, bullet: str) -> list[str]:
    """As in Markdown; a blank line would end the item, so one is written as AsciiDoc's continuation."""
    is_own = any(source.endswith("[Unreleased]") for source in entry.sources) and not entry.edited_by
    first, *rest = write_entry(entry, bullet)
    lines = [first, *((line.strip() and line) or "+" for line in rest)]
    return lines if is_own else [escape(line) for line in lines]


def escape(text: str) -> str:
    """Keep attribute references and cross references from being read as such."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", text)
