"""``perdure schedule``: what starts by itself, when, and how it went."""

from __future__ import annotations

import click

from perdure.cli.catalog import SCHEDULE
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.paper import Paper, Row, Span
from perdure.cli.session import Session, command
from perdure.cli.words import PHASES, ago, clock, counted
from perdure.contracts.job import JobPhase
from perdure.contracts.schedules import FireView, NextFire, ScheduleView

_MARKS: dict[str, Span] = {
    "fired": ("●", "good"),
    "missed": ("◆", "warn"),
    "skipped": ("–", "warn"),
    "dropped": ("–", "dim"),
    "alert": ("✗", "bad"),
    "recovered": ("✓", "good"),
}


@click.group(
    "schedule",
    cls=LazyGroup,
    sections=SCHEDULE,
    context_settings=CONTEXT,
    examples=[
        ("perdure schedule add release --cron '0 9 * * mon' --zone Europe/Berlin", "plan a release every Monday"),
        ("perdure schedule list", "when each fires next, and how the last job ended"),
        ("perdure schedule next release", "the next ten times, over both clock changes"),
    ],
)
def schedule() -> None:
    """Jobs that start by the clock, in your name, and wait for your approval like any other.

    A wait for a person never holds a schedule: the next fire plans anew, and its plan takes the place of one that
    nobody has touched. What was missed while Perdure was down is handled once, for the whole span.
    """


@command("list", examples=[("perdure schedule list", "with the heartbeat of each")])
@click.option("--thread", default=None, metavar="NAME", help="Only those of this thread.")
def list_schedules(session: Session, thread: str | None) -> None:
    """List schedules: when each fires next, when it last did, and what came of it."""
    with session.door() as door:
        found = door.get("/v1/schedules", list[ScheduleView], thread=thread)
    if session.as_json:
        session.answer(found)
    elif not found:
        session.paper.line(("No schedules. Make one: perdure schedule add TEMPLATE --cron '0 9 * * mon'", "dim"))
    else:
        header = ("SCHEDULE", "TEMPLATE", "WHEN", "NEXT", "LAST", "")
        session.paper.table([_row(one) for one in found], header=header, shrink=5)


@command("show", examples=[("perdure schedule show release", "what it needs, and what became of each fire")])
@click.argument("name")
def show_schedule(session: Session, name: str) -> None:
    """Show a schedule: its definition, the approvals each fire needs, and its last fires with those that were none."""
    with session.door() as door:
        found = door.get(f"/v1/schedules/{name}", ScheduleView)
    if session.as_json:
        session.answer(found)
    else:
        write_schedule(session.paper, found)


@command(
    "next",
    examples=[
        ("perdure schedule next release", "ten times"),
        ("perdure schedule next release 400 --json", "a year, for a script"),
        ("perdure schedule next release --after 2027-03-26", "seen from before a clock change"),
    ],
)
@click.argument("name")
@click.argument("count", type=click.IntRange(1, 1000), default=10)
@click.option("--after", default="", metavar="TIME", help="See it from this local time on; default: now.")
def show_next(session: Session, name: str, count: int, after: str) -> None:
    """Show the next COUNT fires, and what happens where the clock leaves an hour out or runs through one twice."""
    with session.door() as door:
        found = door.get(f"/v1/schedules/{name}/next", list[NextFire], count=count, after=after)
    if session.as_json:
        session.answer(found)
    else:
        write_next(session.paper, found)


def write_schedule(paper: Paper, found: ScheduleView) -> None:
    """Write one schedule whole."""
    paper.line((found.name, "title"), "   ", *_state(found))
    paper.table(_facts(found))
    if found.trouble:
        paper.line("  ", ("◆ ", "warn"), found.trouble)
    if found.template_changed:
        paper.line("  ", ("◆ ", "warn"), "The template's file is another one by now; `perdure schedule edit` takes it.")
    if found.next:
        paper.line()
        write_next(paper, found.next)
    if found.fires:
        paper.line()
        paper.table([_fire_row(one) for one in found.fires], header=("", "FIRE", "WHEN", "JOB", ""), shrink=4)


def write_next(paper: Paper, fires: list[NextFire]) -> None:
    """Write due times, one a line."""
    if not fires:
        paper.line(("  It never fires again.", "warn"))
    for fire in fires:
        mark: Span = ("● ", "good") if fire.fires else ("– ", "dim")
        paper.line("  ", mark, fire.local, ("   " + fire.what if fire.what else "", "warn"))


def _facts(found: ScheduleView) -> list[Row]:
    rows: list[Row] = [
        [("runs", "dim"), f"{found.template} for {found.requester}, in thread {found.thread}"],
        [("when", "dim"), f"{'; '.join(found.said)} ({found.zone})"],
        [("needs", "dim"), "; ".join(found.approvals) or "nobody"],
        [("overlap", "dim"), _OVERLAPS[found.overlap]],
    ]
    if found.inputs:
        rows.append([("inputs", "dim"), ", ".join(f"{name}={value}" for name, value in _given(found).items())])
    if found.cost_all_microdollars or found.cost_each_microdollars:
        rows.append([("cost", "dim"), _cost(found)])
    return rows


_OVERLAPS = {
    "merge": "a fire while its job is at work is held, and merged with those that follow",
    "skip": "a fire while its job is at work is skipped",
    "allow": "a fire while its job is at work starts another one beside it",
}


def _given(found: ScheduleView) -> dict[str, object]:
    """Inputs that say something: not those left empty."""
    plain = {name: value for name, value in found.inputs.items() if value not in (None, "", [])}
    return {name: value.get("path", value) if isinstance(value, dict) else value for name, value in plain.items()}


def _cost(found: ScheduleView) -> str:
    parts = [f"{found.spent_microdollars / 1e6:.2f} USD" + (" and more, unknown" if found.spent_unknown else "")]
    if found.cost_all_microdollars:
        parts.append(f"of {found.cost_all_microdollars / 1e6:.2f} USD in {counted(found.cost_days, 'day')}")
    if found.cost_each_microdollars:
        parts.append(f"at most {found.cost_each_microdollars / 1e6:.2f} USD a job")
    return ", ".join(parts)


def _row(found: ScheduleView) -> Row:
    ahead = next((fire.local[:16] for fire in found.next if fire.fires), "–")
    return [
        (found.name, "title"),
        found.template,
        "; ".join(found.said),
        ahead if found.state == "active" else ("paused", "warn"),
        _last(found),
        _news(found),
    ]


def _last(found: ScheduleView) -> Span:
    if found.last_at is None:
        return "never", "dim"
    phase = JobPhase(found.last_phase)
    mark, style = PHASES[phase]
    return f"{mark} {phase.value.replace('_', ' ')} {ago(found.last_at)}", style


def _news(found: ScheduleView) -> Span:
    if found.alerted:
        return f"✗ {found.trouble}", "bad"
    if found.state == "paused":
        return found.note, "warn"
    if found.open_job:
        return f"◆ {found.open_job} waits for you", "warn"
    return found.trouble, "warn"


def _state(found: ScheduleView) -> tuple[Span, ...]:
    if found.state == "paused":
        return (("‖ paused", "warn"), f": {found.note}" if found.note else "")
    if found.state == "deleted":
        return (("deleted", "dim"), f": {found.note}" if found.note else "")
    return (("✓ active", "good"),)


def _fire_row(fire: FireView) -> Row:
    job = f"{fire.job} {fire.phase.replace('_', ' ')}" if fire.job else ""
    return [_MARKS.get(fire.what, ("·", "dim")), fire.key, clock(fire.at), job, f"{fire.what} {fire.detail}".strip()]
