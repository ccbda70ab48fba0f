"""The structure of a changelog: what is to come, where the newest version is, which way versions run."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.rules.release.changelog_dates import find_date, guess_day_first
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
from perdure.rules.release.changelog_lead import Lead, read_lead
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
    lead: Lead | None
    """The newest version's line that tells its date below the heading; ``None``: dates stand in headings, if at all."""
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
    found = [
        _Version(heading, match, read_lead(lines, heading), _step_back(lines, heading))
        for heading, match in _find_versions(headings)
    ]
    released = [version for version in found if not version.is_pending]
    pending = _find_pending(headings, found)
    known = {version.heading.line for version in found} | ({pending.line} if pending else set())
    like = found[0].heading if found else pending or _usual_heading(markup, headings)
    sections = [
        VersionSection(v.match["version"], v.start, v.body, _find_end(markup, lines, headings, v.heading, known))
        for v in released
    ]
    return Changelog(
        markup=markup,
        lines=lines,
        style=_find_style(markup, [version.match for version in released or found], pending),
        like=like,
        inner=_find_inner(headings, like, known) or markup.inner_heading(like, headings),
        unreleased=_measure_pending(markup, lines, headings, pending, found, known),
        versions=sections,
        bullet=_usual_bullet(lines),
        day_first=guess_day_first(text for v in released for text in (v.match["rest"], v.lead.date if v.lead else "")),
        lead=_find_lead(released),
        start_mark=next((number + 1 for number, line in enumerate(lines) if _START_MARK.match(line.strip())), -1),
    )


@dataclass(frozen=True)
class _Version:
    """A version's heading with the line below it that tells when."""

    heading: Heading
    match: re.Match[str]
    lead: Lead | None
    start: int

    @property
    def is_pending(self) -> bool:
        return is_pending_version(self.match) or (self.lead is not None and not self.lead.date)

    @property
    def body(self) -> int:
        return self.lead.body if self.lead else self.heading.body


def _find_style(markup: Markup, matches: Sequence[re.Match[str]], pending: Heading | None) -> HeadingStyle:
    if matches:
        return read_style(matches)
    return HeadingStyle(has_brackets=pending.text.startswith("[") if pending else markup.name == "markdown")


def _find_lead(released: Sequence[_Version]) -> Lead | None:
    """The newest version's line with the date, where dates do not stand in headings."""
    if not released or find_date(released[0].match["rest"]):
        return None
    return released[0].lead


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
    alike = [item for item in found if (item[0].level, item[1]["prefix"]) == best]
    return alike if count > 1 or any(find_date(match["rest"]) for _, match in alike) else []


def _find_pending(headings: Sequence[Heading], found: Sequence[_Version]) -> Heading | None:
    """The heading of what is to come, a version not yet released first: before the first version or after the last."""
    lines = [version.heading.line for version in found if not version.is_pending]
    level = found[0].heading.level if found else _DEEPEST_VERSION
    named = [
        heading
        for heading in headings
        if is_pending(heading.text)
        and (heading.level == level or (heading.level < level and (not found or is_unreleased(heading.text))))
    ]
    both = [*(version.heading for version in found if version.is_pending), *named]
    outside = (heading for heading in both if not lines or heading.line < lines[0] or heading.line > lines[-1])
    return next(outside, None)


def _measure_pending(
    markup: Markup,
    lines: Sequence[str],
    headings: Sequence[Heading],
    pending: Heading | None,
    found: Sequence[_Version],
    known: set[int],
) -> Pending | None:
    if pending is None:
        return None
    version = next((version for version in found if version.heading is pending), None)
    end = _find_end(markup, lines, headings, pending, known)
    start, body = _step_back(lines, pending), version.body if version else pending.body
    return Pending(start, body, end, keeps_heading=version is None)


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
    following = bisect_right(headings, start.line, key=lambda heading: heading.line)
    for heading in (headings[place] for place in range(following, len(headings))):
        if heading.level <= start.level or heading.line in known:
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
