"""Schedules of a real installation, one call a word."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import text
from temporalio.client import ScheduleBackfill, ScheduleOverlapPolicy

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase, ThreadState
from perdure.contracts.names import FIRE_SIGNAL, FIRE_WORKFLOW, QUEUE, STATE_QUERY, fire_id, thread_id
from perdure.contracts.schedules import FireNotice, ScheduleView
from perdure.runtime.schedules import PREFIX
from tests.support.installation import Installation, wait_until

TEMPLATES = Path(__file__).parent / "templates"


def new_id() -> str:
    """An id for one word."""
    return uuid.uuid4().hex[:16]


@dataclass
class Scheduled:
    """One schedule of an installation, with a folder that its jobs write to."""

    home: Installation
    name: str
    folder: Path
    template: str = "daily"

    def add(self, **asked: Any) -> ScheduleView:
        """Make the schedule; daily at 02:30 in Berlin unless said otherwise."""
        return ScheduleView.model_validate(self.home.post("/v1/schedules", self.request(**asked)))

    def request(self, **asked: Any) -> dict[str, Any]:
        """The request that makes it."""
        inputs = {"name": self.name, "folder": str(self.folder), **asked.pop("inputs", {})}
        said = {"template": self.template, "inputs": inputs, "folder": str(self.folder), "zone": "Europe/Berlin"}
        when = {} if asked.keys() & {"cron", "calendars", "every"} else {"cron": ["30 2 * * *"]}
        return {"name": self.name, "asked": {**said, **when, **asked}, "decision_id": new_id()}

    def say(self, kind: str, **more: str) -> ScheduleView:
        """Say a word about it."""
        body = {"kind": kind, "decision_id": new_id(), **more}
        return ScheduleView.model_validate(self.home.post(f"/v1/schedules/{self.name}/words", body))

    def view(self) -> ScheduleView:
        """Look at it."""
        return ScheduleView.model_validate(self.home.get(f"/v1/schedules/{self.name}"))

    @property
    def thread(self) -> str:
        """The thread of its jobs."""
        return f"{self.template}-{self.name}"

    def jobs(self) -> list[JobView]:
        """Its jobs, oldest first."""
        found = self.home.get("/v1/jobs", thread=self.thread, limit=500)
        return [JobView.model_validate(one) for one in reversed(found)]

    def wait_jobs(self, *phases: JobPhase, limit: timedelta = timedelta(minutes=2)) -> list[JobView]:
        """Wait until its jobs are, oldest first, in exactly these phases."""

        def reached() -> list[JobView] | None:
            jobs = self.jobs()
            return jobs if [job.phase for job in jobs] == list(phases) else None

        found: list[JobView] = wait_until(
            reached, f"jobs to be {phases}", limit, explain=lambda: f"{self.jobs()}\n{self.home.worker_log()}"
        )
        return found

    def keys(self) -> list[str]:
        """Nominal times of its jobs, oldest first."""
        return [job.job_id.rpartition(f"/{self.name}.")[2] for job in self.jobs()]

    def set_back(self, at: datetime) -> None:
        """Let the ledger say that nothing has been handled since then: Perdure was down, or the clock was moved."""
        with self.home.ledger() as ledger, ledger.database.write() as connection:
            when = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            values = {"at": when, "name": self.name}
            words = "UPDATE schedules SET handled_until = :at, created_at = :at WHERE name = :name"
            connection.execute(text(words), values)

    def records(self, what: str) -> list[str]:
        """Details of its records of one kind, newest first."""
        return [fire.detail for fire in self.view().fires if fire.what == what]

    def nudge(self, due_at: datetime | None = None) -> None:
        """Tell the thread what a fire tells it."""
        notice = FireNotice(thread=self.thread, schedule=self.name, due_at=due_at)

        async def tell() -> None:
            client = await self.home.temporal()
            await client.get_workflow_handle(thread_id(self.thread)).signal(FIRE_SIGNAL, notice)

        asyncio.run(tell())

    def nudge_new(self) -> None:
        """As :meth:`nudge`, by the fire workflow itself, which starts the thread where it is not there."""

        async def fire() -> None:
            client = await self.home.temporal()
            identifier = f"{fire_id(self.thread, self.name)}-2026-01-01T00:00:00Z"
            await client.execute_workflow(FIRE_WORKFLOW, id=identifier, task_queue=QUEUE)

        asyncio.run(fire())

    def is_held(self) -> bool:
        """Whether the thread holds a fire of it."""

        async def ask() -> bool:
            client = await self.home.temporal()
            handle = client.get_workflow_handle(thread_id(self.thread), result_type=ThreadState)
            state: ThreadState = await handle.query(STATE_QUERY, result_type=ThreadState)
            return self.name in state.held

        return asyncio.run(ask())

    def fire_past(self, start: datetime, end: datetime, times: int = 1) -> None:
        """Have Temporal's own schedule fire what lay between two past times."""

        async def ask() -> None:
            client = await self.home.temporal()
            handle = client.get_schedule_handle(PREFIX + self.name)
            for _ in range(times):
                await handle.backfill(ScheduleBackfill(start, end, ScheduleOverlapPolicy.ALLOW_ALL))

        asyncio.run(ask())


def days_ago(days: float) -> datetime:
    """A time of now's day of the clock, so many days back."""
    return datetime.now(UTC) - timedelta(days=days)
