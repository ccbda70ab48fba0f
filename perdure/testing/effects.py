"""Put a kind of effect through every crash: yours or Perdure's, against whatever it really changes.

Each attempt runs in a process of its own, with the applier that workers use and a real ledger, and is killed where the
point says. The next attempt must find out what became of it: done once, never twice, and taken back to how it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from perdure.contracts.application import Direction, EffectInput, EffectOutcome
from perdure.contracts.base import JsonDict
from perdure.contracts.canonical import canonical_bytes
from perdure.contracts.plan import PlannedEffect
from perdure.effects.base import Effect, EffectRequest, Found
from perdure.effects.registry import find_fault, shipped_effects
from perdure.testing.effect_attempts import Attempts, die, in_child

_STEPS = ("probe", "check", "intent", "do", "verify", "receipt")
_MILLISECONDS = (1, 5, 25)


def crash_points(*, undo: bool = True) -> tuple[str, ...]:
    """Every point: around each step of planning, applying and (``undo``) taking back, and in the middle of ``do``."""
    around = [f"{when} {step}" for step in _STEPS for when in ("before", "after")]
    around += [f"in do {after}" for after in _MILLISECONDS]
    directions = ("do", "undo") if undo else ("do",)
    planning = ["plan: before plan", "plan: after plan"]
    return (*planning, *(f"{direction}: {point}" for direction in directions for point in around))


CRASH_POINTS = crash_points()
"""For ``pytest.mark.parametrize``."""


@dataclass
class EffectBench:
    """Plans effects and applies them. One bench serves many tests; every plan is a job of its own."""

    folder: Path
    effects: Iterable[Effect] = ()
    """Yours; the shipped ones are there as well."""
    secrets: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        mine = list(self.effects)
        for effect in mine:
            _expect(not (fault := find_fault(effect)), fault)
        self.kinds: dict[str, Effect] = {effect.kind: effect for effect in (*shipped_effects(), *mine)}
        self._attempts = Attempts(self.folder, self.kinds, self.secrets)

    def plan(self, kind: str, arguments: JsonDict, *, point: str = "", **step: Any) -> PlannedEffect:
        """Plan one effect as a template's step would: ``probe``, ``undo``, ``require``, ``irreversible``, ``runs_on``.

        ``point``: die there once before.
        """
        effect = self.kinds[kind]
        limit = step.pop("attempt_limit", timedelta(minutes=1))
        request = EffectRequest(id="step", arguments=arguments, attempt_limit=limit, **step)
        if point:
            in_child(lambda: self._plan_and_die(effect, request, point))
        context = self._attempts.context()
        draft = effect.plan(request, context)
        # As in a job, whose every round has one time, however often its plan is frozen.
        again = effect.plan(request, replace(self._attempts.context(), now=context.now))
        _expect(draft == again, f"{kind}: planned twice in the same world it gave two plans.")
        canonical_bytes(draft.body)  # raises for what cannot be hashed, such as a fraction
        return PlannedEffect(
            id="step",
            kind=kind,
            version=effect.version,
            summary=draft.summary,
            body=draft.body,
            target=draft.target,
            requires=draft.requires,
            inverse=draft.inverse,
            artifacts=draft.artifacts,
            runs_on="worker" if draft.runs_on == "worker" else "sandbox",
            ways_out=draft.ways_out,
            attempt_limit_seconds=int(limit.total_seconds()),
        )

    def _plan_and_die(self, effect: Effect, request: EffectRequest, point: str) -> JsonDict:
        if point == "before plan":
            die()
        effect.plan(request, self._attempts.context())
        die()
        return {}

    def approve(self, planned: PlannedEffect) -> EffectInput:
        """Grant the plan its permit."""
        return self._attempts.permit(planned)

    def apply(self, question: EffectInput, direction: Direction = "do", *, point: str = "") -> EffectOutcome:
        """Apply or take back, in processes of their own; the first is killed at ``point``."""
        return self._attempts.run(question, direction, point)

    def found(self, planned: PlannedEffect) -> Found:
        """What the probe says."""
        return self.kinds[planned.kind].probe(planned.body, self._attempts.context()).found

    def survive(
        self,
        point: str,
        kind: str,
        arguments: JsonDict,
        *,
        look: Callable[[], Any],
        count: Callable[[], int] | None = None,
        may_be_unknown: bool = False,
        **step: Any,
    ) -> EffectOutcome:
        """Plan, do and take back one effect, killed once at ``point``; return how ``do`` ended.

        ``look`` gives the state of what the effect changes, in a form that compares; ``count`` how often it happened,
        as the world saw it. ``may_be_unknown``: the kind cannot always tell, and says so; the story ends there.

        Raises:
            AssertionError: it happened twice or not at all, was not taken back, or nobody could tell.
        """
        phase, _, where = point.partition(": ")
        before, already = look(), count() if count else 0
        planned = self.plan(kind, arguments, point=where if phase == "plan" else "", **step)
        _expect(look() == before, f"{kind}: planning changed the world.")
        question = self.approve(planned)
        done = self.apply(question, point=where if phase == "do" else "")
        if done.state == "unknown" and may_be_unknown:
            return done
        _expect(done.state == "done" and done.verified, f"{kind} ended {done.state} after {point!r}: {done.detail}")
        after = look()
        _expect(after != before, f"{kind} says done and nothing changed. Does `look` see what it changes?")
        if count:
            _expect(count() - already == 1, f"{kind} happened {count() - already} times after {point!r}.")
        found = self.found(planned)
        _expect(found is Found.done or may_be_unknown, f"{kind} is done, and its probe says {found}.")
        self.apply(question)
        _expect(look() == after, f"{kind}: asked for again, it happened again.")
        if planned.inverse.body is not None:
            self._take_back(planned, question, before, look, where if phase == "undo" else "")
        return done

    def _take_back(
        self, planned: PlannedEffect, question: EffectInput, before: Any, look: Callable[[], Any], point: str
    ) -> None:
        undone = self.apply(question, "undo", point=point)
        _expect(undone.state == "done", f"Undo of {planned.kind} ended {undone.state} after {point!r}: {undone.detail}")
        now = look()
        _expect(now == before, f"Undo of {planned.kind} after {point!r} left {now!r}; before it was {before!r}.")
        found = self.found(planned)
        _expect(found in (Found.not_done, Found.unknown), f"{planned.kind} is undone, and its probe says {found}.")


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
