"""Effects that somebody outside has to finish: begun, then looked at again and again until they are done or lapsed.

Such an effect is never in doubt: its ``do`` may be repeated, so what cannot be told now is only looked at again later.
Of its wait the ledger holds an intent without an end; a phase of the job says what is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from perdure.contracts.base import JsonDict
from perdure.effects.base import Effect, EffectContext, Found, Parking, Probe
from perdure.errors import EffectFailed, EffectUnknown, PerdureError, StageFailed

_PASSES = (EffectUnknown, StageFailed, OSError)
"""Of these the next look may be free: silence, git that cannot reach its remote, a machine that is out of processes."""

Step = Literal["done", "again", "wait", "drift", "stopped", "failed"]
"""done: it is there · again: proven not done, do it · wait: look again later · the others: ended so, and withdrawn."""


@dataclass(frozen=True)
class Verdict:
    """What is to become of it; ``detail`` is for people."""

    step: Step
    detail: str


def parking_of(effect: Effect) -> Parking | None:
    """The effect as one that parks; ``None`` for a kind that does not."""
    return cast(Parking, effect) if hasattr(effect, "withdraw") else None


def judge_parked(
    parking: Parking, body: JsonDict, context: EffectContext, cancelled: Callable[[], str], error: Exception | None
) -> Verdict:
    """Look at a begun effect and say what becomes of it; one that ends unfinished is withdrawn first.

    ``cancelled`` tells by whom the job was, or nothing. ``error``: what ``do`` has just raised.
    """
    probe = parking.probe(body, context)
    if probe.found is Found.done:
        return Verdict("done", probe.detail)
    if by := cancelled():
        return _withdrawn(parking, body, context, "stopped", f"cancelled by {by}")
    if probe.found in (Found.lapsed, Found.foreign):
        return _withdrawn(parking, body, context, "drift", probe.detail)
    if error is not None and probe.found is Found.not_done and not isinstance(error, _PASSES):
        return _withdrawn(parking, body, context, "failed", str(error))
    if probe.found is Found.not_done and error is None:
        return Verdict("again", probe.detail)
    return Verdict("wait", _say(probe, error))


def _say(probe: Probe, error: Exception | None) -> str:
    if probe.found is Found.waiting:
        return probe.detail
    return f"cannot be told now: {error or probe.detail}"


def _withdrawn(parking: Parking, body: JsonDict, context: EffectContext, step: Step, detail: str) -> Verdict:
    """Take back what is unfinished. It may just be finished meanwhile: then it is done, whatever was wanted."""
    try:
        said = parking.withdraw(body, context)
    except (PerdureError, OSError) as error:
        if step == "failed" and isinstance(error, EffectFailed):
            return Verdict(step, detail)  # refused from the first to the last, by the same server
        return Verdict("wait", f"{detail}; it could not be taken back yet: {error}")
    probe = parking.probe(body, context)
    return Verdict("done", probe.detail) if probe.found is Found.done else Verdict(step, f"{detail} ({said})")
