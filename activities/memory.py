"""What a thread remembers: its people's signed decisions, for the rules that propose the next plan."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from activities.jobs import JsonBlobs
from activities.ledger import Decisions
from perdure.contracts import names
from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import Decision, Edits
from perdure.contracts.memory import Confirmed, Memory, RememberedEdit
from perdure.contracts.plan import Plan, read_plan
from perdure.policy.gates import weigh
from perdure.store.ledger import Ledger
from perdure.store.results import read_results
from perdure.store.rows import PlanRow


class ThreadMemory:
    """Reads what counted on the plans of a thread. What has no valid signature, or was erased, is forgotten."""

    def __init__(self, ledger: Ledger, blobs: JsonBlobs, decisions: Decisions) -> None:
        self._ledger = ledger
        self._blobs = blobs
        self._decisions = decisions

    def recall(self, job_id: str, before: datetime) -> Memory:
        """Return what was decided before a time in the job's thread; the same however often it is asked.

        Edits of its own plans are not among them: a job carries those itself.
        """
        thread = names.JobId.parse(job_id).thread
        edits: list[RememberedEdit] = []
        confirmed: list[Confirmed] = []
        for row in self._ledger.thread_plans(thread, ("changes_requested", "satisfied")):
            if not self._blobs.has(row.ref):
                continue
            plan = read_plan(row.digest, self._blobs.get(row.ref))
            words = [word for word in self._decisions.on_plan(row.digest) if word.at < before]
            if row.state == "satisfied":
                confirmed += self._confirmed(plan, row, words)
            elif row.job_id != job_id:
                edits += self._edits(plan, row, words)
        return Memory(
            edits=sorted(edits, key=lambda edit: edit.at), confirmed=sorted(confirmed, key=lambda one: one.at)
        )

    def _confirmed(self, plan: Plan, row: PlanRow, words: list[Decision]) -> Iterator[Confirmed]:
        if not plan.envelope.settles:
            return
        weighing = weigh(plan, row.digest, words, now=plan.envelope.created_at)
        if weighing.outcome == "satisfied" and weighing.by:
            at = max(word.at for word in words if word.kind == "approve" and word.by in weighing.by)
            yield Confirmed(by=", ".join(weighing.by), at=at, what=plan.envelope.settles)

    def _edits(self, plan: Plan, row: PlanRow, words: list[Decision]) -> Iterator[RememberedEdit]:
        edits = weigh(plan, row.digest, words, now=plan.envelope.created_at).edits
        word = next((word for word in reversed(words) if edits is not None and word.edits == edits), None)
        if word is None or word.edits is None or not self._blobs.has(word.edits):
            return
        changes = self._read(word.edits).changes
        if changes:
            seen = read_results(self._ledger, self._blobs, row.job_id, row.round)["analyze"]
            yield RememberedEdit(by=word.by, at=word.at, why=word.comment, changes=changes, seen=seen)

    def _read(self, ref: BlobRef) -> Edits:
        return Edits.model_validate(self._blobs.get_json(ref))
