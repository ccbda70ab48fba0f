"""The structure of a Markdown changelog: where ``[Unreleased]`` is, where the newest version is, how headings look."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from perdure.rules.release.markdown_text import (
    Heading,
    Hidden,
    find_definitions,
    find_headings,
    find_underlined,
    hide_code,
    split_lines,
)

_VERSION_HEADING = re.compile(
    r"(?P<prefix>(?:version|release)?\s*)(?P<open>\[)?(?P<v>v?)(?P<version>\d+(?:\.\d+)+[0-9A-Za-z.+!-]*)"
    r"(?P<close>\])?(?P<link>\([^)]*\))?(?P<rest>(?:[ \t]*[-–—:(].*)?)",
    re.IGNORECASE,
)
_UNRELEASED = re.compile(r"\[?unreleased(?:\](?:\([^)]*\))?)?.*", re.IGNORECASE)
_DATE = re.compile(r"(?P<before>[ \t]{0,4}[-–—:]?[ \t]{0,4}\(?)\d{4}-\d{2}-\d{2}(?P<after>\)?)")
_BULLET = re.compile(r"( *)([-*+])[ \t]+(.*)")
_DEEPEST_VERSION = 3


@dataclass(frozen=True)
class HeadingStyle:
    """How a changelog writes the heading of a version."""

    level: int = 2
    prefix: str = ""
    """"Version " and the like."""
    has_brackets: bool = True
    v: str = ""
    before_date: str = " - "
    after_date: str = ""

    def write(self, version: str, date: str) -> str:
        """Return the heading's line without a line end."""
        name = f"{self.prefix}[{self.v}{version}]" if self.has_brackets else f"{self.prefix}{self.v}{version}"
        return f"{'#' * self.level} {name}{self.before_date}{date}{self.after_date}"


@dataclass(frozen=True)
class VersionSection:
    """One version's section."""

    version: str
    start: int
    """Line of its heading."""
    end: int
    """The line after its last one."""


@dataclass(frozen=True)
class Changelog:
    """A changelog by lines."""

    lines: list[str]
    """With their ends."""
    style: HeadingStyle
    unreleased: tuple[int, int] | None
    """(line of the heading, the line after its body); the body holds no link definitions. ``None``: no such section."""
    versions: list[VersionSection]
    """As written, the newest first in every changelog that this code extends."""
    bullet: str
    """The character that list items begin with."""

    @property
    def newline(self) -> str:
        """The line end that most lines have."""
        crlf = sum(line.endswith("\r\n") for line in self.lines)
        return "\r\n" if 2 * crlf > len(self.lines) else "\n"

    @property
    def end_of_sections(self) -> int:
        """The line where link definitions (and blank lines before them) begin at the end of the file."""
        return _trim_definitions(self.lines, 0, len(self.lines))


def read_changelog(text: str) -> Changelog:
    """Read the structure of a changelog. Never fails: a text without any version has no versions."""
    lines = split_lines(text)
    headings = find_headings(lines)
    shallow = [heading for heading in headings if heading.level <= _DEEPEST_VERSION]
    found = [(heading, match) for heading in shallow if (match := _VERSION_HEADING.fullmatch(heading.text))]
    pending = next((heading for heading in headings if _UNRELEASED.fullmatch(heading.text)), None)
    known = {heading.line for heading, _ in found}
    style = _read_style(*found[0]) if found else _style_of_unreleased(pending)
    unreleased = (pending.line, _find_end(lines, headings, pending, known)) if pending else None
    versions = [
        VersionSection(match["version"], heading.line, _find_end(lines, headings, heading, known))
        for heading, match in found
    ]
    return Changelog(lines, style, unreleased, versions, _usual_bullet(lines))


def has_foreign_headings(text: str) -> bool:
    """Whether versions stand in underlined headings, which are not extended yet."""
    lines = split_lines(text)
    underlined = [heading for heading in find_underlined(lines) if _VERSION_HEADING.fullmatch(heading)]
    return bool(underlined) and not read_changelog(text).versions


def read_items(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Return (section, text) of the list items and paragraphs in a section's body.

    Sections are the headings inside it; before the first one it is empty. Texts keep their lines, without the bullet
    and the indent it asks for. Comments are passed over.
    """
    starts = [-1, *(heading.line for heading in find_headings(lines)), len(lines)]
    names = ["", *(heading.text for heading in find_headings(lines))]
    hidden = hide_code(lines)
    return [
        (name, item)
        for name, (before, end) in zip(names, pairwise(starts), strict=True)
        for item in _read_list(lines[before + 1 : end], hidden[before + 1 : end])
    ]


def _read_list(lines: Sequence[str], hidden: Sequence[Hidden]) -> list[str]:
    """Texts of the list items and paragraphs between two headings; lists may be indented as a whole."""
    bullets = {
        number: match
        for number, line in enumerate(lines)
        if not hidden[number] and (match := _BULLET.fullmatch(line.rstrip("\r\n")))
    }
    indent = min((len(match[1]) for match in bullets.values()), default=0)
    items: list[list[str]] = []
    for number, line in enumerate(lines):
        bullet = bullets.get(number)
        if hidden[number] == "comment":
            continue
        if bullet and len(bullet[1]) <= indent + 1:
            items.append([bullet[3].rstrip()])
        elif items and (hidden[number] or _continues(line, items[-1][-1])):
            items[-1].append(_unindent(line, indent + 2))
        elif line.strip():
            items.append([line.strip()])
    return ["\n".join(item).strip() for item in items]


def _continues(line: str, above: str) -> bool:
    """Whether a line belongs to the item before it: indented, blank, or right below its text."""
    return line[:1] in (" ", "\t") or not line.strip() or bool(above.strip())


def find_comments(lines: Sequence[str]) -> list[str]:
    """Return the lines of HTML comments: what a project tells its writers stays when a section is emptied."""
    hidden = hide_code(lines)
    return [line for number, line in enumerate(lines) if hidden[number] == "comment"]


def _read_style(heading: Heading, match: re.Match[str]) -> HeadingStyle:
    date = _DATE.search(match["rest"])
    style = HeadingStyle(heading.level, match["prefix"], bool(match["open"]), match["v"])
    return replace(style, before_date=date["before"], after_date=date["after"]) if date else style


def _style_of_unreleased(pending: Heading | None) -> HeadingStyle:
    if pending is None:
        return HeadingStyle()
    return HeadingStyle(level=pending.level, has_brackets=pending.text.startswith("["))


def _find_end(lines: Sequence[str], headings: Sequence[Heading], start: Heading, versions: set[int]) -> int:
    """A section ends at the next heading of its level or above, or at the next version's, or at the definitions."""
    for heading in headings:
        if heading.line > start.line and (heading.level <= start.level or heading.line in versions):
            return heading.line
    return _trim_definitions(lines, start.line + 1, len(lines))


def _trim_definitions(lines: Sequence[str], start: int, end: int) -> int:
    defined = {number for number, _, _ in find_definitions(lines)}
    last = end
    while last > start and (last - 1 in defined or not lines[last - 1].strip()):
        last -= 1
    return last if any(number in defined for number in range(last, end)) else end


def _usual_bullet(lines: Sequence[str]) -> str:
    marks = [match[2] for line in lines if (match := _BULLET.fullmatch(line.rstrip("\r\n")))]
    return max("-*+", key=marks.count) if marks else "-"


def _unindent(line: str, width: int) -> str:
    """Drop up to ``width`` blanks at the beginning."""
    text = line.rstrip().expandtabs(4)
    return text[min(width, len(text) - len(text.lstrip(" "))) :]
