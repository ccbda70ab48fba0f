"""Schedules as they cross boundaries: when a job is made again, who said so, what a fire became."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perdure.contracts.base import BlobRef, Contract, Digest, JsonDict, UtcTime

Overlap = Literal["merge", "skip", "allow"]
"""What happens to a fire while the schedule's last job is at work (never while it waits for a person): it is held and
merged with those that come meanwhile · it is skipped · a second job starts beside."""

ScheduleState = Literal["active", "paused", "deleted"]

WordKind = Literal["add", "edit", "pause", "resume", "trigger", "backfill", "delete"]

NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,39}$"


class Calendar(Contract):
    """Local times by their fields: a minute matches when every field holds its value."""

    minutes: list[int]
    hours: list[int]
    days: list[int]
    months: list[int]
    weekdays: list[int]
    """0 is Sunday."""
    years: list[int] = []
    """Empty: every year."""


class Times(Contract):
    """When a schedule fires: all calendars and the interval together."""

    zone: str
    """IANA name. Intervals do not depend on it."""
    calendars: list[Calendar] = []
    every_seconds: int = Field(default=0, ge=0)
    """0: no interval. Counted from 1970-01-01T00:00Z."""
    offset_seconds: int = Field(default=0, ge=0)
    jitter_seconds: int = Field(default=0, ge=0, le=86_400)
    """A fire comes up to so much later; its nominal time stays."""
    said: list[str] = []
    """As it was typed, for people."""


class ScheduleAsk(Contract):
    """What a person asks for, as typed."""

    template: str
    inputs: JsonDict = {}
    folder: str
    """Absolute folder that relative inputs start from, and where ``.perdure/jobs`` is looked for."""
    zone: str
    cron: list[str] = []
    calendars: list[str] = []
    every: str = ""
    """An interval: "6h"; "6h+15m" with an offset."""
    jitter: str = ""
    overlap: Overlap = "merge"
    cost_each: str = ""
    """"0.50 USD"."""
    cost_all: str = ""
    """"20 USD/30d"; without a span 30 days."""
    alert_after: int = Field(default=3, ge=1, le=100)


class ScheduleDefinition(Contract):
    """What a schedule starts, pinned when it was added: signed, and the only thing a fire is made from."""

    name: str = Field(pattern=NAME_PATTERN)
    asked: ScheduleAsk
    thread: str
    template: str
    template_source: str
    template_digest: Digest
    inputs: JsonDict
    requester: str
    """Whoever added it: the person behind every job."""
    times: Times
    overlap: Overlap = "merge"
    newer_plan: Literal["supersedes", "waits"] = "supersedes"
    """Whether the plan of a later fire takes the place of an open one that nobody has touched."""
    approvals: list[str] = []
    """What each fire will need from people, and what happens when nobody is there."""
    cost_each_microdollars: int | None = Field(default=None, ge=1)
    """Cap of one job, beside its template's budget."""
    cost_all_microdollars: int | None = Field(default=None, ge=1)
    """Cap of all jobs of the schedule within ``cost_days``: a fire that would pass it is skipped."""
    cost_days: int = Field(default=30, ge=1, le=366)
    alert_after: int = Field(default=3, ge=1, le=100)
    """So many failures in a row are said once, then no more until one has gone well."""


class ScheduleWord(Contract):
    """What a person said about a schedule. Stored as a blob; the signed decision names its digest."""

    kind: WordKind
    name: str
    by: str
    at: UtcTime
    definition: ScheduleDefinition | None = None
    """With ``add`` and ``edit``."""
    note: str = Field(default="", max_length=1000)
    start: UtcTime | None = None
    """With ``backfill``: fires from here …"""
    end: UtcTime | None = None
    """… to here, both included."""


class JobFire(Contract):
    """Which fire a job was made for, and what span it is to handle."""

    schedule: str
    key: str
    """Nominal local time; with the schedule's name the id of the run."""
    due_at: UtcTime
    since: UtcTime
    """Until here an earlier job of the schedule has handled everything."""
    until: UtcTime
    merged: int = 1
    """How many fires this job stands for."""


class FireNotice(Contract):
    """Says that a schedule is due, or may have something to do. Carries no authority: the ledger is looked into."""

    thread: str
    schedule: str
    due_at: UtcTime | None = None
    """Nominal time of a fire; ``None``: look whether anything is left."""


class FiredJob(Contract):
    """A job that a fire was made into, admitted in the ledger."""

    job_id: str
    spec: BlobRef


class FireTaken(Contract):
    """What looking at a schedule gave."""

    jobs: list[FiredJob] = []
    """To be started; one that was started before is not started twice."""
    again: bool = False
    """There is more to take at once."""
    held: bool = False
    """A fire waits for the schedule's last job to end: look again later."""


class ScheduleRequest(Contract):
    """Make a schedule."""

    name: str = Field(pattern=NAME_PATTERN)
    asked: ScheduleAsk
    only_check: bool = False
    """Say what it would need, and make nothing."""
    decision_id: str = Field(min_length=8, max_length=64)
    passphrase: str = ""


class ScheduleEdit(Contract):
    """Give a schedule another definition, with the template's text of today."""

    changes: JsonDict
    """Fields of :class:`ScheduleAsk`; ``inputs`` are added to those that were given before. Others stay."""
    decision_id: str = Field(min_length=8, max_length=64)
    passphrase: str = ""


class ScheduleWordRequest(Contract):
    """Say something about a schedule. The same ``decision_id`` twice is the same word."""

    kind: Literal["pause", "resume", "trigger", "backfill", "delete"]
    note: str = Field(default="", max_length=1000)
    start: str = ""
    """With ``backfill``: local times of the schedule's zone, or with an offset."""
    end: str = ""
    decision_id: str = Field(min_length=8, max_length=64)
    passphrase: str = ""


class NextFire(Contract):
    """One line of a preview."""

    key: str
    due_at: UtcTime
    local: str
    """Local time with its offset: "2026-03-29 03:00 +02:00"."""
    what: str = ""
    """Empty for an ordinary fire; else what happens in a missing or doubled hour."""
    fires: bool = True
    """False for a time that is only shown: a second passing of the same local time."""


class FireView(Contract):
    """A job of a schedule, or a fire that became none."""

    key: str
    at: UtcTime
    what: str
    """fired, missed, skipped, held, dropped, alert, recovered, or a person's word."""
    detail: str = ""
    job: str = ""
    """Name of the job."""
    phase: str = ""


class ScheduleView(Contract):
    """One schedule as lists and `show` give it."""

    name: str
    state: ScheduleState
    note: str = ""
    thread: str
    template: str
    requester: str
    said: list[str]
    zone: str
    inputs: JsonDict = {}
    overlap: Overlap = "merge"
    newer_plan: str = "supersedes"
    approvals: list[str] = []
    cost_each_microdollars: int | None = None
    cost_all_microdollars: int | None = None
    cost_days: int = 30
    spent_microdollars: int = 0
    """By its jobs, within ``cost_days``."""
    spent_unknown: bool = False
    failures: int = 0
    """In a row, up to now."""
    alerted: bool = False
    trouble: str = ""
    """Why nothing happens, or what has gone wrong."""
    last_key: str = ""
    last_at: UtcTime | None = None
    """The heartbeat: when the last fire became a job."""
    last_job: str = ""
    last_phase: str = ""
    open_job: str = ""
    """The job that waits for a person."""
    next: list[NextFire] = []
    fires: list[FireView] = []
    """Newest first."""
    template_changed: bool = False
    """The template's file is another one than the pinned text."""
