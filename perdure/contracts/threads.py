"""Threads as front doors show them: what a lasting workspace has done, and how it stands."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perdure.contracts.base import Contract, UtcTime
from perdure.contracts.job import JobPhase
from perdure.contracts.schedules import FireView

ThreadStanding = Literal["active", "paused", "archived"]


class ThreadRow(Contract):
    """One thread in a list."""

    thread: str
    state: ThreadStanding = "active"
    note: str = ""
    templates: list[str] = []
    jobs: int = 0
    open: int = 0
    """Jobs that have not ended."""
    schedules: int = 0
    last_job: str = ""
    last_phase: JobPhase | None = None
    last_at: UtcTime | None = None


class ThreadJob(Contract):
    """One job of a thread, as its history tells it."""

    name: str
    number: int
    template: str
    title: str
    phase: JobPhase
    requester: str
    schedule: str = ""
    """Of the schedule that started it."""
    created_at: UtcTime
    updated_at: UtcTime
    decided: list[str] = []
    """"approve by ada", in order; a person's comment behind it."""
    undone_by: str = ""
    leftovers: list[str] = []
    """Effects that stand although the job did not end well, or whose fate nobody knows."""


class ThreadView(Contract):
    """One thread whole."""

    about: ThreadRow
    done: int
    """Jobs that were applied."""
    taken_back: int
    failed: int
    deciders: dict[str, int] = {}
    """How many approvals each person gave."""
    waits: list[str] = []
    """Jobs that wait for a person, with what for."""
    leftovers: list[str] = []
    jobs: list[ThreadJob] = []
    """Newest first."""
    schedules: list[str] = []
    """Name, times and state of each."""
    fires: list[FireView] = []
    """Fires that were none, or late, newest first."""
    notes: dict[str, str] = {}
    """What its agents keep for each other."""


class ThreadErased(Contract):
    """What deleting a thread has erased."""

    thread: str
    contents: int
    """Records that say nothing any more."""


class ThreadWordRequest(Contract):
    """Say something about a thread."""

    kind: Literal["pause", "resume", "archive"]
    note: str = Field(default="", max_length=1000)
