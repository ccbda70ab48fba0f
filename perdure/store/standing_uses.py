"""Which plans went by standing approvals, as records tell it: for an audit, in the order of the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from perdure.contracts.base import JsonDict
from perdure.contracts.decisions import Decision
from perdure.contracts.plan import Plan
from perdure.policy.standing import STANDING_KINDS, weigh_call
from perdure.store.approvals import use_of
from perdure.store.chain import Header, time_of


class StandingUses:
    """Counts uses, and weighs each plan at the moment that a standing approval was used for it."""

    def __init__(self) -> None:
        self._uses: list[tuple[str, str]] = []
        """Approval and the gate that used it."""
        self.satisfied: set[str] = set()
        """Digests of plans whose gate was satisfied by what stood then."""

    def note(
        self, header: Header, value: JsonDict, verified: Sequence[Decision], find_plan: Callable[[str], Plan | None]
    ) -> None:
        """Take one use in. ``verified``: every decision before it whose signature holds."""
        self._uses.append((use_of(header.step), header.workflow_id))
        digest = str(value.get("digest", ""))
        plan = find_plan(digest)
        if plan is None:
            return
        uses = Counter(approval for approval, gate in self._uses if gate != header.workflow_id)
        words = [word for word in verified if word.kind in STANDING_KINDS]
        weighing = weigh_call(plan, digest, verified, words, uses, now=time_of(header.at))
        recorded = {approval for approval, gate in self._uses if gate == header.workflow_id}
        if weighing.outcome == "satisfied" and recorded.issuperset(weighing.standing):
            self.satisfied.add(digest)
