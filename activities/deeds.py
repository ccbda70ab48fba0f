"""One effect in one direction, as an attempt of the applier has it before itself."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from perdure.contracts.application import NOT_AS_PROMISED, EffectInput, EffectOutcome, is_pause
from perdure.contracts.base import JsonDict
from perdure.contracts.names import JobId
from perdure.contracts.plan import PlannedEffect
from perdure.effects.base import Effect
from perdure.store.rows import BeginEffect, IntentRow

_COMMANDS = frozenset({"shell.run"})
"""Kinds that change the world by nothing but a command of their runner."""


@dataclass(frozen=True)
class Deed:
    """What an attempt works on. Undoing is applying the inverse's body."""

    question: EffectInput
    planned: PlannedEffect
    effect: Effect
    body: JsonDict
    target: str
    """What the ledger locks: the plan's target, else the effect's own."""

    @property
    def lock_name(self) -> str:
        """File name of the target's lock."""
        return hashlib.sha256(self.planned.target.encode()).hexdigest() + ".lock"

    @property
    def key(self) -> str:
        """Names this effect in this direction to others: the same for every attempt, in 32 hex digits."""
        question = self.question
        named = f"{question.application_id}/{question.index}/{question.direction}"
        return hashlib.sha256(f"perdure.key/1:{named}".encode()).hexdigest()[:32]

    def begin(self) -> BeginEffect:
        """What the ledger is asked before it starts."""
        question = self.question
        return BeginEffect(
            application_id=question.application_id,
            job_id=question.job_id,
            thread=JobId.parse(question.job_id).thread,
            digest=question.digest,
            index=question.index,
            direction=question.direction,
            effect_id=self.planned.id,
            kind=self.effect.kind,
            target=self.target,
            irreversible=bool(self.planned.inverse.irreversible),
        )

    def never_began(self, prior: IntentRow) -> bool:
        """Whether the worker died between intent and command: no process group is written down.

        A command waits until its group is in the ledger, and ends by itself when its worker dies before (see
        ``run_command``), so that a group that is missing proves what no probe could tell.
        """
        return prior.state == "intent" and not prior.pgid and self.effect.kind in _COMMANDS

    def outcome(self, state: str, detail: str) -> EffectOutcome:
        """What is answered of it."""
        return outcome_of(self.question, self.planned, state, detail)


def outcome_of(question: EffectInput, planned: PlannedEffect, state: str, detail: str) -> EffectOutcome:
    """The answer about one effect; ``detail`` is named after it and kept short."""
    return EffectOutcome.model_validate(
        {
            "index": question.index,
            "direction": question.direction,
            "state": state,
            "detail": f"{planned.id}: {detail}"[:400] if detail else "",
            "on_failure": planned.on_failure,
            "is_pause": state == "unknown" and is_pause(detail),
            "verified": state != "done" or not detail.startswith(NOT_AS_PROMISED) or planned.on_failure == "report",
        }
    )
