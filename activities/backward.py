"""What an application has to take back, and why some of it cannot be: by the ledger alone."""

from __future__ import annotations

from perdure.contracts.application import EffectInput, EffectState
from perdure.contracts.plan import Inverse, Plan
from perdure.store.ledger import Ledger


class Backward:
    """Reads how effects ended. Changes nothing."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def find_left(self, application_id: str, plan: Plan) -> list[int]:
        """Effects of ours that are done, would have to be taken back, and were not."""
        rows = {(row.index, row.direction): row for row in self._ledger.intents(application_id=application_id)}
        left = []
        for index, planned in enumerate(plan.effects):
            forward, back = rows.get((index, "do")), rows.get((index, "undo"))
            is_done = forward is not None and forward.state == "done" and not planned.inverse.none_needed
            if is_done and (back is None or back.state not in ("done", "already")):
                left.append(index)
        return left

    def why_not(self, question: EffectInput, plan: Plan, inverse: Inverse) -> tuple[EffectState, str] | None:
        """Why there is nothing to take back, or why it cannot be; ``None`` when it must be taken back."""
        forward = self._ledger.intent(question.application_id, question.index, "do")
        if forward is not None and not forward.is_final:
            return "failed", f"nobody knows what became of it ({forward.state})"
        if forward is None or forward.state != "done":
            return "already", "never happened by us: nothing to take back"
        if inverse.none_needed:
            return "already", f"nothing to take back: {inverse.none_needed}"
        if inverse.body is None:
            return "failed", f"cannot be undone: {inverse.irreversible}"
        if inverse.only_before_irreversible and self._is_final_after(question, plan):
            return "failed", "stays: a later irreversible effect of this plan is done"
        return None

    def _is_final_after(self, question: EffectInput, plan: Plan) -> bool:
        later = range(question.index + 1, len(plan.effects))
        return any(
            plan.effects[index].inverse.irreversible
            and (row := self._ledger.intent(question.application_id, index, "do")) is not None
            and row.state == "done"
            for index in later
        )
