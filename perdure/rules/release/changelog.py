"""The structure of a changelog: what is to come, where the newest version is, which way versions run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.rules.release.changelog_dates import guess_day_first
from perdure.rules.release.changelog_heading import (
    HeadingStyle,
    has_known_prefix,
    is_pending,
    is_pending_version,
    is_unreleased,
    match_version,
    read_style,
)
from perdure.rules.release.changelog_items import BULLET, read_items
from perdure.rules.release.changelog_markup import MARKUPS, Markup
from perdure.rules.release.markdown_text import Heading, find_definitions, split_lines

_DEEPEST_VERSION = 3
_DEFAULT_LEVEL = 2
# What a heading is linked by stands right before it and moves with it.
_ANCHOR = re.compile(r"<a\s+(?:name|id)=[^>]*>\s*(?:</a>)?|\.\. _[^:]+:|\[\[[^\]]+\]\]|\[#[^\]]+\]", re.IGNORECASE)
_START_MARK = re.compile(r"(?:<!--|\.\.|//)\s*towncrier release notes start.*", re.IGNORECASE)


@dataclass(frozen=True)
class VersionSection:
    """One version's section."""

    version: str
    start: int
    """Line of its heading."""
    body: int
    """The line after its heading."""
    end: int
    """The line after its last one."""


@dataclass(frozen=True)
class Pending:
    """The section of what is to come; its body holds no link definitions."""

    start: int
    body: int
    end: int
    keeps_heading: bool = True
    """False for ``1.3.0 (unreleased)``, whose heading becomes the released version's."""


@dataclass(frozen=True)
class Changelog:
    """A changelog by lines."""

    markup: Markup
    lines: list[str]
    """With their ends."""
    style: HeadingStyle
    like: Heading
    """A heading of the kind that versions have."""
    inner: Heading
    """A heading of the kind that stands inside of a version's section."""
    unreleased: Pending | None
    versions: list[VersionSection]
    """As written."""
    bullet: str
    """The character that list items begin with."""
    day_first: bool | None
    """How dates such as 3/12/2025 are meant; ``None``: the file does not tell."""
    start_mark: int
    """The line after the mark behind which a tool of the project writes; -1: there is none."""

    @property
    def newline(self) -> str:
        """The line end that most lines have."""
        crlf = sum(line.endswith("\r\n") for line in self.lines)
        return "\r\n" if 2 * crlf > len(self.lines) else "\n"

    @property
    def is_oldest_first(self) -> bool:
        """Whether the newest version is the last one."""
        keys = [_order(section.version) for section in self.versions]
        return len(keys) > 1 and keys[0] < keys[-1]

    @property
    def end_of_sections(self) -> int:
        """The line where link definitions (and blank lines before them) begin at the end of the file."""
        return _trim_definitions(self.markup, self.lines, 0, len(self.lines))


def read_changelog(text: str, markup: Markup = MARKUPS["markdown"]) -> Changelog:
    """Read the structure of a changelog. Never fails: a text without any version has no versions."""
    lines = split_lines(text)
    headings = markup.find_headings(lines)
    found = _find_versions(headings)
    released = [(heading, match) for heading, match in found if not is_pending_version(match)]
    pending = _find_pending(headings, found)
    known = {heading.line for heading, _ in found} | ({pending.line} if pending else set())
    like = found[0][0] if found else pending or _usual_heading(markup, headings)
    if not found and pending:
        style = HeadingStyle(has_brackets=pending.text.startswith("["))
    else:
        matches = [match for _, match in released or found]
        style = read_style(matches) if matches else HeadingStyle(has_brackets=markup.name == "markdown")
    return Changelog(
        markup=markup,
        lines=lines,
        style=style,
        like=like,
        inner=_find_inner(headings, like, known) or markup.inner_heading(like, headings),
        unreleased=_measure_pending(markup, lines, headings, pending, found, known),
        versions=[
            VersionSection(m["version"], _step_back(lines, h), h.body, _find_end(markup, lines, headings, h, known))
            for h, m in released
        ],
        bullet=_usual_bullet(lines),
        day_first=guess_day_first(match["rest"] for _, match in released),
        start_mark=next((number + 1 for number, line in enumerate(lines) if _START_MARK.match(line.strip())), -1),
    )


def _usual_heading(markup: Markup, headings: Sequence[Heading]) -> Heading:
    """In a file without versions: as other headings below its title, which may not become a version's own."""
    second = next((heading for heading in headings if heading.level == _DEFAULT_LEVEL), None)
    return second or markup.first_heading(headings)


def _find_versions(headings: Sequence[Heading]) -> list[tuple[Heading, re.Match[str]]]:
    """Headings of versions. A word before the version counts as the project's name when it is always the same."""
    shallow = [heading for heading in headings if heading.level <= _DEEPEST_VERSION]
    found = [(heading, match) for heading in shallow if (match := match_version(heading.text))]
    known = [item for item in found if has_known_prefix(item[1])]
    if known:
        return known
    kinds = Counter((heading.level, match["prefix"]) for heading, match in found)
    best, count = kinds.most_common(1)[0] if kinds else ((0, ""), 0)
    return [item for item in found if count > 1 and (item[0].level, item[1]["prefix"]) == best]


def _find_pending(headings: Sequence[Heading], found: Sequence[tuple[Heading, re.Match[str]]]) -> Heading | None:
    """The heading of what is to come: before the first version, after the last one, or a version not yet released."""
    lines = [heading.line for heading, match in found if not is_pending_version(match)]
    for heading, match in found:
        if is_pending_version(match):
            return heading
    level = found[0][0].level if found else _DEEPEST_VERSION
    return next(
        (
            heading
            for heading in headings
            if is_pending(heading.text)
            and (heading.level == level or (heading.level < level and (not found or is_unreleased(heading.text))))
            and (not lines or heading.line < lines[0] or heading.line > lines[-1])
        ),
        None,
    )


def _measure_pending(
    markup: Markup,
    lines: Sequence[str],
    headings: Sequence[Heading],
    pending: Heading | None,
    found: Sequence[tuple[Heading, re.Match[str]]],
    known: set[int],
) -> Pending | None:
    if pending is None:
        return None
    is_version = any(heading is pending for heading, _ in found)
    end = _find_end(markup, lines, headings, pending, known)
    return Pending(_step_back(lines, pending), pending.body, end, keeps_heading=not is_version)


def _find_inner(headings: Sequence[Heading], like: Heading, known: set[int]) -> Heading | None:
    """The first heading right below a version's level, inside of its section."""
    inside = False
    for heading in headings:
        if heading.line in known:
            inside = True
        elif heading.level <= like.level:
            inside = False
        elif inside:
            return heading
    return None


def _order(version: str) -> tuple[int, ...]:
    """Rough order of versions: their numbers."""
    return tuple(int(number) for number in re.findall(r"\d+", re.split(r"[-+a-zA-Z]", version)[0]))


def _find_end(
    markup: Markup, lines: Sequence[str], headings: Sequence[Heading], start: Heading, known: set[int]
) -> int:
    """A section ends at the next heading of its level or above, or at the next version's, or at the definitions."""
    for heading in headings:
        if heading.line > start.line and (heading.level <= start.level or heading.line in known):
            return max(_step_back(lines, heading), start.body)
    return _trim_definitions(markup, lines, start.body, len(lines))


def _step_back(lines: Sequence[str], heading: Heading) -> int:
    """The line where a heading begins with the anchors before it."""
    first = heading.line
    for number in range(heading.line - 1, -1, -1):
        bare = lines[number].strip()
        if _ANCHOR.fullmatch(bare):
            first = number
        elif bare:
            break
    return first


def _trim_definitions(markup: Markup, lines: Sequence[str], start: int, end: int) -> int:
    if markup.name != "markdown":
        return end
    defined = {number for number, _, _ in find_definitions(lines)}
    last = end
    while last > start and (last - 1 in defined or not lines[last - 1].strip()):
        last -= 1
    return last if any(number in defined for number in range(last, end)) else end


def _usual_bullet(lines: Sequence[str]) -> str:
    marks = [match[2] for line in lines if (match := BULLET.fullmatch(line.rstrip("\r\n")))]
    return max("-*+", key=marks.count) if marks else "-"


__all__ = ["Changelog", "Pending", "VersionSection", "read_changelog", "read_items"]
