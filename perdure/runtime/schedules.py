"""Schedules on Temporal: the server's clock, and nothing else. What a fire means stands signed in the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
)
from temporalio.service import RPCError, RPCStatusCode

from perdure.contracts import names
from perdure.contracts.schedules import Calendar, ScheduleDefinition, Times
from perdure.policy.firing import stand_ins
from perdure.runtime.messenger import TASK_LIMIT, Messenger, generation

PREFIX = "perdure/"
"""Ids of our schedules on Temporal begin so."""

CATCH_UP = timedelta(days=365)
"""The server fires what fell into its own down time, as far back; the thread makes one job of it."""

YEARS_BACK, YEARS_AHEAD = 2, 20
"""Times that calendars leave out at changes of the clock are listed for these years around today."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ScheduleKeeper:
    """Makes Temporal's schedules what the ledger says. Every call may be repeated."""

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger

    async def put(self, definition: ScheduleDefinition, *, paused: bool, note: str, now: datetime) -> None:
        """Make or replace a schedule. Raises ``SetupError`` when Temporal does not answer."""
        client = await self._messenger.client()
        wanted = _schedule(definition, paused=paused, note=note, now=now)

        async def ask() -> None:
            try:
                await client.create_schedule(PREFIX + definition.name, wanted)
            except ScheduleAlreadyRunningError:
                await client.get_schedule_handle(PREFIX + definition.name).update(lambda _: ScheduleUpdate(wanted))

        await self._messenger.answered(ask, f"schedule {definition.name}")

    async def remove(self, name: str) -> None:
        """Delete a schedule; one that is not there is deleted."""
        client = await self._messenger.client()

        async def ask() -> None:
            try:
                await client.get_schedule_handle(PREFIX + name).delete()
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise

        await self._messenger.answered(ask, f"schedule {name}")

    async def names(self) -> set[str]:
        """Return the names of our schedules that Temporal lists."""
        client = await self._messenger.client()

        async def ask() -> set[str]:
            return await _listed(client)

        return await self._messenger.answered(ask, "the list of schedules")


async def _listed(client: Client) -> set[str]:
    return {
        entry.id.removeprefix(PREFIX) async for entry in await client.list_schedules() if entry.id.startswith(PREFIX)
    }


def _schedule(definition: ScheduleDefinition, *, paused: bool, note: str, now: datetime) -> Schedule:
    action = ScheduleActionStartWorkflow(
        names.FIRE_WORKFLOW,
        id=names.fire_id(definition.thread, definition.name),
        task_queue=names.QUEUE,
        task_timeout=TASK_LIMIT,
        typed_search_attributes=generation(),
    )
    return Schedule(
        action=action,
        spec=schedule_spec(definition.times, now),
        # A fire ends within moments, whatever its job waits for: two of them may meet.
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.ALLOW_ALL, catchup_window=CATCH_UP),
        state=ScheduleState(paused=paused, note=note or None),
    )


def schedule_spec(times: Times, now: datetime) -> ScheduleSpec:
    """Return the times as the server reads them, with those that its calendars leave out at clock changes."""
    year = now.astimezone(UTC).year
    every = timedelta(seconds=times.every_seconds)
    intervals = [ScheduleIntervalSpec(every, timedelta(seconds=times.offset_seconds))] if every else []
    return ScheduleSpec(
        calendars=[_calendar(calendar) for calendar in times.calendars],
        intervals=[*intervals, *map(_moment, stand_ins(times, year - YEARS_BACK, year + YEARS_AHEAD))],
        jitter=timedelta(seconds=times.jitter_seconds) if times.jitter_seconds else None,
        time_zone_name=times.zone,
    )


def _calendar(calendar: Calendar) -> ScheduleCalendarSpec:
    return ScheduleCalendarSpec(
        minute=_ranges(calendar.minutes),
        hour=_ranges(calendar.hours),
        day_of_month=_ranges(calendar.days),
        month=_ranges(calendar.months),
        day_of_week=_ranges(calendar.weekdays),
        year=_ranges(calendar.years),
    )


def _moment(at: datetime) -> ScheduleIntervalSpec:
    """One instant, whatever the local clock shows: an interval from 1970 that comes there first, then decades later.

    (With an offset instead the server leaves the first time out.)
    """
    return ScheduleIntervalSpec(at - _EPOCH)


def _ranges(values: Iterable[int]) -> Sequence[ScheduleRange]:
    """Runs of following numbers as ranges."""
    runs = groupby(enumerate(values), key=lambda pair: pair[1] - pair[0])
    found = [[value for _, value in run] for _, run in runs]
    return [ScheduleRange(run[0], run[-1]) for run in found]
