"""What a schedule does next, by the clock that is given and what the ledger says."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from perdure.contracts.schedules import FireNotice, ScheduleAsk, ScheduleDefinition, ScheduleWord
from perdure.policy.cron import read_times
from perdure.policy.firing import fires_between
from perdure.policy.taking import Choice, Standing, believed_now, choose, is_second_passing

ASKED = ScheduleAsk(template="daily", folder="/srv", zone="Europe/Berlin", cron=["30 2 * * *"])
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def definition(**more: Any) -> ScheduleDefinition:
    """A schedule every day at 02:30 in Berlin."""
    about = {
        "name": "daily",
        "asked": ASKED,
        "thread": "daily",
        "template": "daily",
        "template_source": "",
        "template_digest": hashlib.sha256(b"").hexdigest(),
        "inputs": {},
        "requester": "ada",
        "times": read_times(zone="Europe/Berlin", cron=["30 2 * * *"]),
    }
    return ScheduleDefinition.model_validate({**about, **more})


def standing(days: float = 1, **more: Any) -> Standing:
    """Everything until so many days ago was handled."""
    about = {"state": "active", "handled_until": NOW - timedelta(days=days), "taken": frozenset(), "busy": ""}
    return Standing(**{**about, **more})


def word(kind: str, **more: Any) -> ScheduleWord:
    """A person's word."""
    return ScheduleWord.model_validate({"kind": kind, "name": "daily", "by": "ada", "at": NOW, **more})


def test_missed_span_is_one_job() -> None:
    """After three days down one job stands for all three fires, under the newest one's name."""
    found = choose(definition(), standing(days=3), [], NOW)
    assert found.fire is not None
    assert (found.fire.key, found.merged, found.first, found.again) == ("2026-03-31T0230", 3, "2026-03-29T0230", False)


def test_nothing_due_is_nothing() -> None:
    """A look without a due fire does nothing: not at a resume either."""
    assert choose(definition(), standing(days=0), [], NOW) == Choice()
    assert choose(definition(), standing(days=3, state="paused"), [], NOW) == Choice()


def test_job_at_work_holds_the_next_fire() -> None:
    """While the last job is at work a fire is held, or skipped, or starts beside it, as the schedule says."""
    busy = standing(busy="daily/1")
    assert choose(definition(), busy, [], NOW) == Choice(held=True)
    skipped = choose(definition(overlap="skip"), busy, [], NOW)
    assert (skipped.skipped, skipped.fire is not None) == ("daily/1 was still at work", True)
    beside = choose(definition(overlap="allow"), busy, [], NOW)
    assert beside.fire is not None and not beside.held and not beside.skipped


def test_person_asks_first_then_time_then_the_past() -> None:
    """A trigger goes before what is due, a backfill behind it; each fire of a backfill is a job of its own, once."""
    past = word("backfill", start=datetime(2026, 3, 1, tzinfo=UTC), end=datetime(2026, 3, 3, tzinfo=UTC))
    words = [past, word("trigger")]
    seen: list[tuple[str, str]] = []
    known, state = set(), standing()
    while (found := choose(definition(), state, words, NOW)).fire is not None:
        seen.append((found.kind, found.fire.key))
        known.add(found.fire.key)
        until = found.fire.due_at if found.kind == "timed" else state.handled_until
        state = standing(handled_until=until, taken=frozenset(known))
        assert len(seen) < 10
    assert seen == [
        ("asked", "2026-03-31T120000Z.asked"),
        ("timed", "2026-03-31T0230"),
        ("backfill", "2026-03-01T0230"),
        ("backfill", "2026-03-02T0230"),
    ]


def test_each_word_of_one_second_is_a_fire() -> None:
    """Two triggers within a second are two jobs: neither takes the other's id."""
    first, second = "2026-03-31T120000Z.asked", "2026-03-31T120000Z.asked-2"
    for taken, wanted in ((set(), first), ({first}, second), ({first, second}, None)):
        state = standing(days=0, taken=frozenset(taken))
        found = choose(definition(), state, [word("trigger"), word("trigger")], NOW)
        assert (found.fire and found.fire.key) == wanted


def test_paused_schedule_still_does_what_a_person_asks() -> None:
    """A trigger while paused runs; what is due does not."""
    found = choose(definition(), standing(days=3, state="paused"), [word("trigger")], NOW)
    assert (found.kind, found.again) == ("asked", False)


def test_schedule_without_money_left_skips() -> None:
    """A fire that would pass the cap of the whole schedule is skipped; what cannot be known counts as too much."""
    capped = definition(cost_all_microdollars=5_000_000, cost_each_microdollars=1_000_000)
    assert not choose(capped, standing(spent_microdollars=4_000_000), [], NOW).skipped
    over = choose(capped, standing(spent_microdollars=4_000_001), [], NOW)
    assert over.skipped == "its jobs cost 4.00 USD in 30 days, and its cap is 5.00 USD"
    assert "not known whole" in choose(capped, standing(spent_unknown=True), [], NOW).skipped
    assert not choose(definition(), standing(spent_unknown=True), [], NOW).skipped


def test_server_a_little_ahead_is_believed() -> None:
    """A fire of its own time comes when the server says so, up to five minutes before this clock does; no other one."""
    times = definition().times
    due = datetime(2026, 4, 1, 0, 30, tzinfo=UTC)

    def believed(notice_at: datetime, now: datetime) -> datetime:
        notice = FireNotice(thread="daily", schedule="daily", due_at=notice_at)
        is_due = lambda at: bool(fires_between(times, at - timedelta(seconds=1), at))  # noqa: E731
        return believed_now(notice, now, is_due=is_due)

    early = due - timedelta(minutes=4)
    assert believed(due, early) == due
    assert believed(due - timedelta(minutes=1), early) == early
    assert believed(due, due - timedelta(minutes=6)) == due - timedelta(minutes=6)
    assert believed(due, NOW + timedelta(days=9)) == NOW + timedelta(days=9)


def test_second_passing_is_known() -> None:
    """The second 02:30 of a night in October is none of its own; the first one is a fire."""
    times = definition().times
    second = is_second_passing(times, datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
    assert second is not None and second.key == "2026-10-25T0230"
    assert is_second_passing(times, datetime(2026, 10, 25, 0, 30, tzinfo=UTC)) is None
