"""The plan: what a job wants to do to the world, frozen. Its stored bytes are its name."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from perdure.contracts.base import BlobRef, Contract, Digest, JsonDict, UtcTime
from perdure.contracts.canonical import CONTENT_PREFIX, EFFECT_PREFIX, PLAN_PREFIX, canonical_bytes, digest_of
from perdure.errors import Tampered

FORMAT: Literal["perdure.plan/1"] = "perdure.plan/1"

OnFailure = Literal["undo_all", "pause", "report"]


class Inverse(Contract):
    """What undo does. Exactly one of the two texts beside ``body`` is set when there is no ``body``."""

    summary: str = ""
    """One line for the reviewer: "delete while ours"."""
    kind: str = ""
    """Kind of effect that undoes; empty when there is none."""
    version: int = 0
    body: JsonDict | None = None
    """Plan of the undoing effect, of ``kind``, fixed now. ``None``: there is none."""
    irreversible: str = ""
    """Why this cannot be undone."""
    none_needed: str = ""
    """Why nothing has to be undone."""
    only_before_irreversible: bool = False
    """Not undone once a later irreversible effect of the plan is done (a pushed tag whose package is published)."""


class FileChange(Contract):
    """One path that the plan changes, for the reviewer's diff. Paths as ``path_text`` writes them."""

    path: str
    old: BlobRef | None = None
    """Content before; ``None``: the path is new."""
    new: BlobRef | None = None
    """Content after; ``None``: the path is removed."""
    old_mode: str = ""
    """Git's mode in octal: 100644, 100755, 120000 (link), 160000 (submodule); empty when absent."""
    new_mode: str = ""


class After(Contract):
    """What comes after an effect: a command that settles it, also when it was taken back, and a look at the result."""

    settle: list[str] = []
    """Command that may run again; empty: none."""
    run: list[str] = []
    """Command that ends with 0 when all is well; empty: none."""
    http: str = ""
    """URL that answers with ``status`` when all is well; empty: none."""
    status: int = 200
    within_seconds: int = 0
    """How long it may take until all is well."""
    on_worker: bool = False
    """The commands run on the worker itself, not in the sandbox."""
    content: JsonDict | None = None
    """The drafted content that the commands see."""


class PlannedEffect(Contract):
    """One change outside the workspace: exactly what, on what condition, and its way back."""

    id: str
    """The step's id in the template; with ``for_each`` and the item's: ``tag.core``."""
    kind: str
    version: int
    """Code version of the kind: another version never applies this."""
    summary: str
    """One line for the reviewer: "v1.3.0 → 5be1f07"."""
    body: JsonDict
    """Exactly what will be done; only the kind reads it. Nothing in it is computed later."""
    target: str
    """What is locked while it happens: "git:/srv/orders/.git"."""
    requires: list[str] = []
    """Its preconditions as sentences; the kind checks the facts behind them from ``body``."""
    inverse: Inverse
    artifacts: list[BlobRef] = []
    """Blobs that ``body`` names and that must still be there when it is applied."""
    runs_on: Literal["sandbox", "worker"] = "worker"
    ways_out: list[str] = []
    """Hosts it may reach and names of secrets it gets, for the reviewer."""
    attempt_limit_seconds: int = 600
    on_failure: OnFailure = "undo_all"
    pause: bool = False
    """Not begun before a person says go on, when the steps before are done."""
    after: After | None = None

    def digest(self) -> str:
        """The effect's own digest."""
        return digest_of(EFFECT_PREFIX, canonical_bytes(self.model_dump(mode="json")))


class Verdict(Contract):
    """What one check said about exactly this content."""

    check: str
    status: Literal["passed", "failed", "skipped", "not_run"]
    detail: str = ""
    """One line."""
    log: BlobRef | None = None
    baseline: Literal["", "passed", "failed"] = ""
    """The same check on the untouched base; empty when it was not asked for."""
    again: bool = False
    """Part of a preflight: it is asked again just before the first effect, and red stops there."""


class ApprovalRule(Contract):
    """So many approvals from one group."""

    group: str
    count: int = Field(default=1, ge=1)
    after: list[str] = []
    """Groups of the same rule that decide before: until theirs stand, an approval of this group does not count."""


class EscalationRule(Contract):
    """Who else may decide once a plan has waited for so long."""

    group: str
    after_seconds: int = Field(ge=1)
    """Since the plan was frozen."""
    stands_for: list[str] = []
    """In whose place; empty: of every group."""


class ReviewRule(Contract):
    """Who decides, pinned into the plan."""

    approvals: list[ApprovalRule]
    """All of them are needed. Empty: no gate (only reversible effects)."""
    policy: str = ""
    """Name of the policy that the rule was made from; what it says today counts too, the stricter of both."""
    requester_may_approve: bool = True
    """False: nor may an author."""
    authors_may_approve: bool = True
    """Whether people whose edits are in the plan may approve it."""
    expires_after_seconds: int = 7 * 24 * 3600
    on_expiry: Literal["deny", "skip", "park"] = "deny"
    """deny, skip: nothing happens and the job ends (skip: this run was left out) · park: it has no deadline."""
    remind_after_seconds: list[int] = []
    """When those who are missing are told again, since the plan was frozen."""
    escalations: list[EscalationRule] = []
    break_glass: list[str] = []
    """Groups whose members, with the right to, may let it go alone, with a reason. Empty: nobody may."""
    editable: list[str] = []


class Settled(Contract):
    """Something that an approval of a plan settles for the later jobs of its thread."""

    about: str
    """What knows it: "release.map", or "release.map packages/core" for one package."""
    name: str
    """"feat(words)"."""
    value: str
    """"patch"."""
    because: str
    """The evidence: "so it was in 4 of the last 4 releases that such changes decided"."""


class Forecast(Contract):
    """What one step would do, as it was seen when the plan was made."""

    effect: str
    """The planned effect's id."""
    would: Literal["change", "nothing", "unknown"]
    """nothing: all is as it would leave it · unknown: it cannot be told, which is never as good as "nothing"."""
    detail: str = ""
    """What was seen, one line."""


class Envelope(Contract):
    """Everything about a plan that is not its effects."""

    job_id: str
    thread: str
    round: int
    """1 for the first plan of a job, one more for each redraft."""
    requester: str
    authors: list[str] = []
    """People whose edits are in this plan."""
    template: str
    template_digest: Digest
    rule: ReviewRule
    policy_version: int = 1
    verdicts: list[Verdict] = []
    forecasts: list[Forecast] = []
    """One for each effect, in their order; empty where a draft's diff shows what changes."""
    findings: list[str] = []
    """Things a reviewer should know: "the tests were red before", "an optional source failed"."""
    lock: str = ""
    """Target of the whole plan, from the template; empty: each effect's own target is locked alone."""
    base_commit: str = ""
    title: str = ""
    """One line: "1.2.0 → 1.3.0"."""
    reasons: list[str] = []
    """Why this is proposed, strongest first."""
    settles: list[Settled] = []
    changes: list[FileChange] = []
    created_at: UtcTime
    expires_at: UtcTime
    undoes: str = ""
    """Job id whose receipts this plan takes back; empty for a plan that goes forward."""
    previous: str = ""
    """Digest of the last decided plan of this job, for the difference."""


class Plan(Contract):
    """The frozen document. ``digest`` is not inside: it is the hash of the stored bytes."""

    format: Literal["perdure.plan/1"] = FORMAT
    content: Digest
    """Over the ordered effect digests alone: what is compared when an approval is carried over."""
    envelope: Envelope
    effects: list[PlannedEffect]


def content_digest(effects: list[PlannedEffect]) -> str:
    """Digest over the ordered effects' digests."""
    return digest_of(CONTENT_PREFIX, canonical_bytes([effect.digest() for effect in effects]))


def freeze(envelope: Envelope, effects: list[PlannedEffect]) -> tuple[str, bytes]:
    """Return (digest, the bytes to store). The digest is over exactly these bytes."""
    plan = Plan(content=content_digest(effects), envelope=envelope, effects=effects)
    data = canonical_bytes(plan.model_dump(mode="json"))
    return digest_of(PLAN_PREFIX, data), data


def read_plan(digest: str, data: bytes) -> Plan:
    """Parse stored bytes after hashing them again.

    Raises:
        Tampered: the bytes are not what ``digest`` names, or their effects are not what ``content`` names.
    """
    found = digest_of(PLAN_PREFIX, data)
    if found != digest:
        raise Tampered(
            f"The stored plan {digest[:8]} hashes to {found[:8]}: its bytes were changed. Nothing was applied."
        )
    raw: dict[str, Any] = json.loads(data)
    effects = [digest_of(EFFECT_PREFIX, canonical_bytes(effect)) for effect in raw["effects"]]
    if digest_of(CONTENT_PREFIX, canonical_bytes(effects)) != raw["content"]:
        raise Tampered(f"The effects of plan {digest[:8]} are not the ones its content digest names.")
    return Plan.model_validate(raw)
