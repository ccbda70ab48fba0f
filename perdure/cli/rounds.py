"""The rounds of a job: each ends with a plan that somebody sent back, or that the world overtook."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from perdure.cli.paper import Row, Span
from perdure.cli.plan_view import SHORT
from perdure.contracts.http import EventView


def split_rounds(events: Sequence[EventView]) -> tuple[list[Row], list[EventView]]:
    """Return (a line for each round before the last one, the events of the last one)."""
    begins = [at for at, event in enumerate(events) if _begins_round(events, at)]
    if len(begins) < 2:
        return [], list(events)
    rounds = [events[start:end] for start, end in pairwise(begins)]
    return [_line(one) for one in rounds], list(events[begins[-1] :])


def _begins_round(events: Sequence[EventView], at: int) -> bool:
    """Whether the event is the first of a round: its first step, or the plan of one that has no steps."""
    number = _round_of(events[at])
    return number > 0 and all(_round_of(event) != number for event in events[:at])


def _round_of(event: EventView) -> int:
    """The round that an event says it belongs to; 0 when it says none."""
    body: dict[str, Any] = event.body.get("plan", {}) if event.kind == "plan.frozen" else event.body
    number = body.get("round", 0) if event.kind in {"stage", "plan.frozen"} and isinstance(body, dict) else 0
    return number if isinstance(number, int) else 0


def _line(events: Sequence[EventView]) -> Row:
    """The plan, its title, and what became of it."""
    row: list[Span] = ["no plan"]
    ending: list[Span] = []
    for event in events:
        plan = event.body.get("plan")
        if event.kind == "plan.frozen" and isinstance(plan, dict):
            row = [
                ("PLAN ", "title"),
                (str(plan.get("digest", ""))[:SHORT], "digest"),
                f"  {event.body.get('title', '')}",
            ]
        elif event.kind == "gate.closed":
            said = event.body.get("detail") or str(event.body.get("outcome", "")).replace("_", " ")
            ending = [f"   {said}"]
        elif event.kind == "application.closed":
            ending = [f"   {event.body.get('state', '')}: {event.body.get('detail', '')}".rstrip(": ")]
    return [*row, *ending]
