"""Where an application waits for a person between two steps, and what must still be so when it goes on."""

from __future__ import annotations

from collections.abc import Callable

from activities.ledger import Decisions
from perdure.contracts.application import EffectInput, is_pause
from perdure.contracts.plan import Plan, PlannedEffect
from perdure.effects.base import Found, Probe
from perdure.policy.notify import NOTICE
from perdure.store.ledger import Ledger
from perdure.store.rows import IntentRow

Look = Callable[[PlannedEffect], Probe]
"""Probes one effect; reads only."""


class Pauses:
    """Says why an effect does not begin yet. Reads only."""

    def __init__(self, ledger: Ledger, decisions: Decisions) -> None:
        self._ledger = ledger
        self._decisions = decisions

    def find(self, question: EffectInput, plan: Plan, prior: IntentRow | None, look: Look) -> str:
        """Return what is waited for; empty when the effect may be begun, or begun again.

        Somebody has said go on: then every step before must still be as it was left.
        """
        if self._decisions.cancelled_by(question.job_id):
            return ""  # nothing begins any more, and the ledger says so
        if prior is None:
            if not plan.effects[question.index].pause:
                return ""
            if not self._decisions.may_go_on(question.digest, question.index):
                return "not begun: somebody says go on before it"
        elif not self._is_tried_again(question, prior):
            return ""
        lost = self._find_lost(question, plan, look)
        return f"not begun: {'; '.join(lost)}" if lost else ""

    def _is_tried_again(self, question: EffectInput, prior: IntentRow) -> bool:
        if prior.state != "unknown" or not is_pause(prior.detail):
            return False
        word = self._decisions.resolution(question.application_id, question.index, question.direction)
        return word is not None and word.answer == "not_done"

    def _find_lost(self, question: EffectInput, plan: Plan, look: Look) -> list[str]:
        """Steps of ours that are done and that the world does not show any more.

        A later step on the same target may have moved on from an earlier one's result: the last one is proven. One that
        nothing can be told of (a command without a probe) holds nobody up.
        """
        rows = self._ledger.intents(application_id=question.application_id)
        done = {row.index for row in rows if row.direction == "do" and row.state == "done"}
        proven: set[str] = set()
        lost: list[str] = []
        for index in sorted((index for index in done if index < question.index), reverse=True):
            planned = plan.effects[index]
            if planned.target in proven or planned.kind == NOTICE:  # a message is its receipt: nothing shows it
                continue
            found = look(planned)
            if found.found is Found.done:
                proven.add(planned.target)
            elif found.found in (Found.not_done, Found.foreign):
                lost.append(f"step {index + 1} ({planned.id}) was done, and now {found.detail}")
        return lost
