"""What each step of a plan would do, seen while the plan is made: a change, nothing, or nobody can tell."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import timedelta

from perdure.contracts.plan import Forecast, PlannedEffect
from perdure.effects.base import Effect, EffectContext, Found
from perdure.errors import PerdureError
from perdure.store.trouble import StoreTrouble

_AT_ONCE = 4
_ALL_LIMIT = timedelta(minutes=3)
"""For all steps together; a plan is frozen within ten minutes."""

Look = tuple[Effect, PlannedEffect]
Opening = Callable[[PlannedEffect], AbstractContextManager[EffectContext]]


def foresee(looks: Sequence[Look], opening: Opening) -> list[Forecast]:
    """Return one forecast a step, in their order. Reads only; what fails or takes too long is ``unknown``, and why."""
    deadline = time.monotonic() + _ALL_LIMIT.total_seconds()

    def look(one: Look) -> Forecast:
        effect, planned = one
        if time.monotonic() > deadline:
            return _unknown(planned, "not looked at: the steps before took too long")
        with opening(planned) as context:
            return _foresee_one(effect, planned, context)

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
        return list(threads.map(look, looks))


def _foresee_one(effect: Effect, planned: PlannedEffect, context: EffectContext) -> Forecast:
    try:
        probe = effect.probe(planned.body, context)
        if probe.found is Found.done:
            return Forecast(effect=planned.id, would="nothing", detail=_short(probe.detail))
        if probe.found is not Found.not_done:
            return _unknown(planned, probe.detail or f"the world is {probe.found}")
        problems = effect.check(planned.body, context)
    except StoreTrouble:
        raise
    except (PerdureError, OSError) as error:
        return _unknown(planned, str(error))
    if problems:  # a step before may make it so; nobody can tell before it has happened
        return _unknown(planned, f"it could not begin now: {'; '.join(problems)}")
    return Forecast(effect=planned.id, would="change", detail=_short(probe.detail))


def _unknown(planned: PlannedEffect, detail: str) -> Forecast:
    return Forecast(effect=planned.id, would="unknown", detail=_short(detail))


def _short(detail: str) -> str:
    return " ".join(detail.split())[:300]
