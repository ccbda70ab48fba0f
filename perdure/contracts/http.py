"""What goes over the API, both ways. The CLI and other clients speak only these."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perdure.contracts.agent import EffectClass, Spent
from perdure.contracts.base import BlobRef, Contract, Digest, JsonDict, UtcTime
from perdure.contracts.decisions import Weighing
from perdure.contracts.job import JobPhase
from perdure.contracts.plan import PlannedEffect, ReviewRule, Settled, Verdict


class Problem(Contract):
    """Every error's body. ``kind`` is the class in ``perdure.errors``; ``exit_code`` what a CLI ends with."""

    kind: str
    message: str
    exit_code: int = 1


class SubmitRequest(Contract):
    """Start a job. The same ``request_id`` twice is the same job."""

    template: str
    inputs: JsonDict = {}
    """As typed: text, or JSON values."""
    request_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    folder: str
    """Absolute folder that relative inputs start from, and where ``.perdure/jobs`` is looked for."""
    plan_only: bool = False


class JobView(Contract):
    """One job as lists and `show` give it."""

    job_id: str
    number: int
    name: str
    """"<thread>/<sequence>"."""
    thread: str
    template: str
    phase: JobPhase
    summary: str = ""
    requester: str
    created_at: UtcTime
    updated_at: UtcTime
    digest: str = ""
    """Of the newest plan; empty before there is one."""
    round: int = 0
    title: str = ""
    """The newest plan's title."""
    expires_at: UtcTime | None = None
    missing: list[str] = []
    """While waiting: who is still needed."""
    undone_by: str = ""
    """Name of the job that took this one back."""
    trouble: str = ""
    """While it works: what a worker is held up by and tries again, in words."""


class EventView(Contract):
    """One ledger record for a timeline."""

    position: int
    """Grows by one over the whole ledger; ask for what comes after the last one you have."""
    seq: int
    thread: str
    job_id: str = ""
    kind: str
    """"job.phase", "stage", "plan.frozen", "decision.approve", "effect.intent", "effect.receipt", …"""
    at: UtcTime
    actor: str
    body: JsonDict
    """Empty when the content was erased."""


class EventPage(Contract):
    """Events after a position, and where the job is now."""

    events: list[EventView]
    job: JobView | None = None


class EffectView(Contract):
    """One effect of a plan with what has become of it."""

    effect: PlannedEffect
    digest: Digest
    state: str = ""
    """Empty: not begun. Else ``intent``, or an ``EffectState``, or ``undone``."""
    detail: str = ""
    would: Literal["", "change", "nothing", "unknown"] = ""
    """What it would do, seen when the plan was made; ``unknown`` is never fine. Empty: a draft's diff shows it."""
    would_detail: str = ""


GateState = Literal[
    "open", "satisfied", "denied", "changes_requested", "expired", "cancelled", "superseded", "not_opened"
]
"""How the gate on a plan stands, or ended."""


class Review(Contract):
    """A plan, whole, as a reviewer sees it. The diff is computed from blobs when asked, and never cut."""

    job: JobView
    digest: Digest
    content: Digest
    round: int
    title: str
    reasons: list[str]
    rule: ReviewRule
    requester: str
    authors: list[str]
    effects: list[EffectView]
    verdicts: list[Verdict]
    findings: list[str]
    settles: list[Settled] = []
    """What an approval settles for the thread's later jobs as well."""
    hazards: list[str]
    """What to read before the diff: mode changes, links, submodules, binaries, CI and hook files, confusable names."""
    diff: str
    """Unified, invisible characters made visible. Empty when larger than 1 MB: ``GET /v1/diff`` gives it."""
    diff_bytes: int = 0
    """Size of the whole diff, also when it is not in this answer."""
    files: int
    added: int
    removed: int
    since_previous: str = ""
    """What differs from the last plan of the job that whoever looks decided, one item a line; empty for somebody who
    decided none: they see all of it for the first time. Diffs above 1 MB left out."""
    since_digest: str = ""
    """That plan."""
    since_previous_left_out_bytes: int = 0
    """Size of the diff between the two plans when left out: ``GET /v1/diff`` gives it, with ``since_previous``."""
    weighing: Weighing
    state: GateState
    expires_at: UtcTime


class DecideRequest(Contract):
    """Decide on one digest, whole. Never "the latest"."""

    kind: Literal["approve", "reject", "request_changes", "withdraw", "break_glass"]
    decision_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    comment: str = ""
    changes: JsonDict = {}
    """With ``request_changes``: ``contracts.decisions.Edits.changes``."""
    since: Digest | None = None
    """The earlier plan, decided by the same person, against which this one was looked at; kept in the decision."""
    passphrase: str = ""
    """Opens the decision key when it has one; used for this signature and forgotten."""


class DecideAnswer(Contract):
    """What the decision amounts to."""

    decision_id: str
    weighing: Weighing
    job: JobView


class ResolveRequest(Contract):
    """Say what became of an effect whose fate is unknown."""

    decision_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    digest: Digest
    effect: int = Field(ge=0)
    answer: Literal["done", "not_done", "stop"]
    comment: str = ""
    passphrase: str = ""


class CancelRequest(Contract):
    """Stop a job at its next boundary; what was applied is taken back."""

    decision_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    comment: str = ""
    passphrase: str = ""


class SteerRequest(Contract):
    """Speak to the agent that works on a job, or turn what it may do. Signed like a decision."""

    decision_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    kind: Literal["say", "interrupt", "amend", "rewind", "pause", "resume", "dial", "more"]
    text: str = Field(default="", max_length=4000)
    """The message; the dial's new place; JSON of the limits that grow (``contracts.agent.Limits``), or of the
    checkpoint to go back to (``contracts.checkpoints.Rewind``)."""
    passphrase: str = ""


class WordView(Contract):
    """One word of a person's to an agent, and where it is."""

    id: str
    kind: str
    by: str
    at: UtcTime
    text: str
    turn: int = 0
    """Whose request it was first in; 0: not delivered, or nothing to deliver."""


class AgentView(Contract):
    """One agent of a job: what it used, how it ended."""

    agent_id: str
    ordinal: int
    """Which agent of its job, from 1."""
    task: str = ""
    """What it is there for: "analyze.release", "draft", or the first words that another agent gave it."""
    parent: int = 0
    """Ordinal of the agent that started it; 0: its job did."""
    children: Spent = Spent()
    """What the agents below it used, which counts as its own."""
    state: str
    """``working``, ``parked``, or why it ended."""
    sentence: str = ""
    dial: str
    turns: int
    calls: int
    tokens: int
    cost_microdollars: int
    unknown_cost: bool
    models: list[str]
    started_at: UtcTime
    tools: dict[str, int]
    """Calls by tool."""
    trouble: dict[str, int]
    """Calls by status, other than ok."""
    words: list[WordView]
    """What people said, oldest first."""


class UndoRequest(Contract):
    """Make a job that takes another one back: a plan of its own."""

    request_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")


class ArtifactView(Contract):
    """One stored result of a job."""

    name: str
    """"gather.history", "draft", "verify.tests.log", "plan"."""
    ref: BlobRef


class TemplateView(Contract):
    """One template that can be run, or why not."""

    name: str
    summary: str = ""
    source: Literal["shipped", "repository", "configured"]
    path: str
    digest: Digest
    trusted: bool
    edited: bool = False
    """Not trusted, because its text is another one than was trusted before."""
    inputs: list[JsonDict] = []
    """{name, type, default, optional, help}"""
    problem: str = ""
    text: str = ""


class ToolView(Contract):
    """One tool that agents may be given, as models and policy see it."""

    name: str
    version: str
    description: str
    effect_class: EffectClass
    origin: str
    """``perdure``, or entry point and version of the package that brings it."""
    digest: Digest
    """Of its definition; stands in each call's record."""
    parameters: JsonDict
    """JSON schema."""
    may_repeat: bool
    limit_seconds: int


class EffectKindView(Contract):
    """One kind of effect that a template's apply steps may name."""

    kind: str
    version: int
    """Another version never applies a plan of this one."""
    about: str
    takes: str
    """What a step of it says: ``with``, ``probe``, ``undo``."""
    always_reversible: bool
    """Its undo is built in; else the step declares one, or says why there is none."""
    settle_seconds: int
    parks: bool
    """Somebody outside finishes it."""
    origin: str
    """``perdure``, or entry point and version of the package that brings it."""


class ValidateRequest(Contract):
    """Check a template's text."""

    path: str
    text: str


class TrustRequest(Contract):
    """Allow a repository's template to run, by the digest of its text."""

    name: str
    digest: Digest
    folder: str
    decision_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    passphrase: str = ""


class PassphraseRequest(Contract):
    """Give the decision key a passphrase, another one, or none."""

    passphrase: str = ""
    """The one it has; empty when it has none."""
    new_passphrase: str
    """Empty takes it away."""


class KeyView(Contract):
    """The key that signs decisions, as far as it may be seen."""

    has_passphrase: bool
    public_keys: dict[str, str]
    """Raw Ed25519 keys in hex by key id, retired ones too: a verifier of evidence must get them by another way."""


class TokenRequest(Contract):
    """Make a token; its text is shown once."""

    principal: str
    groups: list[str] = []
    may: list[Literal["submit", "decide", "read", "break_glass"]] = ["read"]
    acts_for: str = ""
    """The person behind an agent: it may read and submit, and what it asks for is asked for by that person."""


class TokenView(Contract):
    """A token without its text, or with it just after it was made."""

    id: str
    principal: str
    acts_for: str = ""
    """Set: an agent of that person."""
    groups: list[str]
    may: list[str]
    created_at: UtcTime
    revoked_at: UtcTime | None = None
    text: str = ""


class AuditFinding(Contract):
    """One thing that an audit saw."""

    severity: Literal["ok", "gap", "tampered", "expired", "notice"]
    """expired: gone by retention and archived; gap: missing without a reason; notice: nothing is wrong with the
    evidence, and what it tells should not be overlooked (a broken glass)."""
    about: str
    detail: str


class AuditReport(Contract):
    """The ledger compared with itself, its signatures, Temporal, and the world."""

    records: int
    head: str
    findings: list[AuditFinding]
    ok: bool


class Health(Contract):
    """How the installation is."""

    ok: bool
    version: str
    temporal: str
    """"embedded 127.0.0.1:41235" or the address."""
    worker: bool
    """A worker polls the queue."""
    detail: str = ""
