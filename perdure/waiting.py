"""What waits for people, and what one person's word would be worth: computed from the ledger when it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from perdure.contracts.decisions import Decision
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.plan import Plan
from perdure.errors import Refused
from perdure.people import as_today
from perdure.policy.authorize import Principal, authorize
from perdure.policy.gates import GATE_KINDS, may_decide
from perdure.policy.people import Today
from perdure.store.ledger import Ledger
from perdure.store.reading import Reader
from perdure.store.rows import PlanRow

HELD = (JobPhase.paused, JobPhase.unknown, JobPhase.waiting_for_merge)
"""Phases in which a job waits for a person without a plan to decide on."""

LOOKED_AT = 200
"""Open plans that one page of a list looks at, at most: what is for somebody else costs time too."""


@dataclass(frozen=True)
class Worth:
    """What a person's word on one plan would be worth now."""

    no_right: str = ""
    """Why the person may decide nothing at all; empty: may."""
    no_yes: str = ""
    """Why an approval would not count; empty: it would."""
    no_no: str = ""
    """Why a rejection or a request for changes would not count."""
    said: Decision | None = None
    """The person's last word on it."""

    @property
    def is_wanted(self) -> bool:
        """Whether the plan waits for this person's approval."""
        return not self.no_right and not self.no_yes and (self.said is None or self.said.kind == "withdraw")


@dataclass(frozen=True)
class Waiting:
    """One plan that waits."""

    row: PlanRow
    job: JobView
    missing: list[str]
    worth: Worth


@dataclass(frozen=True)
class WaitingPage:
    """A part of what waits, newest first."""

    plans: list[Waiting]
    next: int = 0
    """Ask again with ``before`` set to this; 0: there is no more."""


class WaitingReader:
    """Answers for one person at a time; writes nothing."""

    def __init__(self, ledger: Ledger, reader: Reader) -> None:
        self._ledger = ledger
        self._reader = reader

    def worth(self, principal: Principal, row: PlanRow, plan: Plan, *, now: datetime) -> Worth:
        """Return what the word of ``principal`` on a plan would be worth."""
        return self._worth(principal, row, plan, now, self._reader.today())

    def plans(
        self,
        principal: Principal,
        *,
        only_wanted: bool,
        thread: str = "",
        before: int = 0,
        limit: int = 50,
        at: datetime,
    ) -> WaitingPage:
        """Return open plans; ``only_wanted``: those that wait for the approval of ``principal``."""
        today = self._reader.today()
        found: list[Waiting] = []
        rows = self._ledger.open_plans(thread=thread, before=before, limit=LOOKED_AT)
        for position, row in rows:
            plan = self._reader.load_plan(row)
            worth = self._worth(principal, row, plan, at, today)
            if worth.is_wanted or not only_wanted:
                missing = self._reader.weigh_plan(row, plan, now=at).missing
                found.append(Waiting(row, self._ledger.job(row.job_id), missing, worth))
            if len(found) == limit:
                return WaitingPage(found, position)
        return WaitingPage(found, rows[-1][0] if len(rows) == LOOKED_AT else 0)

    def held(self, principal: Principal, *, only_own: bool, thread: str = "") -> list[JobView]:
        """Return jobs that wait for a word which is no decision on a plan; ``only_own``: asked for by ``principal``."""
        jobs = self._ledger.jobs(thread=thread or None, phases=HELD, limit=200)
        return [job for job in jobs if not only_own or job.requester == principal.person]

    def _worth(self, principal: Principal, row: PlanRow, plan: Plan, now: datetime, today: Today) -> Worth:
        who = as_today(principal, today)
        try:
            authorize(who, "decide")
        except Refused as refused:
            return Worth(no_right=refused.message)
        why = {kind: may_decide(plan.envelope, _draft(who, row, kind, now), today) for kind in ("approve", "reject")}
        said = list(self._words(row.digest, who.name))
        return Worth(no_yes=why["approve"], no_no=why["reject"], said=said[-1] if said else None)

    def _words(self, digest: str, name: str) -> Iterator[Decision]:
        for signed in self._ledger.decisions(digest=digest):
            if signed.decision.by == name and signed.decision.kind in GATE_KINDS:
                yield signed.decision


def _draft(who: Principal, row: PlanRow, kind: Literal["approve", "reject"], now: datetime) -> Decision:
    """A decision as it would be made; it is signed nowhere."""
    about = {"job_id": row.job_id, "digest": row.digest, "by": who.name, "groups": list(who.groups)}
    return Decision.model_validate({"id": "draft", "kind": kind, "at": now, "head": "", **about})
