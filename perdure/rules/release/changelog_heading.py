"""How a changelog writes the heading of a version: prefix, brackets, link, date; and headings of what is to come."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perdure.rules.release.changelog_dates import find_date, write_date

_VERSION_HEADING = re.compile(
    r"(?P<prefix>(?:[^\w\s\[(*`]+[ \t]*)?(?:(?:@?[^\W\d_][\w./-]*)(?:[ \t]+|@|:[ \t]*))?)"
    r"(?P<open>\[)?(?P<v>v?)(?P<version>\d+(?:\.\d+)+[0-9A-Za-z.+!-]*|(?<=v)\d+)"
    r"(?P<close>\])?(?P<link>\((?:https?://|\.{0,2}/)[^)\s]*\))?"
    r"(?P<rest>(?:[ \t]*[-–—:(,/|*_<].*|[ \t]+.*\d{4}.*)?)",
    re.IGNORECASE,
)
_KNOWN_PREFIX = re.compile(r"(?:version|release)?\s*", re.IGNORECASE)
_PENDING = re.compile(
    r"\[?(?:(?:un|not yet )released|(?:next|upcoming)(?: (?:release|version))?|in (?:development|progress)|head|tbd|tba"
    r"|master|main|trunk|develop(?:ment)?)\b\]?(?:\([^)]*\))?(?P<rest>.*)",
    re.IGNORECASE,
)
_UNRELEASED_FIRST = re.compile(r"\[?unreleased", re.IGNORECASE)
_PENDING_REST = re.compile(
    r".*\b(?:unreleased|not (?:yet )?released|in (?:development|progress)|tbd|tba|x{2,4})\b.*", re.I
)
_BEFORE_LIMIT = 24
_HEADING_LIMIT = 300


@dataclass(frozen=True)
class HeadingStyle:
    """How a changelog writes the heading of a version."""

    prefix: str = ""
    """"Version " and the like."""
    has_brackets: bool = True
    v: str = ""
    before_date: str = " - "
    date: str = "2026-01-31"
    """A date as the file writes it."""
    after_date: str = ""
    link: str = ""
    """Address of the newest version's link in the heading; empty: none."""

    def write(self, version: str, iso_date: str, *, link: str = "", day_first: bool | None = None) -> str:
        """Return the heading's text; ``link`` is the new version's address. Without a date it ends with the version."""
        name = f"{self.v}{version}"
        name = f"[{name}]({link})" if link else f"[{name}]" if self.has_brackets else name
        if not iso_date:
            return f"{self.prefix}{name}"
        date = write_date(self.date, iso_date, day_first=day_first)
        return f"{self.prefix}{name}{self.before_date}{date}{self.after_date}"


def match_version(text: str) -> re.Match[str] | None:
    """Match a heading that begins with a version, or with one word and a version."""
    return _VERSION_HEADING.fullmatch(text) if len(text) <= _HEADING_LIMIT else None


def has_known_prefix(match: re.Match[str]) -> bool:
    """Whether nothing but "Version" or "Release" stands before the version."""
    return bool(_KNOWN_PREFIX.fullmatch(match["prefix"]))


def is_pending(text: str) -> bool:
    """Whether a heading is of what is to come: ``[Unreleased]``, ``Next``, ``main``."""
    match = _PENDING.fullmatch(text)
    return match is not None and (is_unreleased(text) or not any(char.isalnum() for char in match["rest"]))


def is_unreleased(text: str) -> bool:
    """Whether a heading says it in so many words, whatever follows."""
    return bool(_UNRELEASED_FIRST.match(text))


def is_pending_version(match: re.Match[str]) -> bool:
    """Whether a version's heading says that it is not released: ``1.3.0 (unreleased)``."""
    return bool(_PENDING_REST.fullmatch(match["rest"]))


def read_style(matches: Sequence[re.Match[str]]) -> HeadingStyle:
    """Read the style of the newest version's heading; where it has no date, that of the newest one that has."""
    newest = matches[0]
    link = newest["link"][1:-1] if newest["link"] else ""
    style = HeadingStyle(newest["prefix"], bool(newest["open"]), newest["v"], link=link)
    for match in matches:
        rest = match["rest"]
        span = find_date(rest)
        if span is None:
            continue
        before, after = rest[: span[0]], rest[span[1] :]
        closing = after[: len(after) - len(after.lstrip(")]*_>"))]
        if len(before) <= _BEFORE_LIMIT and not any(char.isdigit() for char in before):
            return replace(style, before_date=before, date=rest[slice(*span)], after_date=closing)
    return style
