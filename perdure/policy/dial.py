"""The dial: how much an agent may do alone, under the thread's ceiling. Down goes at once, up by a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perdure.contracts.agent import CallQuestion, Dial, EffectClass

POSITIONS: tuple[Dial, ...] = tuple(Dial)
"""Least first."""


def effective(dial: Dial, ceiling: Dial, *, has_sandbox: bool) -> Dial:
    """Return the position that counts: never above the ceiling, and ``delegate`` only with a sandbox."""
    bounds = [dial, ceiling] + ([] if has_sandbox else [Dial.propose])
    return min(bounds, key=POSITIONS.index)


def answer_of(dial: Dial, effect_class: EffectClass, *, reversible: bool, budget_left: bool) -> Literal["allow", "ask"]:
    """Return what a position says about a call; asking about an external one makes a plan of one effect.

    Reads are free on every position, so that turning the dial down never loosens anything; which reads there are is
    the permissions' business. *observe* and *confirm* ask about each change. *propose* is free in the workspace, which
    only sandboxed and bounded tools reach. *delegate* lets external calls go that can be taken back, within the budget.
    """
    if effect_class == "read":
        return "allow"
    if dial in (Dial.observe, Dial.confirm):
        return "ask"
    if effect_class == "workspace":
        return "allow"
    return "allow" if dial is Dial.delegate and reversible and budget_left else "ask"


def explain(dial: Dial, question: CallQuestion, decision: Literal["allow", "ask"]) -> str:
    """Return one sentence on why the dial said so."""
    kind: str = question.tool.effect_class
    if kind == "external":
        kind = f"{'reversible' if question.reversible else 'irreversible'} external"
    budget = "" if question.budget_left or dial is not Dial.delegate else " The budget is used up."
    return f"The dial stands on {dial}: {kind} calls are {'free' if decision == 'allow' else 'asked about'}.{budget}"


@dataclass(frozen=True)
class Turned:
    """What became of a wish to turn the dial."""

    dial: Dial
    """Where it stands afterwards."""
    done: bool
    why: str


def turn_dial(current: Dial, wanted: Dial, ceiling: Dial, *, has_sandbox: bool, decided: bool) -> Turned:
    """Return where the dial stands after somebody asked for ``wanted``.

    Down goes at once for anyone who may see the job. Up needs ``decided``, a signed decision of somebody who may; even
    then never above the ceiling, and to ``delegate`` only with a sandbox.
    """
    if POSITIONS.index(wanted) <= POSITIONS.index(current):
        return Turned(wanted, True, f"The dial stands on {wanted}.")
    if not decided:
        why = f"Raising the dial from {current} to {wanted} needs a decision by somebody who may decide."
    elif POSITIONS.index(wanted) > POSITIONS.index(ceiling):
        why = f"The dial stays on {current}: the thread's ceiling is {ceiling}. Raise it in its charter first."
    elif effective(wanted, ceiling, has_sandbox=has_sandbox) is not wanted:
        why = f"The dial stays on {current}: {wanted} needs a sandbox, and none works here. See `perdure doctor`."
    else:
        return Turned(wanted, True, f"The dial stands on {wanted}.")
    return Turned(current, False, why)


def lower_by_itself(current: Dial) -> Dial:
    """Return where the dial goes after a denial worked around, a failed verification or a changed tool.

    One position down, but not below ``confirm``: there a person sees each change already.
    """
    if current in (Dial.observe, Dial.confirm):
        return current
    return POSITIONS[POSITIONS.index(current) - 1]
