"""Dates as changelogs write them, and today's in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?P<tail>[a-z]*)\.?"
_DAY = r"(?P<day>\d{1,2})(?P<ordinal>st|nd|rd|th)?"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?<!\d)(?P<year>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<day>\d{1,2})(?!\d)",
        rf"\b{_MONTH}[ -]{_DAY},?[ -](?P<year>\d{{4}})(?!\d)",
        rf"(?<!\d){_DAY}(?: of)?[ -]{_MONTH},?[ -](?P<year>\d{{4}})(?!\d)",
        r"(?<!\d)(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})(?P=s)(?P<year>\d{4})(?!\d)",
    )
)


def find_date(text: str) -> tuple[int, int] | None:
    """Return where the first date stands; ``None`` when there is none."""
    matches = [match for form in _FORMS if (match := form.search(text))]
    return min((match.span() for match in matches), default=None)


def guess_day_first(texts: Iterable[str]) -> bool | None:
    """Whether dates such as ``3/12/2025`` begin with the day; ``None`` when no date in ``texts`` tells.

    With dots the day always comes first.
    """
    for text in texts:
        match = _FORMS[-1].search(text)
        if match and match["s"] == ".":
            return True
        if match and (int(match["a"]) > 12 or int(match["b"]) > 12):
            return int(match["a"]) > 12
    return None


def write_date(sample: str, iso_date: str, *, day_first: bool | None = None) -> str:
    """Return a date (``iso_date``: YYYY-MM-DD) in the form of ``sample``; in ISO's where that form is not clear."""
    year, month, day = iso_date.split("-")
    match = next((match for form in _FORMS if (match := form.fullmatch(sample))), None)
    if match is None:
        return iso_date
    groups = match.groupdict()
    values = {"year": year}
    if "a" in groups:
        if day_first is None:
            return iso_date
        first, second = (day, month) if day_first else (month, day)
        values |= {"a": _pad(first, groups["a"]), "b": _pad(second, groups["b"])}
    elif "m" in groups:
        values |= {"m": _pad(month, groups["m"]), "day": _pad(day, groups["day"])}
    else:
        values |= _name_month(groups, int(month)) | {"day": day if groups["day"][0] == "0" else str(int(day))}
        values |= {"ordinal": _ordinal(int(day))} if groups["ordinal"] else {}
    return _fill(match, values)


def _pad(value: str, like: str) -> str:
    """One digit where the sample has one or shows no zero; a sample of two digits is taken as padded."""
    return value if len(like) == 2 else str(int(value))


def _name_month(groups: dict[str, str | None], month: int) -> dict[str, str]:
    head, tail = groups["month"] or "", groups["tail"] or ""
    name = _MONTHS[month - 1]
    # May is both; most that write "May" write whole names.
    is_short = not tail or tail.lower() == "t"
    name = name[:3] if is_short and head.lower() != "may" else name
    name = name.upper() if head.isupper() else name.lower() if head.islower() else name
    return {"month": name[:3], "tail": name[3:]}


def _ordinal(day: int) -> str:
    if day in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _fill(match: re.Match[str], values: dict[str, str]) -> str:
    """The match with some groups replaced."""
    text = match[0]
    spans = sorted(
        ((match.span(name), value) for name, value in values.items() if match[name] is not None), reverse=True
    )
    for (start, end), value in spans:
        text = text[: start - match.start()] + value + text[end - match.start() :]
    return text
