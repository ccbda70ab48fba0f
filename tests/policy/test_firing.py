"""When schedules fire: names, both edges of daylight saving, intervals, spans. Time is a parameter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.contracts.schedules import Times
from perdure.errors import UserError
from perdure.policy.cron import read_calendar, read_cron, read_times, read_when
from perdure.policy.firing import dropped_between, fires_between, next_fires, stand_ins


def berlin(cron: str) -> Times:
    """Times in Berlin: forward on 29 March 2026 from 02:00 to 03:00, back on 25 October from 03:00 to 02:00."""
    return read_times(zone="Europe/Berlin", cron=[cron])


def at(text: str) -> datetime:
    """A time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_missing_hour_runs_at_the_next_valid_minute() -> None:
    """02:30 does not exist on 29 March: it runs at 03:00 summer time, under its own name, and once."""
    fires = fires_between(berlin("30 2 * * *"), at("2026-03-28"), at("2026-03-31"))
    assert [(fire.key, fire.due_at) for fire in fires] == [
        ("2026-03-28T0230", at("2026-03-28 01:30")),
        ("2026-03-29T0230", at("2026-03-29 01:00")),
        ("2026-03-30T0230", at("2026-03-30 00:30")),
    ]


def test_several_missing_times_run_once() -> None:
    """Of 02:00, 02:15, 02:30 and 02:45 in a missing hour one fire is left; of what meets an ordinary fire, none."""
    quarters = fires_between(berlin("*/15 2 * * *"), at("2026-03-29"), at("2026-03-29 12:00"))
    assert [fire.key for fire in quarters] == ["2026-03-29T0200"]
    hours = fires_between(berlin("0 * * * *"), at("2026-03-28 23:30"), at("2026-03-29 02:30"))
    assert [fire.key for fire in hours] == ["2026-03-29T0100", "2026-03-29T0300", "2026-03-29T0400"]


def test_doubled_hour_runs_at_its_first_passing() -> None:
    """02:30 passes twice on 25 October: it runs once, and the second passing is known as such."""
    times = berlin("30 2 * * *")
    fires = fires_between(times, at("2026-10-24 12:00"), at("2026-10-26 12:00"))
    assert [(fire.key, fire.due_at) for fire in fires] == [
        ("2026-10-25T0230", at("2026-10-25 00:30")),
        ("2026-10-26T0230", at("2026-10-26 01:30")),
    ]
    (second,) = dropped_between(times, at("2026-10-24 12:00"), at("2026-10-26 12:00"))
    assert (second.key, second.due_at) == ("2026-10-25T0230", at("2026-10-25 01:30"))


def test_preview_tells_both_edges() -> None:
    """The next ten fires say what happens in a missing and in a doubled hour; ten of them run."""
    spring = next_fires(berlin("30 2 * * *"), at("2026-03-27 12:00"), 10)
    assert [fire.local for fire in spring[:3]] == [
        "2026-03-28 02:30 +01:00",
        "2026-03-29 03:00 +02:00",
        "2026-03-30 02:30 +02:00",
    ]
    assert "02:30 does not exist that day" in spring[1].what
    autumn = next_fires(berlin("30 2 * * *"), at("2026-10-23 12:00"), 10)
    assert [fire.local for fire in autumn if not fire.fires] == ["2026-10-25 02:30 +01:00"]
    assert len([fire for fire in spring if fire.fires]) == len([fire for fire in autumn if fire.fires]) == 10


@pytest.mark.parametrize(
    ("zone", "night", "fired"),
    [
        ("America/New_York", "2026-03-08", "2026-03-08 07:00"),
        ("Australia/Lord_Howe", "2026-10-04", "2026-10-03 15:30"),  # half an hour is missing there
        ("Europe/Lisbon", "2026-03-29", "2026-03-29 01:00"),  # 01:15 is what is missing
    ],
)
def test_gaps_elsewhere(zone: str, night: str, fired: str) -> None:
    """Every zone's gap has its own length and hour."""
    cron = "15 1 * * *" if zone == "Europe/Lisbon" else "15 2 * * *"
    fires = fires_between(read_times(zone=zone, cron=[cron]), at(night) - timedelta(days=1), at(night) + timedelta(1))
    assert [fire.due_at for fire in fires if fire.what] == [at(fired)]


def test_intervals_count_real_time() -> None:
    """Every six hours is every six hours, over a clock change too, with an offset from the grid."""
    times = read_times(zone="Europe/Berlin", every="6h+15m")
    fires = fires_between(times, at("2026-03-28 18:00"), at("2026-03-29 12:30"))
    assert [fire.due_at for fire in fires] == [
        at("2026-03-28 18:15"),
        at("2026-03-29 00:15"),
        at("2026-03-29 06:15"),
        at("2026-03-29 12:15"),
    ]


def test_calendars_and_cron_read_days_in_their_own_way() -> None:
    """Cron takes the 13th and every Friday; a calendar with both is a Friday the 13th; a sixth field is the year."""
    cron = fires_between(read_times(zone="UTC", cron=["0 9 13 * fri"]), at("2026-02-01"), at("2026-03-01"))
    assert [fire.key[8:10] for fire in cron] == ["06", "13", "20", "27"]
    both = read_times(zone="UTC", calendars=["day=13 weekday=fri hour=9"])
    assert [fire.key for fire in next_fires(both, at("2026-01-01"), 3)] == [
        "2026-02-13T0900",
        "2026-03-13T0900",
        "2026-11-13T0900",
    ]
    once = read_times(zone="UTC", cron=["0 9 1 1 * 2027"])
    assert [fire.key for fire in next_fires(once, at("2026-01-01"), 3)] == ["2027-01-01T0900"]


def test_stand_ins_are_what_calendars_leave_out() -> None:
    """An engine that knows calendars alone is told of the missing 02:30, and of the first of two passings of it."""
    found = stand_ins(berlin("30 2 * * *"), 2025, 2026)
    assert found == [
        at("2025-03-30 01:00"),
        at("2025-10-26 00:30"),
        at("2026-03-29 01:00"),
        at("2026-10-25 00:30"),
    ]
    assert stand_ins(berlin("0 9 * * *"), 2025, 2027) == []
    assert stand_ins(berlin("0 * * * *"), 2026, 2026) == [at("2026-10-25 00:00")]
    assert len(stand_ins(berlin("* * * * *"), 2026, 2026)) == 4
    assert stand_ins(read_times(zone="Europe/Berlin", every="1h"), 2025, 2027) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("30 2 * *", "has 4 fields"),
        ("61 2 * * *", "Bad minute"),
        ("0 0 30 2 *", "Bad day-of-month"),
        ("0 0 L * *", "uses L or #"),
        ("0 0 * * * 26", "is no year"),
    ],
)
def test_wrong_cron_line_says_what_is_wrong(text: str, said: str) -> None:
    """A line that cannot be read names its fault."""
    with pytest.raises(UserError, match=said):
        read_cron(text)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"zone": "Mars/Olympus", "every": "1h"}, "no time zone"),
        ({"zone": "UTC"}, "When is it to run"),
        ({"zone": "UTC", "every": "30s"}, "too often"),
        ({"zone": "UTC", "every": "1h+2h"}, "not shorter"),
        ({"zone": "UTC", "calendars": ["hours=9"]}, "is no field"),
        ({"zone": "UTC", "every": "soon"}, "is no duration"),
    ],
)
def test_wrong_times_say_what_is_wrong(asked: dict[str, str], said: str) -> None:
    """Times that make no schedule are refused with what was expected."""
    with pytest.raises(UserError, match=said):
        read_times(**asked)


def test_times_of_people_are_read_in_the_zone() -> None:
    """A time without an offset is the schedule's; one with an offset is itself."""
    assert read_when("2026-07-01T02:30", "Europe/Berlin") == at("2026-07-01 00:30")
    assert read_when("2026-07-01T02:30+00:00", "Europe/Berlin") == at("2026-07-01 02:30")
    assert read_calendar("weekday=7 hour=9").weekdays == [0]


@settings(max_examples=60, deadline=None)
@given(
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu"]),
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
    day=st.integers(0, 700),
)
def test_daily_schedule_fires_once_a_local_day(zone: str, hour: int, minute: int, day: int) -> None:
    """Whatever the clock does, each local date has one fire, its names are distinct, and spans can be put together."""
    times = read_times(zone=zone, cron=[f"{minute} {hour} * * *"])
    start = at("2025-06-01") + timedelta(days=day)
    middle, end = start + timedelta(days=9, hours=7), start + timedelta(days=20)
    whole = fires_between(times, start, end)
    assert whole == fires_between(times, start, middle) + fires_between(times, middle, end)
    assert len({fire.key for fire in whole}) == len(whole)
    assert len(whole) in (19, 20, 21)
    gaps = [later.due_at - earlier.due_at for earlier, later in pairwise(whole)]
    assert all(timedelta(hours=22) <= gap <= timedelta(hours=26) for gap in gaps)
