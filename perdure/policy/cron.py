"""Reading when a schedule fires: cron lines, calendars, intervals. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from perdure.contracts.schedules import Calendar, Times
from perdure.errors import UserError

_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = {"minute": "0", "hour": "0", "day": "*", "month": "*", "weekday": "*", "year": "*"}
"""Fields of a calendar with what they are when left out, in cron's order."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"^(\d+)([smhdw])$")
_FIRST_YEAR, _LAST_YEAR = 1970, 2199
_EXAMPLE = datetime(2026, 1, 1)

SHORTEST_SECONDS = 60
"""No schedule fires more often: a job takes longer than that."""


def read_times(
    *, zone: str, cron: Iterable[str] = (), calendars: Iterable[str] = (), every: str = "", jitter: str = ""
) -> Times:
    """Return the times that these texts say.

    Raises:
        UserError: one cannot be read, the zone is unknown, or there is no time at all.
    """
    cron, calendars = list(cron), list(calendars)
    every_seconds, offset_seconds = read_every(every) if every else (0, 0)
    found = [one for text in cron for one in read_cron(text)] + [read_calendar(text) for text in calendars]
    if not found and not every_seconds:
        raise UserError("When is it to run? Give --cron '30 2 * * *', --calendar 'weekday=mon hour=9' or --every 6h.")
    said = [*(f"cron {text}" for text in cron), *(f"calendar {text}" for text in calendars)]
    said += [f"every {every}"] if every else []
    return Times(
        zone=read_zone(zone),
        calendars=found,
        every_seconds=every_seconds,
        offset_seconds=offset_seconds,
        jitter_seconds=read_seconds(jitter) if jitter else 0,
        said=said,
    )


def read_zone(name: str) -> str:
    """Return an IANA zone's name. Raises ``UserError``: a bare offset has no daylight saving, and is no zone."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(
            f"There is no time zone {name!r}; expected an IANA name such as Europe/Berlin or UTC."
        ) from None
    return name


def read_cron(text: str) -> list[Calendar]:
    """Return the calendars of a cron line: five fields, or six with the year at the end.

    Where both day and weekday are restricted either is enough, as everywhere in cron: that takes two calendars.
    """
    parts = _SHORT.get(text.strip().lower(), text).split()
    if len(parts) not in (5, 6):
        raise UserError(
            f"Cron line {text!r} has {len(parts)} fields; expected five (minute hour day month weekday), "
            "or six with the year at the end."
        )
    years = _read_years(parts[5]) if len(parts) == 6 else []
    read = _parse(" ".join(parts[:5]), text)
    calendar = _calendar(read, years)
    if read.day_and:
        return [calendar]
    return [
        calendar.model_copy(update={"weekdays": list(range(7))}),
        calendar.model_copy(update={"days": list(range(1, 32))}),
    ]


def read_calendar(text: str) -> Calendar:
    """Return the calendar of ``weekday=mon-fri hour=9 minute=30``; what is left out is ``*``, hour and minute are 0.

    Unlike in cron every field must match: ``day=13 weekday=fri`` is a Friday the 13th.
    """
    given = dict(_FIELDS)
    for part in text.split():
        name, equals, value = part.partition("=")
        if not equals or name not in _FIELDS:
            raise UserError(f"{part!r} in calendar {text!r} is no field; known: {', '.join(_FIELDS)}, as hour=9.")
        given[name] = value
    line = " ".join(given[name] for name in ("minute", "hour", "day", "month", "weekday"))
    return _calendar(_parse(line, text), _read_years(given["year"]))


def read_every(text: str) -> tuple[int, int]:
    """Return (seconds, offset in seconds) of "6h" or "6h+15m"."""
    every, plus, offset = text.partition("+")
    seconds, shift = read_seconds(every), read_seconds(offset) if plus else 0
    if seconds < SHORTEST_SECONDS:
        raise UserError(f"Every {text} is too often; expected at least every {SHORTEST_SECONDS} s.")
    if shift >= seconds:
        raise UserError(f"The offset in {text!r} is not shorter than the interval.")
    return seconds, shift


def read_seconds(text: str) -> int:
    """Return the seconds of "90s", "15m", "6h", "2d" or "1w"."""
    found = _DURATION.match(text.strip())
    if not found:
        raise UserError(f"{text!r} is no duration; expected a number with s, m, h, d or w, as 15m.")
    return int(found[1]) * _UNITS[found[2]]


def _parse(line: str, text: str) -> CronSim:
    try:
        read = CronSim(line, _EXAMPLE)
        next(read)
    except (CronSimError, StopIteration) as error:
        why = str(error) or "it never matches"
        raise UserError(f"{text!r} cannot be read as times: {why}. Example: '30 2 * * mon-fri'.") from None
    fields = (read.minutes, read.hours, read.days, read.months, read.weekdays)
    if not all(isinstance(value, int) and value >= 0 for field in fields for value in field):
        raise UserError(f"{text!r} uses L or #, which schedules do not know. Write the days out.")
    return read


def _calendar(read: CronSim, years: list[int]) -> Calendar:
    return Calendar(
        minutes=sorted(read.minutes),
        hours=sorted(read.hours),
        days=sorted(read.days),
        months=sorted(read.months),
        weekdays=sorted({int(str(day)) % 7 for day in read.weekdays}),
        years=years,
    )


def _read_years(text: str) -> list[int]:
    if text == "*":
        return []
    years: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise UserError(f"{text!r} is no year; expected 2027, 2027-2029 or *.")
        years.update(range(int(first), int(last or first) + 1))
    if not years or min(years) < _FIRST_YEAR or max(years) > _LAST_YEAR:
        raise UserError(f"{text!r} is no year between {_FIRST_YEAR} and {_LAST_YEAR}.")
    return sorted(years)


def read_when(text: str, zone: str) -> datetime:
    """Return the instant of "2026-03-28", "2026-03-28 02:30" (in ``zone``) or one with an offset of its own."""
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UserError(f"{text!r} is no time; expected 2026-03-28, 2026-03-28T02:30 or one with an offset.") from None
    return (read if read.tzinfo else read.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC)
