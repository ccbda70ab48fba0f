"""When a schedule fires, also over both edges of daylight saving time. Pure: every time comes from the caller.

The id of a run is its *nominal* local time. A local time that does not exist fires at the first minute after the gap,
under the name of the missing time; several of them once; none where an ordinary fire is due at that minute anyway. A
local time that passes twice fires at its first passing only. Intervals are counted in real time and know no such edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from perdure.contracts.schedules import Calendar, NextFire, Times

MISSING, DOUBLED = "missing", "doubled"

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
FARTHEST = timedelta(days=366 * 30)
"""A preview looks no farther: a calendar of a past year has no next fire."""
_STEP = timedelta(days=40)
_LONGEST_CHANGE = timedelta(hours=3)
_MOST_OF_A_CHANGE = 4


@dataclass(frozen=True, order=True)
class Fire:
    """One due time. ``what``: empty, or :data:`MISSING` for the stand-in of a local time that does not exist."""

    due_at: datetime
    key: str
    what: str = ""


def fires_between(times: Times, after: datetime, until: datetime) -> list[Fire]:
    """Return the fires later than ``after`` and not later than ``until``, in order."""
    due: dict[datetime, Fire] = {}
    for fire in (*_calendar_fires(times, after, until), *_interval_fires(times, after, until)):
        if after < fire.due_at <= until:
            known = due.get(fire.due_at)
            if known is None or (known.what and not fire.what):
                due[fire.due_at] = fire
    return sorted(due.values())


def dropped_between(times: Times, after: datetime, until: datetime) -> list[Fire]:
    """Return the second passings of local times that fired at their first one, in order."""
    zone = ZoneInfo(times.zone)
    found = set()
    for naive in _naive_times(times, after.astimezone(zone).date(), until.astimezone(zone).date()):
        first, second = _both(naive, zone)
        if first < second and after < second <= until:
            found.add(Fire(second, _key(naive), DOUBLED))
    return sorted(found)


def next_fires(times: Times, after: datetime, count: int) -> list[NextFire]:
    """Return the next ``count`` fires, with the times between them that are only shown."""
    zone = ZoneInfo(times.zone)
    found: list[Fire] = []
    start, fired = after, 0
    while fired < count and start < after + FARTHEST:
        end = start + _STEP
        fires = fires_between(times, start, end)[: count - fired]
        if fires and fired + len(fires) == count:
            end = fires[-1].due_at
        found += sorted([*fires, *dropped_between(times, start, end)])
        fired, start = fired + len(fires), end
    return [_shown(fire, zone) for fire in found]


def stand_ins(times: Times, first_year: int, last_year: int) -> list[datetime]:
    """Return due times (UTC) in those years that an engine which knows calendars alone would leave out.

    Those are the stand-ins for missing local times, and first passings of local times that pass twice: which of the two
    such an engine takes depends on the zone (measured: Berlin the second, New York the first). Of one change of the
    clock at most four are listed; what else is due then is found at the next wake.
    """
    if not times.calendars:
        return []
    zone = ZoneInfo(times.zone)
    start, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC)
    found: list[datetime] = []
    for edge in _changes(zone, start, end):
        names = {fire.key for fire in dropped_between(times, edge - _SECOND, edge + _LONGEST_CHANGE)}
        near = fires_between(times, edge - _LONGEST_CHANGE, edge)
        edges = [one.due_at for one in near if one.what == MISSING or one.key in names]
        found += edges[:_MOST_OF_A_CHANGE]
    return found


def local_text(at: datetime, zone: str) -> str:
    """Return "2026-03-29 03:00 +02:00"."""
    local = at.astimezone(ZoneInfo(zone))
    offset = local.strftime("%z")
    return f"{local:%Y-%m-%d %H:%M} {offset[:3]}:{offset[3:5]}"


def instant_key(at: datetime) -> str:
    """The key of a fire that has no local name: an interval's, or one that a person asked for."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H%M%SZ")


def _calendar_fires(times: Times, after: datetime, until: datetime) -> Iterator[Fire]:
    zone = ZoneInfo(times.zone)
    # A missing time is due up to a gap's length later than its name says: begin a day earlier.
    for naive in _naive_times(times, after.astimezone(zone).date() - _DAY, until.astimezone(zone).date()):
        first, second = _both(naive, zone)
        if first > second:  # the zone counts from before the gap and from behind it: the time does not exist
            yield Fire(_edge(zone, second, first), _key(naive), MISSING)
        else:
            yield Fire(first, _key(naive))


def _interval_fires(times: Times, after: datetime, until: datetime) -> Iterator[Fire]:
    if not times.every_seconds:
        return
    every, offset = times.every_seconds, times.offset_seconds
    count = (int(after.timestamp()) - offset) // every + 1
    while (at := datetime.fromtimestamp(count * every + offset, UTC)) <= until:
        yield Fire(at, instant_key(at))
        count += 1


def _naive_times(times: Times, first: date, last: date) -> Iterator[datetime]:
    """Local times that match, in order of each calendar, whether or not they exist."""
    for calendar in times.calendars:
        day = first
        while day <= last:
            if _has_day(calendar, day):
                for hour in calendar.hours:
                    for minute in calendar.minutes:
                        yield datetime(day.year, day.month, day.day, hour, minute)
            day += _DAY


def _has_day(calendar: Calendar, day: date) -> bool:
    return (
        day.day in calendar.days
        and day.month in calendar.months
        and day.isoweekday() % 7 in calendar.weekdays
        and (not calendar.years or day.year in calendar.years)
    )


def _both(naive: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The instants of a local time before and after a change of the clock; the same where it is unambiguous.

    In a gap the first is the later one (PEP 495): it counts with the offset from before.
    """
    return tuple(naive.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))  # type: ignore[return-value]


def _edge(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The instant of the one change of offset in (``before``, ``after``], to the second."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + timedelta(seconds=int((after - before).total_seconds()) // 2)
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


def _changes(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[datetime]:
    """Instants at which the clock is put forward or back."""
    day = start
    while day < end:
        if day.astimezone(zone).utcoffset() != (day + _DAY).astimezone(zone).utcoffset():
            yield _edge(zone, day, day + _DAY)
        day += _DAY


def _key(naive: datetime) -> str:
    return f"{naive:%Y-%m-%dT%H%M}"


def _shown(fire: Fire, zone: ZoneInfo) -> NextFire:
    name = f"{fire.key[:10]} {fire.key[11:13]}:{fire.key[13:15]}"
    what = {
        "": "",
        MISSING: f"{name} does not exist that day: runs at the next valid minute",
        DOUBLED: f"{name} comes a second time: not again, it ran at its first",
    }[fire.what]
    local = local_text(fire.due_at, str(zone))
    return NextFire(key=fire.key, due_at=fire.due_at, local=local, what=what, fires=fire.what != DOUBLED)
