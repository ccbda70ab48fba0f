"""The structure of a Markdown text by lines: headings, not what merely looks like one in code or comments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t](.*)", re.DOTALL)
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*\r?\n?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NO_PARAGRAPH = re.compile(r" {4}|\t| {0,3}(?:[-*+>|#]|\d{1,9}[.)][ \t])")
_DEFINITION = re.compile(r" {0,3}\[(?P<label>[^\]]+)\]:[ \t]*(?P<url>\S+)")
# Nothing but an address and perhaps a title: `[note]: see below` is prose.
_ADDRESS_ALONE = re.compile(
    r" {0,3}\[(?!\^)[^\]]+\]:[ \t]*(?:<\S+>|[./#]\S*|[a-zA-Z][\w+.-]*://\S+)"
    r"(?:[ \t]+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*"
)

Hidden = Literal["", "code", "comment"]


@dataclass(frozen=True)
class Heading:
    """One heading."""

    line: int
    """Its first line."""
    level: int
    text: str
    size: int = 1
    """How many lines it takes: two when it is underlined, three with a row above too."""
    mark: str = ""
    """The character of its row; empty for one that begins with ``#``."""
    width: int = 0
    """How wide that row is."""

    @property
    def body(self) -> int:
        """The line after it."""
        return self.line + self.size


def split_lines(text: str) -> list[str]:
    """Split at ``\\n`` alone, ends kept: joined again it is the same text."""
    return _LINE.findall(text)


def hide_code(lines: Sequence[str]) -> list[Hidden]:
    """For each line: whether it lies in fenced code or an HTML comment (the marks themselves included)."""
    hidden: list[Hidden] = []
    fence, in_comment = "", False
    for line in lines:
        mark = _FENCE.match(line)
        if in_comment or (not fence and line.lstrip().startswith("<!--")):
            in_comment = "-->" not in line
            hidden.append("comment")
        elif fence:
            fence = "" if mark and mark[1].startswith(fence) and line.strip() == mark[1] else fence
            hidden.append("code")
        else:
            fence = mark[1] if mark else ""
            hidden.append("code" if fence else "")
    return hidden


def find_headings(lines: Sequence[str]) -> list[Heading]:
    """Return the ``#`` headings in order."""
    hidden = hide_code(lines)
    found = [(number, _HEADING.match(line)) for number, line in enumerate(lines) if not hidden[number]]
    return [Heading(number, len(match[1]), _drop_closing(match[2])) for number, match in found if match]


def _drop_closing(text: str) -> str:
    """A heading's text without blanks around it and without a closing row of ``#``."""
    bare = text.strip()
    shorter = bare.rstrip("#")
    return shorter.rstrip() if shorter != bare and shorter[-1:] in ("", " ", "\t") else bare


def find_all_headings(lines: Sequence[str]) -> list[Heading]:
    """Return ``#`` and underlined headings in order. Front matter at the top has none."""
    start = _skip_front_matter(lines)
    hidden = hide_code(lines)
    found = [heading for heading in find_headings(lines) if heading.line >= start]
    for number in range(start, len(lines) - 1):
        row = _UNDERLINE.fullmatch(lines[number + 1])
        if row and not hidden[number] and not hidden[number + 1] and _is_lone_text(lines, number, start):
            level = 1 if row[1][0] == "=" else 2
            found.append(Heading(number, level, lines[number].strip(), 2, row[1][0], len(row[1])))
    return sorted(found, key=lambda heading: heading.line)


def _is_lone_text(lines: Sequence[str], number: int, start: int) -> bool:
    """Whether a line is a paragraph of its own: in lists, quotes and tables a row below is something else."""
    line = lines[number]
    above = lines[number - 1] if number > start else ""
    is_begun = bool(above.strip()) and not _HEADING.match(above) and not _UNDERLINE.fullmatch(above)
    return bool(line.strip()) and not is_begun and not _NO_PARAGRAPH.match(line) and not _UNDERLINE.fullmatch(line)


def _skip_front_matter(lines: Sequence[str]) -> int:
    """The line after a block between two ``---`` at the very top."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((number + 1 for number, line in enumerate(lines) if number and line.rstrip() == "---"), 0)


def find_definitions(lines: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return (line, label, url) of the link definitions."""
    hidden = hide_code(lines)
    found = [(number, _DEFINITION.match(line)) for number, line in enumerate(lines) if not hidden[number]]
    return [(number, match["label"], match["url"]) for number, match in found if match]


def is_definition(line: str) -> bool:
    """Whether a line outside of code is a link definition and nothing else."""
    return bool(_ADDRESS_ALONE.fullmatch(line))
