"""Every point at which a worker is killed, generated from the registry of effects and the ledger's own verbs."""

from __future__ import annotations

from perdure.effects.registry import default_effects

_EFFECT_CALLS = {"check": 2, "probe": 1, "do": 1, "verify": 1}
"""Calls of one effect in one application: a check when it is opened, everything in the attempt."""

_LEDGER_CALLS_OF_EFFECT = ("begin_effect", "finish_effect")

_LEDGER_CALLS = (
    "admit_job",
    "record_plan",
    "open_gate",
    "grant_permit",
    "close_gate",
    "close_application",
)

_WHEN = ("before", "after")


def apply_points() -> list[str]:
    """Kill points while a plan with one effect of every kind is applied."""
    points: list[str] = []
    for kind in sorted(default_effects()):
        for call, times in _EFFECT_CALLS.items():
            points += [f"effect.{call}[{kind}]#{nth}:{when}" for nth in range(1, times + 1) for when in _WHEN]
        points += [f"ledger.{call}[{kind}]#1:{when}" for call in _LEDGER_CALLS_OF_EFFECT for when in _WHEN]
    return points


def gate_points() -> list[str]:
    """Kill points on the way of a plan to its permit and of an application to its end."""
    return [f"ledger.{call}#1:{when}" for call in _LEDGER_CALLS for when in _WHEN]


def undo_points() -> list[str]:
    """Kill points while the same effects are taken back by a plan of its own."""
    points: list[str] = []
    for kind in sorted(default_effects()):
        points += [f"effect.{call}[{kind}]#1:{when}" for call in ("do", "verify") for when in _WHEN]
        points += [f"ledger.{call}[{kind}]#1:{when}" for call in _LEDGER_CALLS_OF_EFFECT for when in _WHEN]
    return points
