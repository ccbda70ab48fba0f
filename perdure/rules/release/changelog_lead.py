"""The line below a version's heading that says when it was released: ``Released 2026-10-01``, or ``Unreleased``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.rules.release.changelog_dates import find_date, write_date
from perdure.rules.release.markdown_text import Heading

_WORDS = re.compile(r"[*_(]*(?:release[ds]?(?:[ -]date)?(?: on)?)?[:*_]*[ \t]*[*_(]*", re.IGNORECASE)
_PENDING = re.compile(
    r"[*_(]*(?:release[d]?(?:[ -]date)?:?[ \t]*)?(?:unreleased|not (?:yet )?released|tb[ad])[*_).]*", re.I
)


_LEAD_LIMIT = 100


@dataclass(frozen=True)
class Lead:
    """Such a line, alone in its paragraph."""

    body: int
    """The line after it."""
    before: str = ""
    date: str = ""
    """Empty: it says that the version is not released yet."""
    after: str = ""

    def write(self, iso_date: str, *, day_first: bool | None = None) -> str:
        """Return the same line for another day."""
        return f"{self.before}{write_date(self.date, iso_date, day_first=day_first)}{self.after}"


def read_lead(lines: Sequence[str], heading: Heading) -> Lead | None:
    """Return the line that says when the heading's version was released; ``None`` when its body begins otherwise."""
    number = next((number for number in range(heading.body, len(lines)) if lines[number].strip()), -1)
    if number < 0 or (number + 1 < len(lines) and lines[number + 1].strip()):
        return None
    text = lines[number].strip()
    if len(text) > _LEAD_LIMIT:
        return None
    span = find_date(text)
    if span and _WORDS.fullmatch(text[: span[0]]) and not text[span[1] :].strip("*_)."):
        return Lead(number + 1, text[: span[0]], text[slice(*span)], text[span[1] :])
    return Lead(number + 1) if _PENDING.fullmatch(text) else None
