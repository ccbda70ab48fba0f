"""What a schedule does next, from what it is, how it stands and what time it is. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta

from perdure.contracts.schedules import FireNotice, ScheduleDefinition, ScheduleState, ScheduleWord, Times
from perdure.policy.firing import DOUBLED, Fire, dropped_between, fires_between, instant_key

CLOCKS_APART = timedelta(minutes=5)
"""A fire is believed to be due although this machine's clock says not yet: the server's is ahead by no more."""

LATE = timedelta(minutes=10)
"""A fire that comes later than that was missed: nothing ran at its time."""

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Standing:
    """What matters of how a schedule stands in the ledger."""

    state: ScheduleState
    handled_until: datetime
    taken: AbstractSet[str]
    busy: str
    spent_microdollars: int = 0
    spent_unknown: bool = False


@dataclass(frozen=True)
class Choice:
    """What to do now. ``fire``: make it a job, or with ``skipped`` give it up, saying why."""

    fire: Fire | None = None
    kind: str = "timed"
    """timed, asked or backfill."""
    merged: int = 1
    """How many fires it stands for; their first one is ``first``."""
    first: str = ""
    skipped: str = ""
    held: bool = False
    """Something is due and waits for the last job to end."""
    again: bool = False
    """More is due behind it."""


NOTHING = Choice()


def choose(definition: ScheduleDefinition, standing: Standing, words: Sequence[ScheduleWord], now: datetime) -> Choice:
    """Return what is to be done: what a person asked for first, then all that is due as one, then the past in order.

    ``words``: verified triggers and backfills, oldest first.
    """
    asked = list(_asked(words, standing.taken))
    due = fires_between(definition.times, standing.handled_until, now) if standing.state == "active" else []
    past = list(_past(definition.times, words, standing.taken, now))
    more = len(asked) + bool(due) + len(past) > 1
    if asked:
        found = Choice(asked[0], "asked", first=asked[0].key, again=more)
    elif due:
        found = Choice(due[-1], "timed", merged=len(due), first=due[0].key, again=more)
    elif past:
        found = Choice(past[0], "backfill", first=past[0].key, again=more)
    else:
        return NOTHING
    return _allow(found, definition, standing)


def believed_now(notice: FireNotice, now: datetime, *, is_due: Callable[[datetime], bool]) -> datetime:
    """Return the time to go by: the server's, where it fired one of the schedule's own times a little ahead of us."""
    at = notice.due_at
    if at is None or not now < at <= now + CLOCKS_APART or not is_due(at):
        return now
    return at


def is_second_passing(times: Times, at: datetime) -> Fire | None:
    """Return the fire that ``at`` would be, when that local time passes for the second time then."""
    found = [fire for fire in dropped_between(times, at - _SECOND, at) if fire.what == DOUBLED and fire.due_at == at]
    return found[0] if found and not fires_between(times, at - _SECOND, at) else None


def _allow(found: Choice, definition: ScheduleDefinition, standing: Standing) -> Choice:
    if standing.busy and definition.overlap != "allow":
        if definition.overlap == "skip" and found.kind == "timed":
            return _skip(found, f"{standing.busy} was still at work")
        return Choice(held=True)
    if why := _over_cap(definition, standing):
        return _skip(found, why)
    return found


def _skip(found: Choice, why: str) -> Choice:
    return Choice(found.fire, found.kind, found.merged, found.first, skipped=why, again=found.again)


def _over_cap(definition: ScheduleDefinition, standing: Standing) -> str:
    """Why the schedule's money does not reach for one more job; empty while it does. An unknown cost is too much."""
    cap = definition.cost_all_microdollars
    if cap is None:
        return ""
    span = f"in {definition.cost_days} days"
    if standing.spent_unknown:
        return f"what its jobs cost {span} is not known whole, and its cap is {_money(cap)}"
    needed = standing.spent_microdollars + (definition.cost_each_microdollars or 1)
    if needed > cap:
        return f"its jobs cost {_money(standing.spent_microdollars)} {span}, and its cap is {_money(cap)}"
    return ""


def _money(microdollars: int) -> str:
    return f"{microdollars / 1e6:.2f} USD"


def _asked(words: Sequence[ScheduleWord], taken: AbstractSet[str]) -> Iterator[Fire]:
    """A fire for each word; the second word of one second has an id of its own, or it would be lost."""
    counts: Counter[str] = Counter()
    for word in words:
        if word.kind != "trigger":
            continue
        name = instant_key(word.at)
        counts[name] += 1
        key = f"{name}.asked" + (f"-{counts[name]}" if counts[name] > 1 else "")
        if key not in taken:
            yield Fire(word.at, key)


def _past(times: Times, words: Sequence[ScheduleWord], taken: AbstractSet[str], now: datetime) -> Iterator[Fire]:
    seen = set(taken)
    for word in words:
        if word.kind != "backfill" or word.start is None or word.end is None:
            continue
        for fire in fires_between(times, word.start - _SECOND, min(word.end, now)):
            if fire.key not in seen:
                seen.add(fire.key)
                yield fire
