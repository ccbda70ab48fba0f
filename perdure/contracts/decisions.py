"""Decisions of people: what is signed, what a gate collects, what weighing answers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perdure.contracts.base import BlobRef, Contract, Digest, JsonDict, UtcTime

DecisionKind = Literal[
    "approve", "reject", "request_changes", "withdraw", "cancel", "resolve", "trust", "schedule",
    "say", "interrupt", "amend", "rewind", "pause", "resume", "dial", "more",
    "standing", "revoke",
    "break_glass", "delegate", "undelegate", "go_on",
]  # fmt: skip
"""The second line steers an agent: what is said, the dial's new place or what is given more stands in ``comment``.
In the third a :class:`StandingScope`, or a :class:`Revocation`, stands there as JSON; in a ``delegate`` a
:class:`Delegation`, in an ``undelegate`` the id of one. ``go_on``: before an effect that waits for that word.

Of ``schedule`` the digest names a stored :class:`~perdure.contracts.schedules.ScheduleWord`.
"""


STEERING: tuple[DecisionKind, ...] = ("say", "interrupt", "amend", "rewind", "pause", "resume", "dial", "more")
"""Words to an agent at work."""

MESSAGES: tuple[DecisionKind, ...] = ("say", "interrupt", "amend", "rewind")
"""Those that are put before the model."""


class StandingScope(Contract):
    """What a standing approval lets go: calls of one tool, in one thread, for one template text, until a time."""

    thread: str
    template_digest: Digest
    tool: str
    tool_digest: Digest
    """Of the tool's definition: a changed tool is a new one."""
    arguments_hash: str = ""
    """Calls with exactly these arguments (``policy.targets.hash_arguments``); empty: as the patterns below say."""
    target: str = "*"
    """Glob over each target of the call, read as rules that allow are: ``*`` stops at ``/``."""
    arguments: dict[str, str] = {}
    """Argument name to a glob over its text."""
    until: UtcTime
    uses: int = Field(default=0, ge=0)
    """So many calls; 0: any number."""
    comment: str = Field(default="", max_length=1000)
    """Why, in the person's words."""


class Revocation(Contract):
    """Takes a standing approval back."""

    approval: str
    """Id of the decision."""
    comment: str = Field(default="", max_length=1000)


class Delegation(Contract):
    """Lets somebody else decide in one's place until a time; belongs to no job."""

    to: str
    """The principal's name. What was delegated to it, it cannot delegate."""
    groups: list[str] = Field(min_length=1)
    """Groups of whoever delegates."""
    until: UtcTime
    comment: str = Field(default="", max_length=1000)


class Decision(Contract):
    """One decision, exactly as signed: canonical JSON of this model behind ``DECISION_PREFIX``."""

    id: str
    """Made by whoever decides; the same id twice is the same decision."""
    kind: DecisionKind
    job_id: str
    digest: str = ""
    """The plan's digest, whole. Empty for ``cancel`` and for words to an agent."""
    by: str
    """The principal's name."""
    groups: list[str] = []
    """Groups of the principal when it decided; ``*`` is the local owner, who stands for every group."""
    at: UtcTime
    head: str
    """The ledger's head that was seen."""
    comment: str = Field(default="", max_length=4000)
    door: str = ""
    """Through which door it came: "unix socket", "token 4f2a81c0"."""
    since: str = ""
    """Digest of an earlier plan, decided by the same person, against which this one was looked at."""
    edits: BlobRef | None = None
    """With ``request_changes``: an :class:`Edits` blob."""
    effect: int | None = None
    """With ``resolve`` and ``go_on``: which effect of the plan, from 0."""
    answer: Literal["", "done", "not_done", "stop"] = ""
    """With ``resolve``."""


class SignedDecision(Contract):
    """A decision and its Ed25519 signature (hex), by the key ``key_id`` names."""

    decision: Decision
    signature: str
    key_id: str


class Edits(Contract):
    """A reviewer's changes for the next draft."""

    by: str
    comment: str = ""
    changes: JsonDict = {}
    """For a release: ``{"version": "2.0.0", "entries": [{"op": …, "id": …, "text": …, "section": …}]}``.

    ``op`` is one of reword, move, drop, add, forget (what is remembered of an entry, of ``version``, of a line of the
    map); ``map`` sets lines of the type map, ``{"feat(words)": "minor"}``. Of several packages ``version`` is a version
    by package, and an ``add`` names its ``package``.
    """


class Ignored(Contract):
    """A decision that does not count, and why."""

    decision_id: str
    by: str
    why: str


class Weighing(Contract):
    """What the decisions so far amount to under the pinned rule and today's policy."""

    outcome: Literal["pending", "satisfied", "denied", "changes_requested", "withdrawn"]
    missing: list[str] = []
    """Who is still needed: "1 from maintainers"."""
    ignored: list[Ignored] = []
    by: list[str] = []
    """Whose decisions made the outcome."""
    edits: BlobRef | None = None
    comment: str = ""
    self_approved: bool = False
    standing: list[str] = []
    """Ids of the standing approvals among the decisions that made the outcome."""
    broken_glass: str = ""
    """Who broke the glass, and why; empty: nobody did, or it was not what let the plan go."""
    notes: list[str] = []
    """What somebody who decides should know of the rule, one sentence each: that a policy is stricter today."""


class GateInput(Contract):
    """Opens a gate on one digest; also what it carries over continue-as-new."""

    gate_id: str
    job_id: str
    digest: Digest
    ref: BlobRef
    expires_at: UtcTime
    opened: bool = False
    collected: list[str] = []
    """Decision ids seen, oldest first."""


class GateOpened(Contract):
    """The ledger's answer to opening a gate."""

    state: str = ""
    """``again``: it was opened before."""
    replaced: list[str] = []
    """Gates of earlier fires of the same schedule whose plans this one supersedes: they must look."""


class DecisionNotice(Contract):
    """Tells a gate that a decision lies in the ledger. Carries no authority."""

    decision_id: str
    digest: Digest


class WeighInput(Contract):
    """Weigh all decisions on ``digest`` that lie in the ledger."""

    gate_id: str
    job_id: str
    digest: Digest
    ref: BlobRef
    may_be_cancelled: bool = False
    """Look for a cancel of the job too."""


class GateEnd(Contract):
    """How a gate ended, or that it is open."""

    outcome: Literal["open", "satisfied", "denied", "changes_requested", "expired", "cancelled", "superseded"]
    detail: str = ""
    edits: BlobRef | None = None
    weighing: Weighing | None = None
    """What all decisions amounted to when it was asked to close."""


class CloseGateInput(Contract):
    """What the ledger writes about a gate's end. Idempotent."""

    gate_id: str
    job_id: str
    digest: Digest
    outcome: Literal["satisfied", "denied", "changes_requested", "expired", "cancelled", "superseded"]
    detail: str = ""
    application_id: str = ""
    """Of a satisfied one: who is granted the permit."""
    standing: list[str] = []
    """Ids of the standing approvals that it rests on; each is counted as used."""
