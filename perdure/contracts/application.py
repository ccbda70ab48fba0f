"""Applying a plan: what the applier, its activities and the ledger say to each other."""

from __future__ import annotations

from typing import Literal

from perdure.contracts.base import BlobRef, Contract, Digest, JsonDict

Direction = Literal["do", "undo"]

EffectState = Literal["done", "already", "drift", "refused", "failed", "unknown", "stopped", "waiting", "paused"]
"""done: happened, verified · already: it was so before we began · drift: its precondition no longer holds, not begun ·
refused: the ledger said no, not begun · failed: tried, proven not done · unknown: nobody can tell · stopped: a person
said stop · waiting: begun, and somebody outside has to finish it (nothing is written; ask again) · paused: not begun,
a person says go on (nothing is written; ask again)."""

NOT_AS_PROMISED = "done, but not as promised: "
"""How the end of an effect begins in the ledger that happened, although not all is well."""

NOT_DONE = "it did not happen, and a person says how it goes on: "
"""How an effect's state begins in the ledger that failed under ``on_failure: pause``. Its fate is known."""


def is_pause(detail: str) -> bool:
    """Whether an effect that is ``unknown`` in the ledger only waits for a person, while its fate is known."""
    return detail.startswith((NOT_DONE, NOT_AS_PROMISED))


ApplicationEnd = Literal["applied", "drift", "refused", "undone", "stuck", "cancelled"]


class ApplyInput(Contract):
    """Starts an application; also what it carries over continue-as-new."""

    application_id: str
    job_id: str
    digest: Digest
    ref: BlobRef
    effects: int
    """How many the plan has."""
    attempt_limits: list[int] = []
    """Seconds for each effect; empty until the application was opened."""
    next_effect: int = 0
    """Going forward: the next to do. Undoing: effects before this index are taken back, newest first."""
    undoing: bool = False
    cause: str = ""
    """Why it is taken back: the first cause, never hidden by a failing undo."""
    seq: int = 0
    """Counts ledger notes, so that each has an idempotency key of its own."""


class EffectInput(Contract):
    """One effect in one direction. (application, index, direction) is the idempotency key."""

    application_id: str
    job_id: str
    digest: Digest
    ref: BlobRef
    index: int
    direction: Direction = "do"


class EffectOutcome(Contract):
    """How one effect ended."""

    index: int
    """Another one than was asked about: how that earlier effect ended is not written, so it comes first."""
    direction: Direction = "do"
    state: EffectState
    detail: str = ""
    """One line."""
    on_failure: Literal["undo_all", "pause", "report"] = "undo_all"
    verified: bool = True
    """False with ``done``: it happened, but the end state is not as promised; it is taken back with the others."""
    is_pause: bool = False
    """With ``unknown``: its fate is known, and a person says how it goes on."""


class ApplyResult(Contract):
    """How an application ended."""

    state: ApplicationEnd
    reached: int = 0
    detail: str = ""


class OpenApplicationInput(Contract):
    """Verify bytes, permit, today's policy, and every precondition, before the first effect."""

    application_id: str
    job_id: str
    digest: Digest
    ref: BlobRef


class OpenApplicationResult(Contract):
    """Whether it may go on, and with which limits. ``ended``: it has ended before, as the ledger says."""

    state: Literal["ready", "drift", "refused", "ended"]
    detail: str = ""
    attempt_limits: list[int] = []
    """Seconds for each effect, in order."""
    end: ApplicationEnd | None = None
    """With ``ended``."""


class CloseApplicationInput(Contract):
    """Release the locks and write the end. Idempotent."""

    application_id: str
    job_id: str
    digest: Digest
    state: ApplicationEnd
    detail: str = ""


class CloseApplicationResult(Contract):
    """Whether the end is written."""

    closed: bool = True
    """False: the ledger knows of effects that have no end; nothing was written."""
    detail: str = ""


class ReadApplicationInput(Contract):
    """Asks the ledger how an application stands."""

    application_id: str


class ApplicationStanding(Contract):
    """How an application stands, by the ledger."""

    state: Literal["open", "applied", "drift", "refused", "undone", "stuck", "cancelled"]
    reached: int = 0
    """How many effects at the beginning of its plan have ended well."""
    detail: str = ""


class Receipt(Contract):
    """What an effect did, or undid; stored as a blob and named by its ledger record."""

    application_id: str
    index: int
    direction: Direction
    state: EffectState
    kind: str
    body: JsonDict
    """What was applied: the effect's body, or its inverse's when ``direction`` is undo."""
    result: JsonDict = {}
    detail: str = ""
    attempts: int = 1
