"""What a thread should know of itself, told from the ledger: no model, no Temporal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.schedules import FireView
from perdure.contracts.threads import (
    ThreadErased,
    ThreadJob,
    ThreadRow,
    ThreadStanding,
    ThreadView,
    ThreadWordRequest,
)
from perdure.policy.authorize import Principal
from perdure.store.erasure import delete_thread
from perdure.store.ledger import Ledger
from perdure.store.notes import ThreadNotes
from perdure.store.schedule_ledger import Schedules
from perdure.store.threads import Threads

MOST_JOBS = 50
"""Jobs in one view, newest first."""

_MOST_FIRES = 20
_ENDED_BADLY = (JobPhase.failed, JobPhase.stuck, JobPhase.cancelled)
_PARKED = (JobPhase.waiting, JobPhase.unknown, JobPhase.waiting_for_merge, JobPhase.paused)
_DECISIONS = ("approve", "reject", "request_changes", "withdraw", "cancel", "resolve")
_STATES: dict[str, ThreadStanding] = {"pause": "paused", "resume": "active", "archive": "archived"}


class ThreadReader:
    """Reads threads of one installation, and writes what a person says about one."""

    def __init__(self, ledger: Ledger, now: Callable[[], datetime]) -> None:
        self._ledger = ledger
        self._threads = Threads(ledger.database)
        self._schedules = Schedules(ledger.database)
        self._now = now

    def rows(self, *, archived: bool = False) -> list[ThreadRow]:
        """Return threads by name; archived ones only when asked for."""
        return [row for row in self._threads.every() if archived or row.state != "archived"]

    def view(self, thread: str) -> ThreadView:
        """Return one thread whole. Raises ``NotFound``."""
        about = self._threads.find(thread)
        jobs = self._ledger.jobs(thread=thread, limit=MOST_JOBS)
        ids = [job.job_id for job in jobs]
        decided, fired_by = self._threads.decided(ids), self._threads.fired_by(ids)
        told = [self._tell(job, decided.get(job.job_id, []), fired_by.get(job.job_id, "")) for job in jobs]
        approvals = Counter(who for said in decided.values() for kind, who in said if kind == "approve")
        return ThreadView(
            about=about,
            done=sum(job.phase is JobPhase.done for job in jobs),
            taken_back=sum(bool(job.undone_by) for job in jobs),
            failed=sum(job.phase in (JobPhase.failed, JobPhase.stuck) for job in jobs),
            deciders=dict(approvals.most_common()),
            waits=[
                f"{job.name} {job.phase.value.replace('_', ' ')}: {job.title}" for job in jobs if job.phase in _PARKED
            ],
            leftovers=[f"{job.name}: {text}" for job in told for text in job.leftovers],
            jobs=told,
            schedules=[f"{row.name} ({row.state})" for row in self._schedules.every(thread=thread)],
            fires=self._trouble(thread),
            notes=dict(ThreadNotes(self._ledger.database, thread).read()),
        )

    def say(self, principal: Principal, thread: str, request: ThreadWordRequest) -> ThreadView:
        """Pause, resume or archive a thread. Raises ``NotFound``, ``Conflict``."""
        self._threads.set_state(thread, _STATES[request.kind], request.note, by=principal.name, at=self._now())
        return self.view(thread)

    def erase(self, principal: Principal, thread: str) -> ThreadErased:
        """Erase what a thread's records say. Raises ``NotFound``, ``Conflict``."""
        return ThreadErased(
            thread=thread, contents=delete_thread(self._ledger.database, thread, by=principal.name, at=self._now())
        )

    def _tell(self, job: JobView, decided: list[tuple[str, str]], schedule: str) -> ThreadJob:
        return ThreadJob(
            name=job.name,
            number=job.number,
            template=job.template,
            title=job.title or job.summary,
            phase=job.phase,
            requester=job.requester,
            schedule=schedule,
            created_at=job.created_at,
            updated_at=job.updated_at,
            decided=[f"{kind.replace('_', ' ')} by {who}" for kind, who in decided if kind in _DECISIONS],
            undone_by=job.undone_by,
            leftovers=self._leftovers(job),
        )

    def _leftovers(self, job: JobView) -> list[str]:
        """Effects that stand although the job did not end well, and those whose fate nobody knows."""
        rows = self._ledger.intents(job_id=job.job_id)
        undone = {(row.application_id, row.index) for row in rows if row.direction == "undo" and row.state == "done"}
        found = []
        for row in rows:
            what = f"{row.effect_id} ({row.kind}) on {row.target}"
            is_done = row.direction == "do" and row.state == "done" and (row.application_id, row.index) not in undone
            if row.state == "unknown":
                found.append(f"{what}: nobody knows whether it happened")
            elif is_done and job.phase in _ENDED_BADLY:
                found.append(f"{what}: it stands")
        return found

    def _trouble(self, thread: str) -> list[FireView]:
        """Fires of the thread's schedules that were missed, skipped or dropped, and alarms, newest first."""
        found = [
            FireView(
                key=str(event.body.get("key", "")),
                at=event.at,
                what=event.kind.removeprefix("schedule."),
                detail=f"{row.name}: {event.body.get('detail', '')}",
            )
            for row in self._schedules.every(thread=thread, with_deleted=True)
            for event in self._schedules.events(row.name, _MOST_FIRES)
            if event.kind != "schedule.fired"
        ]
        return sorted(found, key=lambda fire: fire.at, reverse=True)[:_MOST_FIRES]
