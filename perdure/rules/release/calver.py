"""Calendar versions: the pattern that a project's own releases show, and the version that a day gives in it.

The names of the parts are those of https://calver.org/ (``YYYY``, ``YY``, ``MM``, ``0M``, ``DD``, ``0D``, ``WW``,
``0W``, ``MICRO``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from perdure.errors import UserError

DEFAULT_PATTERN = "YYYY.MM.MICRO"
"""Of a project without any calendar version."""

_WRITERS: Mapping[str, Callable[[date], str]] = {
    "YYYY": lambda day: f"{day.year}",
    "YY": lambda day: f"{day.year % 100}",
    "0M": lambda day: f"{day.month:02}",
    "MM": lambda day: f"{day.month}",
    "0D": lambda day: f"{day.day:02}",
    "DD": lambda day: f"{day.day}",
    "0W": lambda day: f"{day.isocalendar().week:02}",
    "WW": lambda day: f"{day.isocalendar().week}",
}
_YEARS, _MIDDLES = ("YYYY", "YY"), (".MM.DD", ".0M.0D", ".MM", ".0M", ".WW", ".0W", "")
PATTERNS = tuple(f"{year}{middle}{end}" for middle in _MIDDLES for year in _YEARS for end in ("", ".MICRO"))
"""Every pattern that is looked for, those with more of a date in them first."""

_LATEST = 12
_VERSION = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True)
class DatedVersion:
    """A release that happened."""

    version: str
    day: date


@dataclass(frozen=True)
class Pattern:
    """How a project writes its calendar versions."""

    text: str

    @property
    def parts(self) -> list[str]:
        """Names of the parts that a date gives."""
        return [part for part in self.text.split(".") if part != "MICRO"]

    def write_day(self, day: date) -> str:
        """The part of a version that the day gives: ``2026.04``."""
        return ".".join(_WRITERS[part](day) for part in self.parts)

    def fits(self, release: DatedVersion) -> bool:
        """Whether a release's version is what this pattern gives on its day, or on the day before or after.

        A tag's day is that of its maker's clock, so a day more or less is no difference.
        """
        has_counter = self.text.endswith("MICRO")
        near = [release.day + timedelta(days=shift) for shift in (0, -1, 1)]
        return any(
            _split_counter(release.version, self.write_day(day), has_counter=has_counter) is not None for day in near
        )


def guess_pattern(releases: Sequence[DatedVersion]) -> str:
    """Return the pattern that most of the latest releases (newest first) fit; empty when none fits most of them."""
    plain = [release for release in releases if _VERSION.fullmatch(release.version)][:_LATEST]
    counts = {text: sum(Pattern(text).fits(release) for release in plain) for text in PATTERNS}
    best = max(PATTERNS, key=lambda text: counts[text])
    return best if plain and 2 * counts[best] > len(plain) else ""


def next_calver(pattern: str, last: str, day: date) -> str:
    """Return the version of ``day`` after ``last`` (empty: none yet); a second one on the same date counts on.

    Raises:
        UserError: the pattern is not known.
    """
    if pattern not in PATTERNS:
        raise UserError(f"The calendar pattern {pattern!r} is not known. Known ones: {', '.join(PATTERNS)}.")
    begin, has_counter = Pattern(pattern).write_day(day), pattern.endswith("MICRO")
    counter = _split_counter(last, begin, has_counter=True) if last else None
    if counter is not None:
        return f"{begin}.{counter + 1}"
    writes_counter = has_counter and (not last or last.count(".") >= pattern.count("."))
    return f"{begin}.0" if writes_counter else begin


def _split_counter(version: str, begin: str, *, has_counter: bool) -> int | None:
    """The counter after the day's part, 0 when it is not written; ``None`` when the version is of another date."""
    if version == begin:
        return 0
    rest = version.removeprefix(f"{begin}.")
    return int(rest) if has_counter and rest != version and rest.isascii() and rest.isdigit() else None
