"""What every effect must be able to say and do. The applier knows this and nothing else.

Undoing is no second mechanism: an effect's inverse is the body of another effect (often of the same kind, old and new
exchanged), fixed when the plan is made, shown to the reviewer and applied by the same applier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol

from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.plan import Inverse
from perdure.errors import EffectUnknown, EffectWaiting

SECRET_MARK = "secret:"
"""Before a secret's name among an effect's ways out."""


class Found(StrEnum):
    """What a probe found in the world."""

    done = "done"
    """The world is as this effect would leave it."""
    not_done = "not_done"
    """Proven: the world is as it was before."""
    foreign = "foreign"
    """Neither: somebody else changed it."""
    unknown = "unknown"
    """It cannot be told (a remote does not answer)."""
    waiting = "waiting"
    """Begun by us, and somebody outside has to finish it (only kinds that are :class:`Parking`)."""
    lapsed = "lapsed"
    """What we began can no longer come to what was approved (only kinds that are :class:`Parking`)."""


@dataclass(frozen=True)
class Probe:
    """A probe's answer; ``detail`` is one line for people."""

    found: Found
    detail: str = ""


def problems_of(probe: Probe) -> list[str]:
    """What a probe right after ``do`` says against it: nothing, or one sentence.

    Raises:
        EffectUnknown: it cannot be told; a good effect is not taken back because nobody answers.
        EffectWaiting: it is begun, and somebody outside finishes it.
    """
    if probe.found is Found.unknown:
        raise EffectUnknown(probe.detail)
    if probe.found is Found.waiting:
        raise EffectWaiting(probe.detail)
    return [] if probe.found is Found.done else [probe.detail]


class Blobs(Protocol):
    """The part of the blob store that effects and rules use."""

    def put(self, data: bytes) -> BlobRef:
        """Store bytes durably; the same bytes twice is one blob."""
        ...

    def get(self, ref: BlobRef) -> bytes:
        """Read bytes back. Raises ``Tampered`` when they do not hash to the reference, ``NotFound`` when gone."""
        ...


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    code: int
    output: bytes
    """stdout and stderr; cut to the limit with the cut said in the text."""
    stdout: bytes = b""
    stderr: bytes = b""


class Runner(Protocol):
    """Runs a command on the host in a process group of its own, which a later attempt can find and end.

    The group inherits the lock on the effect's target: while any process of it lives, nobody else starts on it.
    """

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: bytes = b"",
        limit: timedelta,
        pass_fds: Sequence[int] = (),
    ) -> Finished:
        """Run to the end. Raises ``EffectUnknown`` when the wall limit is met (the group is killed first)."""
        ...


@dataclass(frozen=True)
class EffectContext:
    """What an effect gets when it is asked to plan, look or act."""

    blobs: Blobs
    scratch: Path
    """A private empty folder, gone afterwards."""
    runner: Runner
    now: datetime
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Values by name, only those that the effect's body names."""
    key: str = ""
    """The same for every attempt at one effect in one direction, and for nothing else. Empty where nothing is done."""


@dataclass(frozen=True)
class EffectRequest:
    """A template's apply step after all its expressions were resolved."""

    id: str
    arguments: JsonDict
    """The step's ``with``."""
    probe: Any = None
    undo: Any = None
    require: Any = None
    irreversible: str = ""
    runs_on: str = "sandbox"
    attempt_limit: timedelta = timedelta(minutes=10)
    draft: JsonDict = field(default_factory=dict)
    """The draft stage's result, for kinds that need the drafted content."""
    earlier: Sequence[tuple[str, JsonDict]] = ()
    """(kind, body) of the effects planned before this one: a push finds the ids of what it pushes here."""


@dataclass(frozen=True)
class EffectDraft:
    """What planning gives: all of it enters the digest."""

    body: JsonDict
    summary: str
    target: str
    inverse: Inverse
    requires: list[str] = field(default_factory=list)
    artifacts: list[BlobRef] = field(default_factory=list)
    runs_on: str = "worker"
    ways_out: list[str] = field(default_factory=list)


class Effect(Protocol):
    """One kind of change. Stateless; every method may be called again."""

    kind: ClassVar[str]
    version: ClassVar[int]
    always_reversible: ClassVar[bool]
    """The kind always has an inverse of its own; else the template must give ``undo`` or ``irreversible``."""
    settle: ClassVar[timedelta]
    """How long "not done" may still turn into "done" after ``do`` was begun; zero for local kinds.

    A body that holds ``settle_seconds`` says so for itself.
    """

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """Say exactly what would be done. Reads only. Raises ``UserError`` when the arguments are wrong."""
        ...

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """Return what no longer holds of the preconditions, one sentence each; empty when all hold. Reads only.

        Raises:
            LookFailed: it cannot be seen now; the message says what passes by itself, or what to do.
        """
        ...

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Look whether it is done. Reads only; never raises for a world it does not like."""
        ...

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Do it; return the result for the receipt. Safe to call again when ``probe`` says not done.

        Raises:
            EffectFailed: it did not happen.
            EffectUnknown: it cannot be known.
        """
        ...

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """Return what is not as it should be after ``do``, one sentence each. May repair what is idempotent.

        Raises:
            EffectUnknown: it cannot be told now.
        """
        ...


class Parking(Effect, Protocol):
    """A kind that somebody outside has to finish, in hours or days: the application parks meanwhile.

    Its ``do`` is safe to repeat at any time, so that it is never in doubt: what cannot be told is looked at again.
    """

    def withdraw(self, body: JsonDict, context: EffectContext) -> str:
        """Take back what was begun and is not finished, while it is ours; say what was done. Safe to call again.

        Raises:
            EffectUnknown: it cannot be told whether it is taken back; ask again later.
        """
        ...


def settle_of(effect: Effect, body: JsonDict) -> timedelta:
    """How long a "no" is not yet a no for this body."""
    return timedelta(seconds=body["settle_seconds"]) if "settle_seconds" in body else effect.settle
