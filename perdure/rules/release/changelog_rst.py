"""reStructuredText changelogs: titles with a row of any punctuation below, or above and below.

Levels follow from the order in which the kinds of rows first appear, as in docutils. Code, comments and directives are
indented, titles are not, so rows at the margin are enough. What is written is escaped: ``name_`` would be a reference.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from perdure.rules.release.changelog_markdown import underline_width
from perdure.rules.release.entries import Entry, group_by_section
from perdure.rules.release.markdown import BREAKING_MARK, commit_sources
from perdure.rules.release.markdown_text import Heading, Hidden

_ROW = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*\r?\n?")
_DIRECTIVE = re.compile(r"\s*\.\. (?:\|[^|]+\| )?[\w:.+-]+::")
_MARKS = "-~=^\"'+*#:.`_"
_INLINE = re.compile(
    r"(?<!`)(?P<tick>`+)(?P<code>[^`]{1,400}(?<![\s\\]))(?P=tick)(?!`)"
    r"|\[(?P<name>[^\[\]`<>\n]{1,400}(?<!\s))\]\((?P<url>https?://[^\s()<>`\\]+)\)"
)
_SPECIAL = re.compile(r"[\\*|`]|_+(?![0-9A-Za-z_])")


class Rst:
    """Titles of docutils."""

    name = "rst"

    def find_headings(self, lines: Sequence[str]) -> list[Heading]:
        found: list[tuple[int, int, str, str, int]] = []
        number = 0
        while number < len(lines):
            title = _read_title(lines, number)
            if title:
                found.append((number, *title))
            number += title[0] if title else 1
        levels: dict[str, int] = {}
        for _, _, _, mark, _ in found:
            levels.setdefault(mark, len(levels) + 1)
        return [Heading(line, levels[mark], text, size, mark, width) for line, size, text, mark, width in found]

    def hide(self, lines: Sequence[str]) -> list[Hidden]:
        """Comments and directives (``.. ``) with what is indented beneath them, and literal blocks after ``::``."""
        hidden: list[Hidden] = []
        block: Hidden = ""
        indent = 0
        for line in lines:
            depth = len(line) - len(line.lstrip())
            if block and line.strip() and depth <= indent:
                block = ""
            if not block and line.lstrip().startswith((".. ", "..\n", "..\r")):
                # A directive is content, a comment or target is none.
                block, indent = "code" if _DIRECTIVE.match(line) else "comment", depth
                hidden.append(block)
                continue
            hidden.append(block if block and line.strip() else "")
            if not block and line.rstrip().endswith("::"):
                block, indent = "code", depth
        return hidden

    def write_heading(self, text: str, like: Heading) -> list[str]:
        row = like.mark[0] * underline_width(text, like)
        return [row, text, row] if like.size == 3 else [text, row]

    def write_body(self, entries: Sequence[Entry], inner: Heading, bullet: str) -> list[str]:
        lines: list[str] = []
        for section, members in group_by_section(entries):
            lines += ["", *self.write_heading(escape(section), inner), ""]
            for entry in members:
                lines += _write_entry(entry, bullet)
        return lines[1:]

    def first_heading(self, headings: Sequence[Heading]) -> Heading:
        return _unused(2, headings)

    def inner_heading(self, like: Heading, headings: Sequence[Heading]) -> Heading:
        below = (heading for heading in headings if heading.level == like.level + 1)
        return next(below, None) or _unused(like.level + 1, [*headings, like])


def _unused(level: int, headings: Sequence[Heading]) -> Heading:
    """A kind of row that the file does not use: a used one would be of its own level."""
    used = {heading.mark[0] for heading in headings}
    return Heading(0, level, "", 2, next(mark for mark in _MARKS if mark not in used))


def _read_title(lines: Sequence[str], number: int) -> tuple[int, str, str, int] | None:
    """(lines, text, kind of row, its width) of the title that begins there; ``None``: no title does."""
    if number and lines[number - 1].strip() and not _ROW.fullmatch(lines[number - 1]):
        return None  # in the middle of a paragraph
    first = lines[number].rstrip()
    below = lines[number + 1].rstrip() if number + 1 < len(lines) else ""
    if _is_row(first) and below.strip() and not _is_row(below):
        last = lines[number + 2].rstrip() if number + 2 < len(lines) else ""
        if last == first and _fits(last, below.strip()):
            return 3, below.strip(), first[0] * 2, len(first)
    elif first and first[0] not in " \t" and not first.startswith(".. ") and _is_row(below) and _fits(below, first):
        return 2, first, below[0], len(below)
    return None


def _is_row(line: str) -> bool:
    return bool(line) and bool(_ROW.fullmatch(line))


def _fits(row: str, title: str) -> bool:
    """A row shorter than its title counts from four characters on, as in docutils."""
    width = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in title)
    return not _is_row(title) and (len(row) >= width or len(row) >= 4)


def _write_entry(entry: Entry, bullet: str) -> list[str]:
    """``* **Breaking:** **scope:** text (a41c9e0)``; what stood in this file's [Unreleased] is written as it was."""
    is_own = any(source.endswith("[Unreleased]") for source in entry.sources) and not entry.edited_by
    first, *rest = (entry.text if is_own else escape(entry.text)).split("\n")
    marks = [BREAKING_MARK] if entry.breaking else []
    marks += [f"**{escape(entry.scope)}:**"] if entry.scope else []
    lines = [" ".join([bullet, *marks, first]), *rest]
    commits = commit_sources(entry)
    if commits:
        lines[0] += f" ({', '.join(commits)})"
    indent = " " * (len(bullet) + 1)
    return [lines[0], *(f"{indent}{line}" if line else "" for line in lines[1:])]


def escape(text: str) -> str:
    """Turn plain text with Markdown's code and links into RST; everything else reads as it is written."""
    written, at = "", 0
    for match in _INLINE.finditer(text):
        written += _escape_plain(text[at : match.start()])
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        # Markup must stand apart from what is around it; an escaped blank does not show.
        written += "" if before.strip() == "" else "\\ "
        written += _write_inline(match) + ("" if after.strip(" \n.,;:!?)") == "" else "\\ ")
        at = match.end()
    written += _escape_plain(text[at:])
    # At the beginning of a line punctuation would make another kind of block.
    return re.sub(r"^(?=[-+.:>=~^#])", r"\\", written, flags=re.MULTILINE)


def _write_inline(match: re.Match[str]) -> str:
    if match["code"] is not None:
        return f"``{match['code'].strip()}``"
    url = match["url"].removesuffix("_") + "\\_" * match["url"].endswith("_")
    return f"`{_escape_plain(match['name'].strip())} <{url}>`__"


def _escape_plain(text: str) -> str:
    return re.sub(r":(?=:[ \t]*$)", r":\\", _SPECIAL.sub(_escape_run, text), flags=re.MULTILINE)


def _escape_run(match: re.Match[str]) -> str:
    return "".join(f"\\{char}" for char in match[0])
