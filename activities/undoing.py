"""What taking a job back would do: its receipts read from the ledger alone, inverses newest first."""

from __future__ import annotations

from dataclasses import dataclass, field

from perdure.contracts.job import AppliedPart
from perdure.contracts.plan import Inverse, Plan, PlannedEffect, read_plan
from perdure.effects.base import Blobs
from perdure.store.ledger import Ledger
from perdure.store.rows import IntentRow


@dataclass
class UndoDraft:
    """The effects that take a job back, and what cannot be."""

    title: str
    effects: list[PlannedEffect] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    lock: str = ""
    """Target of the plan that is taken back."""
    is_foreseen: bool = False
    """The plan said of each step what it would do, and so does the one that takes it back."""
    policy: str = ""
    """Name of the policy that it went by: its people decide about the way back, too."""


class UndoPlanner:
    """Reads receipts and the plans they belong to. Works days later, from the ledger and blobs alone."""

    def __init__(self, ledger: Ledger, blobs: Blobs) -> None:
        self._ledger = ledger
        self._blobs = blobs

    def plan(self, job_id: str) -> UndoDraft:
        """Inverses of what the job did and has not taken back, newest first."""
        job = self._ledger.job(job_id)
        draft = UndoDraft(title=f"take back {job.name}: {job.title}".rstrip(": "))
        rows = self._ledger.intents(job_id=job_id)
        back = [row for row in rows if row.direction == "undo" and row.state in ("done", "already")]
        undone = {(row.application_id, row.index) for row in back}
        final = False
        for row in sorted(rows, key=lambda row: (row.started_at or row.finished_at, row.index), reverse=True):
            if row.direction != "do" or row.state != "done" or (row.application_id, row.index) in undone:
                continue
            plan = self._plan_of(row)
            planned, draft.lock = plan.effects[row.index], plan.envelope.lock
            draft.policy = plan.envelope.rule.policy
            draft.is_foreseen = bool(plan.envelope.forecasts)
            inverse = planned.inverse
            if inverse.irreversible:
                final = True
                draft.findings.append(f"{planned.id} cannot be undone: {inverse.irreversible}")
            elif inverse.only_before_irreversible and final:
                draft.findings.append(f"{planned.id} stays: something that cannot be undone came after it.")
            elif inverse.body is not None:
                draft.effects.append(_inverted(planned, inverse))
        return draft

    def effects_of(self, part: AppliedPart) -> list[PlannedEffect]:
        """The effects of a partly applied plan that are done."""
        plan = read_plan(part.plan.digest, self._blobs.get(part.plan.ref))
        return plan.effects[: part.reached]

    def _plan_of(self, row: IntentRow) -> Plan:
        return read_plan(row.digest, self._blobs.get(self._ledger.plan(row.digest).ref))


def _inverted(planned: PlannedEffect, inverse: Inverse) -> PlannedEffect:
    """The inverse as an effect of its own; its own inverse is doing the first again."""
    again = Inverse(summary=f"again: {planned.summary}", kind=planned.kind, version=planned.version, body=planned.body)
    assert inverse.body is not None  # the caller has looked
    return planned.model_copy(
        update={
            "id": f"undo-{planned.id}",
            "kind": inverse.kind,
            "version": inverse.version,
            "summary": inverse.summary,
            "body": inverse.body,
            "requires": [],
            "inverse": again,
            "on_failure": "undo_all",
            "pause": False,
            # What settles runs again; what the step looked for is what is taken away now.
            "after": planned.after and planned.after.model_copy(update={"run": [], "http": ""}),
        }
    )
