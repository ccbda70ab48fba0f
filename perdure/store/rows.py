"""What the ledger takes and gives where no contract fits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from perdure.contracts.application import CloseApplicationInput, Direction, Receipt
from perdure.contracts.base import BlobRef
from perdure.contracts.http import GateState
from perdure.errors import Conflict, Refused


class TargetBusy(Refused):
    """Another application holds the target. The one refusal that may pass by itself: wait and ask again."""


class OpenEnd(Conflict):
    """An application cannot be said to have ended: the end of an effect of its plan is not written."""


@dataclass(frozen=True)
class PlanRow:
    """A frozen plan as the ledger knows it."""

    digest: str
    content: str
    ref: BlobRef
    job_id: str
    round: int
    state: GateState
    """How its gate stands, or ended."""
    expires_at: datetime
    title: str
    effects: int
    needs_gate: bool
    undoes: str
    """Job id that this plan takes back; empty for a plan that goes forward."""
    gate_id: str
    """Workflow id of its gate; empty before one was opened."""


@dataclass(frozen=True)
class CallEnding:
    """What the ledger hears of an approved call's end, with the end itself."""

    receipt: Receipt
    ref: BlobRef
    """Where the receipt lies."""
    closing: CloseApplicationInput


@dataclass(frozen=True)
class PermitRow:
    """The right to apply one digest."""

    digest: str
    job_id: str
    application_id: str
    """Empty: withdrawn before it was granted."""
    state: str
    """granted, spent or withdrawn."""
    withdrawn_by: str
    closed: str
    """How the application ended; empty while it is open."""


@dataclass(frozen=True)
class BeginEffect:
    """Asks the arbiter whether one effect may start."""

    application_id: str
    job_id: str
    thread: str
    digest: str
    index: int
    """From 0."""
    direction: Direction
    effect_id: str
    kind: str
    target: str
    irreversible: bool


@dataclass(frozen=True)
class IntentRow:
    """One effect in one direction: begun, and how it ended."""

    application_id: str
    job_id: str
    digest: str
    index: int
    direction: Direction
    effect_id: str
    kind: str
    target: str
    state: str
    """``intent`` while nobody wrote how it ended, else an ``EffectState``."""
    attempts: int
    """How often it was begun; 0 when it ended without having been begun."""
    pgid: int
    """Process group of the newest attempt; 0 before :meth:`Ledger.note_process`."""
    boot_id: str
    receipt_ref: BlobRef | None
    detail: str
    started_at: datetime | None
    """When the newest attempt began; ``None`` when it ended without having been begun."""
    finished_at: datetime | None

    @property
    def is_final(self) -> bool:
        """Whether how it ended is known and stays so."""
        return self.state not in ("intent", "unknown")
