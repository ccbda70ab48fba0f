"""Every point at which a worker is killed, generated from the registry of effects and the ledger's own verbs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from perdure.policy.templates import parse_template

_TEMPLATES = Path(__file__).parent / "templates"

_EFFECT_CALLS = {"check": 2, "probe": 1, "do": 1, "verify": 1}
"""Calls of one effect in one application: a check when it is opened (not of the first), everything in the attempt."""

_LEDGER_CALLS_OF_EFFECT = ("begin_effect", "finish_effect")

_LEDGER_CALLS = (
    "admit_job",
    "record_plan",
    "open_gate",
    "close_gate",
    "close_application",
)

_WHEN = ("before", "after")


def kinds_of(template: str, *, undone: bool = False) -> list[str]:
    """Kinds of effect of a template of the sweeps in its order; ``undone``: without those that cannot be taken back."""
    path = _TEMPLATES / f"{template}.yaml"
    steps = parse_template(path.read_text(), path=path.name).apply
    return list(dict.fromkeys(step.effect for step in steps if not (undone and step.irreversible)))


def apply_points(kinds: Iterable[str], *, foreseen: bool = False) -> list[str]:
    """Kill points while a plan with one effect of each kind is applied.

    ``foreseen``: a plan without a draft, whose steps are looked at once more when it is made.
    """
    points: list[str] = []
    for position, kind in enumerate(kinds):
        for call, once in (_EFFECT_CALLS | ({} if position else {"check": 1})).items():
            times = once + (foreseen and call in ("check", "probe"))
            points += [f"effect.{call}[{kind}]#{nth}:{when}" for nth in range(1, times + 1) for when in _WHEN]
        points += [f"ledger.{call}[{kind}]#1:{when}" for call in _LEDGER_CALLS_OF_EFFECT for when in _WHEN]
    return points


def gate_points() -> list[str]:
    """Kill points on the way of a plan to its permit and of an application to its end."""
    return [f"ledger.{call}#1:{when}" for call in _LEDGER_CALLS for when in _WHEN]


def undo_points(kinds: Iterable[str]) -> list[str]:
    """Kill points while the same effects are taken back by a plan of its own."""
    points: list[str] = []
    for kind in kinds:
        points += [f"effect.{call}[{kind}]#1:{when}" for call in ("do", "verify") for when in _WHEN]
        points += [f"ledger.{call}[{kind}]#1:{when}" for call in _LEDGER_CALLS_OF_EFFECT for when in _WHEN]
    return points


def park_points() -> list[str]:
    """Kill points while a parked effect is looked at again, and while it is withdrawn."""
    looks = [f"effect.probe[forge.pull_request]#{nth}:{when}" for nth in (2, 3) for when in _WHEN]
    return looks + [f"effect.withdraw[forge.pull_request]#1:{when}" for when in _WHEN]
