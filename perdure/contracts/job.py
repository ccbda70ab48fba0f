"""A job's life as it crosses boundaries: admission, stages, state, what a thread and its children say."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from perdure.contracts.base import BlobRef, Contract, Digest, JsonDict, UtcTime
from perdure.contracts.schedules import JobFire


class JobPhase(StrEnum):
    """Where a job is; what `perdure jobs` shows."""

    queued = "queued"
    gathering = "gathering"
    analyzing = "analyzing"
    drafting = "drafting"
    verifying = "verifying"
    waiting = "waiting"
    """For people's decisions."""
    applying = "applying"
    unknown = "unknown"
    """An effect's fate cannot be known: `perdure resolve`."""
    waiting_for_merge = "waiting_for_merge"
    """A request to a protected branch is open; the application looks now and then whether it is merged."""
    paused = "paused"
    """An agent, or a plan between two steps or at one that failed: `perdure resume`."""
    undoing = "undoing"
    done = "done"
    """Applied, or planned with --plan."""
    nothing_to_do = "nothing_to_do"
    rejected = "rejected"
    expired = "expired"
    superseded = "superseded"
    """The plan of a later fire of its schedule took its place; nobody had touched it."""
    cancelled = "cancelled"
    failed = "failed"
    """Not applied, or taken back whole."""
    stuck = "stuck"
    """Failed with something left behind that undo could not take back."""

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self in _FINAL


_FINAL = {
    JobPhase.done,
    JobPhase.nothing_to_do,
    JobPhase.rejected,
    JobPhase.expired,
    JobPhase.superseded,
    JobPhase.cancelled,
    JobPhase.failed,
    JobPhase.stuck,
}


class JobSpec(Contract):
    """What a job is made from, pinned in a blob at submission."""

    template: str
    template_source: str
    """The template's whole text as trusted."""
    template_digest: Digest
    inputs: JsonDict
    """Typed and complete; secrets as names only."""
    requester: str
    undoes: str = ""
    """Job id to take back; empty for a job that goes forward."""
    plan_only: bool = False
    """Ends when the plan is frozen; never opens a gate."""
    fire: JobFire | None = None
    """Set by a schedule; ``None``: a person asked for it."""
    cost_cap_microdollars: int | None = None
    """Beside the template's budget: the lower one holds."""


class AdmitInput(Contract):
    """Asks a thread to take a job. ``job_id`` is also the idempotency key."""

    job_id: str
    spec: BlobRef
    template: str
    requester: str
    summary: str = ""


class Admission(Contract):
    """The thread's answer."""

    job_id: str
    number: int
    """The short number that people type; unique in the installation."""
    sequence: int
    """Which job of its thread, from 1."""
    already: bool = False
    """The same request had been admitted before."""


class ArchiveInput(Contract):
    """Keep the closed histories of a job, its gates and its applications: Temporal forgets them after retention."""

    job_id: str


class ThreadState(Contract):
    """What a thread carries over continue-as-new."""

    thread: str
    open_jobs: list[str] = []
    ended: list[str] = []
    """Jobs that have ended and whose histories are not archived yet."""
    seen: list[str] = []
    """The last job ids admitted, newest last, at most 200; older ones the ledger knows."""
    held: list[str] = []
    """Schedules of which a fire waits for their last job to end."""


class ChildEvent(Contract):
    """A child has ended. Carries no authority: the parent asks the ledger how."""

    child_id: str
    seq: int
    state: str
    detail: str = ""


class ClaimInput(Contract):
    """Asks for the id of a child that cannot be started because an execution has that id."""

    workflow_id: str
    parent_id: str
    """Workflow id of whoever wants to start it."""


class ClaimResult(Contract):
    """``ours``: it is a child of that parent, let it be · ``free``: it was not, and it is ended now."""

    state: Literal["ours", "free"]


class Done(Contract):
    """An answer where nothing but the fact matters."""

    state: str = ""


class Poke(Contract):
    """Look at the ledger again: something was written there for you. Carries no authority."""

    about: Literal["cancel", "resolve", "gate", "look", "message", "now"] = "cancel"
    """``now``: a call of a model in flight is given up, and asked again with what was written."""


class PlanRef(Contract):
    """A frozen plan, by name and place."""

    digest: Digest
    content: Digest
    ref: BlobRef
    effects: int
    """How many."""
    round: int
    expires_at: UtcTime
    title: str = Field(default="", max_length=200)
    """The plan's one line, for lists."""
    needs_gate: bool = True
    """Somebody must decide; false where the rule asks nobody (reversible effects only)."""
    needs_decision: bool = True
    """False for ``--plan``: the job ends with the plan."""


class AppliedPart(Contract):
    """An application that stopped at a drift with its first effects done: what is left of the plan is planned again."""

    application_id: str
    plan: PlanRef
    reached: int
    """Effects before this index are done."""


class JobState(Contract):
    """What a job carries over continue-as-new; its input too. Small and typed: references only."""

    job_id: str
    spec: BlobRef
    phase: JobPhase = JobPhase.queued
    round: int = 1
    plan: PlanRef | None = None
    """Set: the job waits at this plan's gate, or applies it."""
    previous: str = ""
    """Digest of the last decided plan."""
    edits: list[BlobRef] = []
    """Reviewers' edits and comments, oldest first (``contracts.decisions.Edits``)."""
    note: str = ""
    """Why the job was drafted again, for the reviewer: "drift: main moved"."""
    parts: list[AppliedPart] = []
    """Applications that were partly done before a drift, oldest first. Not empty: only the rest is planned again."""
    results: dict[str, BlobRef] = {}
    """The last draft's results, kept while the rest of its plan is open."""
    step: int = 0
    """Counts ledger notes, so that each has an idempotency key of its own."""


class LostJob(Contract):
    """Says that a job's workflow may be gone, and asks the ledger where it stood. Carries no authority."""

    job_id: str


class FoundJob(Contract):
    """Where a job stands, by the ledger."""

    state: JobState | None = None
    """What to start it with again; ``None``: it has ended, or there is none."""


class SourceOutline(Contract):
    """One gather source or check, as much as the workflow must know."""

    name: str
    attempts: int = 3
    attempt_limit_seconds: int = 120
    optional: bool = False


class JobOutline(Contract):
    """The shape of a job's stages, read from its pinned template."""

    sources: list[SourceOutline] = []
    has_analysis: bool = False
    has_draft: bool = False
    checks: list[SourceOutline] = []
    redraft: int = 0
    """How often a red check sends the job back to draft."""
    draft_limit_seconds: int = 600
    draft_has_agent: bool = False
    """A red check is worth another draft only where a model might answer differently."""
    analysis_has_prompt: bool = False
    """The analysis asks a model, step by step."""
    plan_only: bool = False
    undoes: str = ""


class StepInput(Contract):
    """One stage step of a job."""

    job_id: str
    spec: BlobRef
    round: int
    name: str = ""
    """Source or check; empty where a stage is one step."""
    results: dict[str, BlobRef] = {}
    """Results so far: key ``gather.<source>``, ``analyze``, ``draft``, ``verify.<check>``."""
    edits: list[BlobRef] = []
    previous: str = ""
    note: str = ""
    at: UtcTime
    """The time of the round, the same on every attempt."""
    parts: list[AppliedPart] = []


class StepResult(Contract):
    """What one step gave."""

    result: BlobRef | None = None
    summary: str = Field(default="", max_length=500)
    """One line for the timeline."""
    status: Literal["ok", "failed", "skipped", "finished"] = "ok"
    """``finished``: analysis says that there is nothing to do. ``failed``: a red check or an optional source."""


class PlanResult(Contract):
    """What freezing gave: a plan, or why there is none."""

    plan: PlanRef | None = None
    summary: str = ""
    problem: str = ""
    """Why the rest of a partly applied plan cannot be planned again: what was done is taken back."""


class NoteInput(Contract):
    """A change of phase for the ledger and the list of jobs. Idempotent on (workflow id, step)."""

    job_id: str
    step: int
    phase: JobPhase
    summary: str = ""
    said_by: str = ""
    """Workflow id of the application that says so; empty: the job itself. Its steps are counted apart."""


class RequestsInput(Contract):
    """Which signed requests (cancel, resolve) stand in the ledger for this job?"""

    job_id: str


class RequestsResult(Contract):
    """Requests whose signatures hold under today's policy."""

    cancel: bool = False
    by: str = ""
