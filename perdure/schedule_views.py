"""How schedules are shown: by the ledger, without a model and without Temporal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from perdure.contracts.http import EventView, JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.schedules import FireView, ScheduleDefinition, ScheduleView, ScheduleWord
from perdure.errors import Conflict, PerdureError
from perdure.intake import Intake
from perdure.policy.firing import next_fires
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.store.schedule_ledger import Schedules
from perdure.store.schedules import ScheduleRow

_SHOWN = 20
"""Fires and records in one view, newest first."""

_PARKED = (JobPhase.waiting, JobPhase.unknown, JobPhase.waiting_for_merge, JobPhase.paused)


class ScheduleReader:
    """Reads schedules of one installation."""

    def __init__(
        self,
        ledger: Ledger,
        schedules: Schedules,
        blobs: BlobStore,
        intake: Intake,
        now: Callable[[], datetime],
    ) -> None:
        self._ledger = ledger
        self._schedules = schedules
        self._blobs = blobs
        self._intake = intake
        self._now = now

    def definition(self, name: str) -> ScheduleDefinition:
        """Return what a schedule is now. Raises ``NotFound``, ``Conflict`` when it was deleted."""
        row = self._schedules.find(name)
        if row.state == "deleted":
            raise Conflict(f"Schedule {name!r} was deleted. `perdure schedule add --name {name} …` makes it anew.")
        return self._defined(row)

    def list(self, thread: str | None = None) -> list[ScheduleView]:
        """Return schedules by name, without their fires."""
        return [self._view(row, shown=1) for row in self._schedules.every(thread=thread)]

    def view(self, name: str) -> ScheduleView:
        """Return one schedule with its fires, also a deleted one. Raises ``NotFound``."""
        row = self._schedules.find(name)
        view = self._view(row, shown=_SHOWN)
        fires = [self._fire(event) for event in self._schedules.events(name, _SHOWN)]
        ahead = next_fires(self._defined(row).times, self._now(), 3) if row.state == "active" else []
        return view.model_copy(
            update={"fires": fires, "next": ahead, "template_changed": self._has_changed(self._defined(row))}
        )

    def preview(self, definition: ScheduleDefinition) -> ScheduleView:
        """Return how a schedule would look that nobody has made."""
        about = _of(definition)
        return ScheduleView.model_validate(
            {**about, "state": "active", "next": next_fires(definition.times, self._now(), 5)}
        )

    def _view(self, row: ScheduleRow, *, shown: int) -> ScheduleView:
        definition = self._defined(row)
        since = self._now() - timedelta(days=definition.cost_days)
        spent, unknown = self._schedules.spending(row.name, since)
        jobs = [(key, self._ledger.job(job_id)) for key, job_id in self._schedules.jobs(row.name, max(shown, 5))]
        parked = next((job.name for _, job in jobs if job.phase in _PARKED), "")
        about = {
            **_of(definition),
            "state": row.state,
            "note": row.note,
            "failures": row.failures,
            "alerted": row.alerted,
            "trouble": row.trouble,
            "spent_microdollars": spent,
            "spent_unknown": unknown,
            "open_job": parked,
            **(_last(*jobs[0]) if jobs else {}),
        }
        if row.state == "active":
            about["next"] = next_fires(definition.times, self._now(), 1)
        return ScheduleView.model_validate(about)

    def _fire(self, event: EventView) -> FireView:
        body = event.body
        kind = event.kind.removeprefix("schedule.")
        about = {"key": str(body.get("key", "")), "at": event.at, "what": kind, "detail": str(body.get("detail", ""))}
        if not event.job_id:
            return FireView.model_validate(about)
        job = self._ledger.job(event.job_id)
        return FireView.model_validate({**about, "job": job.name, "phase": job.phase.value})

    def _defined(self, row: ScheduleRow) -> ScheduleDefinition:
        word = ScheduleWord.model_validate(self._blobs.get_json(row.word))
        assert word.definition is not None
        return word.definition

    def _has_changed(self, definition: ScheduleDefinition) -> bool:
        try:
            found = self._intake.show(definition.template, definition.asked.folder)
        except PerdureError:
            return True
        return found.digest != definition.template_digest


def _last(key: str, job: JobView) -> dict[str, object]:
    return {"last_key": key, "last_at": job.created_at, "last_job": job.name, "last_phase": job.phase.value}


def _of(definition: ScheduleDefinition) -> dict[str, object]:
    kept = definition.model_dump(
        include={
            "name",
            "thread",
            "template",
            "requester",
            "inputs",
            "overlap",
            "newer_plan",
            "approvals",
            "cost_each_microdollars",
            "cost_all_microdollars",
            "cost_days",
        }
    )
    return {**kept, "said": definition.times.said, "zone": definition.times.zone}
