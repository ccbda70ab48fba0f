"""Fires of Temporal's own schedules, in a real installation: spans, doubles, edges of daylight saving, strangers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleBackfill,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleState,
)

from perdure.contracts import names
from perdure.contracts.job import JobPhase
from perdure.policy.cron import read_times
from perdure.policy.firing import dropped_between, fires_between
from perdure.runtime.schedules import schedule_spec
from tests.schedules.kit import Scheduled, days_ago, new_id
from tests.support.installation import Installation, wait_until

Make = Callable[..., Scheduled]


def test_three_days_down_are_one_job_for_the_whole_span(scheduled: Make) -> None:
    """Fires that the server catches up on after three days make one job; the span it stands for is in its inputs."""
    daily = scheduled("unattended")
    daily.add()
    daily.set_back(days_ago(3))
    daily.fire_past(days_ago(3), days_ago(0), times=2)
    daily.wait_jobs(JobPhase.done)
    (missed,) = daily.records("missed")
    assert missed.startswith("3 fires from ") and missed.endswith("one job stands for all")
    key, since, until = (daily.folder / "NOTE").read_text().split()
    assert key == daily.keys()[0]
    span = datetime.fromisoformat(until) - datetime.fromisoformat(since)
    assert timedelta(days=2) < span <= timedelta(days=3)
    daily.fire_past(days_ago(3), days_ago(0))
    daily.say("trigger")  # behind them
    daily.wait_jobs(JobPhase.done, JobPhase.done)
    assert len(daily.records("fired")) == 2


def test_span_goes_on_from_what_was_delivered(scheduled: Make) -> None:
    """A job's span begins where the last one that went well ended: what a failed or superseded one left is in it."""
    daily = scheduled()
    daily.add()
    daily.set_back(days_ago(2))
    daily.nudge_new()
    daily.wait_jobs(JobPhase.waiting)
    daily.say("trigger")
    _, second = daily.wait_jobs(JobPhase.superseded, JobPhase.waiting)
    daily.home.approve(second)
    daily.wait_jobs(JobPhase.superseded, JobPhase.done)
    since = datetime.fromisoformat((daily.folder / "NOTE").read_text().split()[1])
    assert since < days_ago(1.9)


def test_server_and_preview_agree_over_both_edges(home: Installation) -> None:
    """Temporal's own fires over both clock changes of a year are the previewed ones, the missing hour's included."""
    found = asyncio.run(_server_fires(home))
    for zone, cron, start, end in EDGES:
        times = read_times(zone=zone, cron=[cron])
        ours = {fire.due_at for fire in fires_between(times, start, end)}
        doubled = {fire.due_at for fire in dropped_between(times, start, end)}
        fired = found[zone, cron, start]
        assert fired - doubled == ours, (zone, cron)


def test_fire_that_no_person_asked_for_makes_no_job(scheduled: Make) -> None:
    """A schedule made on Temporal by a stranger, and an invented fire of a real one, start nothing."""
    daily = scheduled("unattended")
    daily.add()
    asyncio.run(_fire_as_stranger(daily))
    daily.nudge(datetime.now(UTC) + timedelta(days=300))
    daily.say("trigger")
    daily.wait_jobs(JobPhase.done)
    assert daily.keys()[0].endswith(".asked")


def test_second_passing_of_an_hour_is_dropped_and_shown(scheduled: Make) -> None:
    """A fire of an hour that passes twice, at its second passing, is the same run: it is dropped, once, as a record."""
    daily = scheduled("unattended")
    daily.add()
    daily.say("trigger")
    daily.wait_jobs(JobPhase.done)
    for _ in range(2):
        daily.nudge(datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
    wait_until(lambda: daily.records("dropped"), "the record")
    assert daily.records("dropped") == ["this local time passed twice; it ran at its first passing"]
    assert len(daily.jobs()) == 1


@pytest.mark.timeout(900)
def test_two_weeks_of_three_schedules(scheduled: Make) -> None:
    """Three schedules made up for two weeks each: every fire is one job, in order, none twice, the clock change too."""
    made = [scheduled("unattended") for _ in range(3)]
    for one in made:
        one.add()
        one.say("backfill", start="2026-03-22", end="2026-04-04T12:00")
    for one in made:
        one.wait_jobs(*[JobPhase.done] * 14, limit=timedelta(minutes=5))
        assert one.keys() == [f"2026-{day}T0230" for day in _days()]
        one.say("backfill", start="2026-03-22", end="2026-04-04T12:00")
        one.say("trigger")
        one.wait_jobs(*[JobPhase.done] * 15)


def _days() -> list[str]:
    first = datetime(2026, 3, 22, tzinfo=UTC)
    return [f"{first + timedelta(days=count):%m-%d}" for count in range(14)]


SPRING, AUTUMN = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 10, 15, tzinfo=UTC)
EDGES = [
    ("Europe/Berlin", "30 2 * * *", SPRING, SPRING + timedelta(days=35)),
    ("Europe/Berlin", "30 2 * * *", AUTUMN, AUTUMN + timedelta(days=25)),
    ("America/New_York", "30 2 * * *", SPRING, SPRING + timedelta(days=20)),
    ("America/New_York", "30 1 * * *", AUTUMN, AUTUMN + timedelta(days=25)),
    ("Europe/Berlin", "15 9 13 * fri", SPRING, SPRING + timedelta(days=60)),
]


async def _server_fires(home: Installation) -> dict[tuple[str, str, datetime], set[datetime]]:
    """What Temporal fires for each of ``EDGES``, by the ids of the workflows that it starts."""
    client = await home.temporal()
    found: dict[tuple[str, str, datetime], set[datetime]] = {}
    for zone, cron, start, end in EDGES:
        name = f"edge-{new_id()}"
        times = read_times(zone=zone, cron=[cron])
        action = ScheduleActionStartWorkflow(
            names.FIRE_WORKFLOW, id=names.fire_id("nobody", name), task_queue="nobody-polls"
        )
        policy = SchedulePolicy(overlap=ScheduleOverlapPolicy.ALLOW_ALL)
        spec = schedule_spec(times, datetime(2026, 12, 1, tzinfo=UTC))
        schedule = Schedule(action=action, spec=spec, policy=policy, state=ScheduleState(paused=True))
        handle = await client.create_schedule(name, schedule)
        await handle.backfill(ScheduleBackfill(start, end, ScheduleOverlapPolicy.ALLOW_ALL))
        expected = len(fires_between(times, start, end))
        found[zone, cron, start] = await _started(client, name, expected)
        await handle.delete()
    return found


async def _started(client: object, name: str, expected: int) -> set[datetime]:
    query = f"WorkflowId STARTS_WITH 'fire/nobody/{name}'"
    for _ in range(600):
        ids = [one.id async for one in client.list_workflows(query)]  # type: ignore[attr-defined]
        if len(ids) >= expected:
            return {names.parse_fire(one)[2] for one in ids}
        await asyncio.sleep(0.1)
    raise AssertionError(f"{name}: {len(ids)} fires of {expected}")


async def _fire_as_stranger(daily: Scheduled) -> None:
    """A schedule that only Temporal knows, and a fire of one that the ledger knows at a time that is none of its."""
    client = await daily.home.temporal()
    for schedule in ("strange", daily.name):
        for minute in (1, 2):
            await client.execute_workflow(
                names.FIRE_WORKFLOW,
                id=f"fire/{daily.thread}/{schedule}-2026-03-28T11:0{minute}:00Z",
                task_queue=names.QUEUE,
            )
