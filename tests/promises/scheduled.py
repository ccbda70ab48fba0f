"""Schedules: a fire is one run, an edge of the clock is no hole, no person holds them, money and names are guarded."""

from __future__ import annotations

from tests.promises.kept import Kept

ABSENT = "An absent person breaks nothing: no wait holds a schedule."
ONCE = "At most once, and known: a second fire of a name is the same run."
CAPPED = "Cost is linear and capped, over a whole schedule."
AUTHORITY = "Least authority: what no signature vouches for starts nothing."

_FIRING = "tests/policy/test_firing.py"
_TAKING = "tests/policy/test_taking.py"
_STORED = "tests/store/test_schedules.py"

KEPT: tuple[Kept, ...] = (
    Kept(
        ONCE,
        "perdure/policy/firing.py",
        "            yield Fire(_edge(zone, second, first), _key(naive), MISSING)\n",
        "            continue\n",
        f"{_FIRING}::test_missing_hour_runs_at_the_next_valid_minute",
    ),
    Kept(
        ABSENT,
        "perdure/policy/taking.py",
        '        found = Choice(due[-1], "timed", merged=len(due), first=due[0].key, again=more)\n',
        '        found = Choice(due[0], "timed", first=due[0].key, again=more)\n',
        f"{_TAKING}::test_missed_span_is_one_job",
    ),
    Kept(
        ONCE,
        "perdure/policy/taking.py",
        "        counts[name] += 1\n",
        "        counts[name] = 1\n",
        f"{_TAKING}::test_each_word_of_one_second_is_a_fire",
    ),
    Kept(
        CAPPED,
        "perdure/policy/taking.py",
        "    if needed > cap:\n",
        "    if False:\n",
        f"{_TAKING}::test_schedule_without_money_left_skips",
    ),
    Kept(
        ONCE,
        "perdure/store/fires.py",
        "    if schedule.handled_until != take.expected:\n",
        "    if False:\n",
        f"{_STORED}::test_second_fire_of_a_key_is_the_same_run",
    ),
    Kept(
        ABSENT,
        "perdure/store/fires.py",
        "        if row.state == OPEN and not _is_touched(connection, row.job_id):\n",
        "        if row.state == OPEN:\n",
        f"{_STORED}::test_newer_plan_supersedes_only_what_nobody_touched",
    ),
    Kept(
        AUTHORITY,
        "perdure/store/schedules.py",
        '    if (decision.kind, decision.digest, decision.by) != ("schedule", ref.sha256, word.by):\n',
        "    if False:\n",
        f"{_STORED}::test_word_of_somebody_else_is_refused",
    ),
)
