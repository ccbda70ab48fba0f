"""Tells a job's events as they happen: stages on one growing line, effects as they are done."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from perdure.cli.live import LiveLine
from perdure.cli.paper import Span
from perdure.cli.words import EFFECTS, STEPS, WORKING
from perdure.contracts.http import EventView, JobView
from perdure.contracts.job import JobPhase

_ORDER = list(JobPhase)
_DRAFTING = {JobPhase.gathering, JobPhase.analyzing, JobPhase.drafting, JobPhase.verifying}
_NAMED_STAGES = {"verify"}
"""Stages whose steps are told one by one when they are not green; of the others one summary is enough."""

Step = tuple[str, str, str]
"""Name, status, summary."""


class Story:
    """Turns events into lines. Tell them in the order of the ledger; an event of an unknown kind is passed over."""

    def __init__(self, live: LiveLine, name: str, own: Collection[str] = ()) -> None:
        self._live = live
        self._name = name
        self._own = own
        self._stage = ""
        self._steps: list[Step] = []
        self._phase: JobPhase | None = None
        self._direction = "do"
        self._titled = False
        self._stopped_by = ""

    def tell(self, event: EventView) -> None:
        """Tell one event."""
        kind, body = event.kind, event.body
        if kind == "stage":
            self._on_stage(body)
        elif kind == "job.phase":
            self._on_phase(body)
        elif kind.startswith("decision."):
            self._on_decision(kind.removeprefix("decision."), body)
        elif kind.startswith(("agent.", "message.")):
            self._on_agent(kind, body)
        elif kind == "effect.intent":
            self._on_intent(body)
        elif kind == "effect.receipt":
            self._on_receipt(body)
        elif kind == "application.closed" and body.get("state") == "drift":
            self._stopped_by = str(body.get("detail", ""))

    def show(self, job: JobView) -> None:
        """Say what goes on now."""
        self._live.busy(WORKING.get(job.phase, ""))

    def finish(self) -> None:
        """Tell what is still held back, and end the line."""
        self._flush()
        self._live.end()

    def _on_stage(self, body: dict[str, Any]) -> None:
        if self._phase is not None and self._phase.is_final:
            return  # a source that was still being read when another one failed: it changes nothing any more
        if body.get("stage") != self._stage:
            self._flush()
            self._stage = str(body.get("stage", ""))
        self._steps.append((str(body.get("name", "")), str(body.get("status", "ok")), str(body.get("summary", ""))))

    def _on_phase(self, body: dict[str, Any]) -> None:
        try:
            phase = JobPhase(body.get("phase", ""))
        except ValueError:
            return
        self._flush()
        if self._phase is not None and phase in _DRAFTING and _ORDER.index(phase) < _ORDER.index(self._phase):
            self._again(str(body.get("summary", "")))
        self._phase = phase
        self._live.busy(WORKING.get(phase, ""))

    def _again(self, why: str) -> None:
        self._titled = False
        if self._stopped_by:
            why = f"The world has moved since the plan: {self._stopped_by} The job plans again."
            self._stopped_by = ""
        if why:
            self._live.say(["  ", ("↻ ", "busy"), why])

    def _on_decision(self, kind: str, body: dict[str, Any]) -> None:
        decision = body.get("decision", body)
        if not isinstance(decision, dict) or decision.get("id") in self._own:
            return
        comment = f": {decision['comment']}" if decision.get("comment") else ""
        if kind == "break_glass":
            self._live.say(["  ", ("!! GLASS BROKEN", "bad"), (f" by {decision.get('by', '?')}{comment}", "bad")])
            return
        self._live.say(["  ", (kind.replace("_", " "), "title"), f" by {decision.get('by', '?')}{comment}"])

    def _on_agent(self, kind: str, body: dict[str, Any]) -> None:
        """What an agent is at; its turns are not told one by one: `perdure show` counts them."""
        if kind == "agent.started":
            self._flush()
            self._live.busy("an agent works")
        elif kind == "message.delivered":
            self._live.say(["  ", ("heard", "title"), f" in the request of turn {body.get('turn', '?')}"])
        elif kind == "agent.dial":
            self._live.say(
                ["  ", ("dial ", "title"), f"down to {body.get('dial', '?')} by itself: {body.get('why', '')}"]
            )
        elif kind == "agent.ended":
            spent = body.get("spent") or {}
            mark = STEPS["ok" if body.get("reason") in {"done", "answered"} else "failed"]
            used = f"{spent.get('turns', 0)} turns, {spent.get('calls', 0)} calls"
            self._live.say(["  ", ("agent ", "title"), mark, f" {body.get('reason', '')} · {used}"])

    def _on_intent(self, body: dict[str, Any]) -> None:
        self._flush()
        self._turn(str(body.get("direction", "do")))
        self._live.busy(f"{_number(body)} {body.get('kind', '')}")

    def _on_receipt(self, body: dict[str, Any]) -> None:
        self._turn(str(body.get("direction", "do")))
        state = str(body.get("state", ""))
        mark = EFFECTS.get(state, ("·", "dim"))
        detail = f" {body['detail']}" if body.get("detail") and state not in {"done", "already"} else ""
        self._live.add(f"{_number(body)} ", mark, detail)

    def _turn(self, direction: str) -> None:
        if direction != self._direction:
            self._direction = direction
            self._live.start("  ", ("taking back" if direction == "undo" else "going on", "warn"))

    def _flush(self) -> None:
        """Put the finished stage on the line."""
        steps, stage = self._steps, self._stage
        self._steps, self._stage = [], ""
        if not steps:
            return
        if not self._titled:
            self._titled = True
            self._live.start((self._name, "title"))
        for item in _items(stage, steps):
            self._live.add(*item)


def _items(stage: str, steps: list[Step]) -> list[list[Span]]:
    """One item for what went well, one for each step that did not."""
    ordered = sorted(steps)  # they run at once: who was first says nothing
    well = [step for step in ordered if step[1] in {"ok", "finished"}]
    others = [step for step in ordered if step not in well]
    items: list[list[Span]] = []
    if well:
        said = [name for name, _, _ in well] if stage in _NAMED_STAGES else [summary for _, _, summary in well]
        items.append([f"{stage} ", STEPS["ok"], *_dimmed(", ".join(filter(None, said)))])
    for name, status, summary in others:
        label = f"{stage} " if not well and len(others) == 1 else f"{stage}.{name} " if name else f"{stage} "
        items.append([label, STEPS.get(status, ("·", "dim")), *_dimmed(summary)])
    return items


def _dimmed(text: str) -> list[Span]:
    return [f" {text}"] if text else []


def _number(body: dict[str, Any]) -> str:
    index = body.get("index", 0)
    return str(index + 1) if isinstance(index, int) else "?"
