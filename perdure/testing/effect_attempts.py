"""One attempt at an effect in a process of its own, which may be killed on the way: the real applier, a real ledger."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from perdure import application
from perdure.contracts.application import Direction, EffectInput, EffectOutcome
from perdure.contracts.job import AdmitInput, JobSpec, PlanRef
from perdure.contracts.names import JobId, application_id
from perdure.contracts.plan import Envelope, PlannedEffect, ReviewRule, content_digest, freeze
from perdure.effects.base import Effect, EffectContext
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.workspace.processes import GroupRunner

_THREAD = "bench"
_EMPTY = hashlib.sha256(b"").hexdigest()
_LEDGER_STEPS = {"begin_effect": "intent", "finish_effect": "receipt"}


class NotReached(AssertionError):
    """The point at which an attempt was to be killed did not come."""


@dataclass
class Attempts:
    """A ledger, blobs and locks beneath a folder; every plan is a job of its own in them."""

    folder: Path
    effects: Mapping[str, Effect]
    secrets: Mapping[str, str] = field(default_factory=dict)
    _jobs: int = 0
    _skew: timedelta = timedelta(0)
    """How far the applier's clock is ahead: time that a remote's "no" needs is not waited for."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.blobs = BlobStore(self.folder / "blobs")
        self._applying = application.load("activities.applying")
        self._decisions = application.load("activities.ledger").Decisions

    def context(self, key: str = "") -> EffectContext:
        """What an effect gets, outside of an attempt."""
        scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=self.folder))
        runner = GroupRunner(scratch / "target.lock", lambda _pgid, _boot: None)
        return EffectContext(self.blobs, scratch, runner, datetime.now(UTC), self.secrets, key)

    def permit(self, planned: PlannedEffect) -> EffectInput:
        """Freeze a plan of one effect and grant its permit, as if it had been approved; return what to ask."""
        self._jobs += 1
        job_id = str(JobId(_THREAD, f"job-{self._jobs}"))
        now = datetime.now(UTC)
        rule, until = ReviewRule(approvals=[]), now + timedelta(days=1)
        spec = JobSpec(template=_THREAD, template_source="", template_digest=_EMPTY, inputs={}, requester="bench")
        envelope = Envelope(
            job_id=job_id,
            thread=_THREAD,
            round=1,
            requester="bench",
            template=_THREAD,
            template_digest=_EMPTY,
            rule=rule,
            created_at=now,
            expires_at=until,
        )
        digest, data = freeze(envelope, [planned])
        ref, content = self.blobs.put(data), content_digest([planned])
        plan = PlanRef(digest=digest, content=content, ref=ref, effects=1, round=1, expires_at=until, needs_gate=False)
        job = AdmitInput(
            job_id=job_id,
            spec=self.blobs.put(spec.model_dump_json().encode()),
            template=_THREAD,
            requester="bench",
        )
        applying = application_id(job_id, 1)
        ledger = self._open()  # closed again before anything is forked: SQLite must not be carried over
        try:
            ledger.request_job(job, at=now)
            ledger.admit_job(job, at=now)
            ledger.record_plan(job_id=job_id, plan=plan, envelope=envelope, at=now)
            ledger.grant_permit(digest=digest, job_id=job_id, application_id=applying, at=now)
        finally:
            ledger.close()
        return EffectInput(application_id=applying, job_id=job_id, digest=digest, ref=ref, index=0)

    def run(self, question: EffectInput, direction: Direction, point: str = "") -> EffectOutcome:
        """Try until there is an answer; the first attempt is killed at ``point`` ("before do", "in do 5", …).

        Raises:
            NotReached: it was not.
        """
        asked = question.model_copy(update={"direction": direction})
        if point:
            said, died = in_child(lambda: self._attempt(asked, point))
            if not died and not point.startswith("in "):
                raise NotReached(f"Nothing came to {point!r}; the attempt ended with {said}.")
        while True:
            said, died = in_child(lambda: self._attempt(asked, ""))
            if died or "error" in said:
                raise AssertionError(f"An attempt ended without an answer: {said.get('error', 'it was killed')}")
            if "later" not in said:
                return EffectOutcome.model_validate(said)
            self._skew += timedelta(seconds=said["later"] + 1)

    def _attempt(self, question: EffectInput, point: str) -> dict[str, Any]:
        """In the child: what a worker does with one effect."""
        ledger = self._open()
        applying, ahead = self._applying, self._skew
        vars(applying)["_now"] = lambda: datetime.now(UTC) + ahead  # in this process only
        effects = {kind: _Deadly(effect, point) for kind, effect in self.effects.items()}
        applier = applying.Applier(
            _Deadly(ledger, point),
            self.blobs,
            self._decisions(ledger, dict),
            effects,
            self.folder / "locks",
            self.folder / "attempts",
            lambda _ways: self.secrets,
        )
        try:
            return json.loads(applier.apply(question).model_dump_json())  # type: ignore[no-any-return]
        except Exception as error:
            after = getattr(error, "next_retry_delay", None)
            if getattr(error, "type", "") == "Settling" and after is not None:
                return {"later": after.total_seconds()}
            raise

    def _open(self) -> Ledger:
        return Ledger.open(f"sqlite:///{self.folder / 'ledger.db'}")


class _Deadly:
    """A port in whose methods the process may die."""

    def __init__(self, port: Any, point: str) -> None:
        self._port, self._point = port, point

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found) or not self._point:
            return found
        step = _LEDGER_STEPS.get(name, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._point == f"before {step}":
                die()
            if self._point.startswith(f"in {step} "):
                # The alarm's default action ends the process, whatever it is doing.
                signal.setitimer(signal.ITIMER_REAL, int(self._point.rpartition(" ")[2]) / 1000)
            answer = found(*args, **kwargs)
            if self._point == f"after {step}":
                die()
            return answer

        return call


def die() -> None:
    """End like a power cut: no handler, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], Mapping[str, Any]]) -> tuple[Mapping[str, Any], bool]:
    """Run ``work`` in a fork; return (what it gave, or its ``error``; whether it was killed)."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # A test's own servers are threads: the child uses none of them, and ends without cleaning up.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _work_and_end(work, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        told = answer.read()
    _, status = os.waitpid(child, 0)
    return (json.loads(told) if told else {}), os.WIFSIGNALED(status)


def _work_and_end(work: Callable[[], Mapping[str, Any]], writing: int) -> None:
    try:
        said = json.dumps(work())
    except BaseException:
        said = json.dumps({"error": traceback.format_exc()})
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.write(writing, said.encode()[:60_000])
    os._exit(0)
