"""The structure of a Markdown text by lines: headings, not what merely looks like one in code or comments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t](.*)", re.DOTALL)
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*\r?\n?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DEFINITION = re.compile(r" {0,3}\[(?P<label>[^\]]+)\]:[ \t]*(?P<url>\S+)")

Hidden = Literal["", "code", "comment"]


@dataclass(frozen=True)
class Heading:
    """One heading that begins with ``#``."""

    line: int
    level: int
    text: str


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


def find_underlined(lines: Sequence[str]) -> list[str]:
    """Return the texts of headings that are underlined instead."""
    hidden = hide_code(lines)
    return [
        above.strip()
        for number, (above, line) in enumerate(pairwise(lines))
        if not hidden[number + 1] and above.strip() and _UNDERLINE.fullmatch(line)
    ]


def find_definitions(lines: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return (line, label, url) of the link definitions."""
    hidden = hide_code(lines)
    found = [(number, _DEFINITION.match(line)) for number, line in enumerate(lines) if not hidden[number]]
    return [(number, match["label"], match["url"]) for number, match in found if match]
