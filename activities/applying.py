"""probe → intent → do → verify → receipt, at most once and known, across any number of dead workers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from activities.backward import Backward
from activities.deeds import Deed, outcome_of
from activities.ledger import Decisions
from activities.parking import Verdict, judge_parked, parking_of
from activities.pausing import Pauses
from activities.running import again_later, made, until_stored
from activities.turns import StillTaken, Turns
from perdure.contracts.application import (
    NOT_AS_PROMISED,
    NOT_DONE,
    EffectInput,
    EffectOutcome,
    EffectState,
    Receipt,
    is_pause,
)
from perdure.contracts.base import JsonDict
from perdure.contracts.plan import Plan, PlannedEffect, read_plan
from perdure.effects.after import find_problems_after
from perdure.effects.base import Blobs, Effect, EffectContext, Found, Probe, settle_of
from perdure.errors import EffectFailed, EffectNotBegun, EffectUnknown, EffectWaiting, LookFailed, Refused
from perdure.store.ledger import Ledger
from perdure.store.rows import IntentRow, TargetBusy
from perdure.store.trouble import StoreTrouble
from perdure.workspace.processes import GroupRunner, end_group, take_lock

_LOCK_PATIENCE = timedelta(seconds=30)
"""How long to wait for a target's lock after its holder's processes were ended."""

_LOOKS_AT_ONCE = 4
"""Effects whose preconditions are looked at together."""

_STILL_RUNS = (
    "An attempt on the same target still runs in a worker that lives, perhaps one that was stopped (SIGSTOP). It is "
    "waited for: `perdure status` shows the worker."
)

Secrets = Callable[[list[str]], Mapping[str, str]]


class Applier:
    """Applies single effects. Every public method may be called again after a crash."""

    def __init__(
        self,
        ledger: Ledger,
        blobs: Blobs,
        decisions: Decisions,
        effects: Mapping[str, Effect],
        locks: Path,
        scratch: Path,
        secrets: Secrets,
    ) -> None:
        self._ledger = ledger
        self._blobs = blobs
        self._decisions = decisions
        self._effects = effects
        self._locks = locks
        self._scratch = scratch
        self._secrets = secrets
        self._turns = Turns(locks)
        self._pauses = Pauses(ledger, decisions)
        self._backward = Backward(ledger)

    def find_drift(self, plan: Plan, application_id: str) -> list[str]:
        """Preconditions that do not hold, one sentence each; reads only. Effects already begun are not asked.

        Nor is the first that is left, where nothing else has drifted: a person waits for it, and its own attempt asks
        it next; nor one of which nothing could be told when the plan was made (a column that an earlier step adds).
        Several effects are looked at together: most of it is waiting for git.

        Raises:
            LookFailed: nothing drifted, and of some effect it cannot be seen now.
        """
        begun = {row.index for row in self._ledger.intents(application_id=application_id) if row.direction == "do"}
        untold = {forecast.effect for forecast in plan.envelope.forecasts if forecast.would == "unknown"}
        left = [planned for index, planned in enumerate(plan.effects) if index not in begun]
        with ThreadPoolExecutor(max_workers=_LOOKS_AT_ONCE) as threads:
            looks = list(threads.map(self._try_drift_of, [one for one in left[1:] if one.id not in untold]))
        later = [sentence for found in looks if not isinstance(found, LookFailed) for sentence in found]
        if not later:  # what has drifted is told before what cannot be seen
            for failed in (found for found in looks if isinstance(found, LookFailed)):
                raise failed
        return [*self._drift_of(left[0]), *later] if later else []

    def _try_drift_of(self, planned: PlannedEffect) -> list[str] | LookFailed:
        try:
            return self._drift_of(planned)
        except LookFailed as failed:
            return failed

    def _drift_of(self, planned: PlannedEffect) -> list[str]:
        effect = self._effects[planned.kind]
        with self._context(planned, None) as context:
            problems = effect.check(planned.body, context)
            if problems and effect.probe(planned.body, context).found is Found.done:
                return []
            return problems

    def apply(self, question: EffectInput) -> EffectOutcome:
        """Apply or take back one effect. A fate that is already known is only repeated.

        An attempt that still runs, in this worker or another one that lives (Temporal gave up on it, or somebody
        answered in its place), is waited for. An effect before this one whose end is not written is what the answer is
        about.
        """
        plan = read_plan(question.digest, self._blobs.get(question.ref))
        try:
            with self._turns.take(plan.effects[question.index].target):
                return self._apply(question, plan)
        except StillTaken as taken:
            raise again_later(_STILL_RUNS, "StillRunning") from taken

    def _apply(self, question: EffectInput, plan: Plan) -> EffectOutcome:
        planned = plan.effects[question.index]
        prior = self._ledger.intent(question.application_id, question.index, question.direction)
        if prior is not None and prior.is_final:
            return outcome_of(question, planned, prior.state, prior.detail)
        if question.direction == "do" and (behind := self._first_behind(question)) is not None:
            return EffectOutcome(index=behind, state="refused", detail=f"how effect {behind + 1} ended is not written")
        if question.direction == "do" and (why := self._pauses.find(question, plan, prior, self._look)):
            return outcome_of(question, planned, "paused", why)
        inverse, target = planned.inverse, plan.envelope.lock or planned.target
        if question.direction == "undo":
            reason = self._backward.why_not(question, plan, inverse)
            if reason is not None:
                return EffectOutcome(index=question.index, direction="undo", state=reason[0], detail=reason[1])
            assert inverse.body is not None  # why_not has looked
            deed = Deed(question, planned, self._effects[inverse.kind], inverse.body, target)
        else:
            deed = Deed(question, planned, self._effects[planned.kind], planned.body, target)
        with self._target(deed, prior):
            return self._attempt(deed, prior)

    def _look(self, planned: PlannedEffect) -> Probe:
        with self._context(planned, None) as context:
            return self._effects[planned.kind].probe(planned.body, context)

    def _first_behind(self, question: EffectInput) -> int | None:
        """The first effect before this one that has no final end in the ledger."""
        rows = self._ledger.intents(application_id=question.application_id)
        ended = {row.index for row in rows if row.direction == "do" and row.is_final}
        return next((index for index in range(question.index) if index not in ended), None)

    def find_left(self, application_id: str, plan: Plan) -> list[int]:
        """Effects of ours that are done, would have to be taken back, and were not."""
        return self._backward.find_left(application_id, plan)

    def _attempt(self, deed: Deed, prior: IntentRow | None) -> EffectOutcome:
        with self._context(deed.planned, deed) as context:
            if prior is not None:
                known = self._settle_prior(deed, prior, context)
                if known is not None:
                    return known
            probe = deed.effect.probe(deed.body, context)
            if probe.found is not Found.done:
                drift = self._find_drift_now(deed, context)
                if drift:
                    return self._stop_at_drift(deed, prior, "; ".join(drift))
            refused = self._ask_to_begin(deed, prior)
            if refused is not None:
                return refused
            if probe.found is Found.done:
                return self._finish(deed, "already", "it was so before", {})
            return self._do(deed, context)

    def _find_drift_now(self, deed: Deed, context: EffectContext) -> list[str]:
        """What no longer holds just before it begins. Raises ``LookFailed``: asked again, unless it was cancelled.

        An undo is not held up: it stands as failed beside the first cause, and a person sees to it.
        """
        try:
            return deed.effect.check(deed.body, context)
        except LookFailed as failed:
            if deed.question.direction == "undo":
                return [failed.message]
            if by := self._decisions.cancelled_by(deed.question.job_id):
                return [f"cancelled by {by}; {failed.message}"]
            raise

    def _ask_to_begin(self, deed: Deed, prior: IntentRow | None) -> EffectOutcome | None:
        """Ask the ledger; ``None`` when the effect may start and its intent is written."""
        try:
            self._ledger.begin_effect(deed.begin(), at=_now())
        except TargetBusy as busy:
            raise again_later(busy.message, "TargetBusy") from busy
        except Refused as refusal:
            if prior is not None:
                # Begun before and proven not done (see _settle_prior): that is its end, or nothing could be taken back.
                return self._finish(deed, "failed", f"not tried again: {refusal.message}", {})
            return deed.outcome("refused", refusal.message)
        return None

    def _stop_at_drift(self, deed: Deed, prior: IntentRow | None, detail: str) -> EffectOutcome:
        if prior is None and deed.question.direction == "do":
            return deed.outcome("drift", detail)
        if prior is None:
            # An undo that may not run is written down: it stands beside the first cause.
            refused = self._ask_to_begin(deed, prior)
            if refused is not None:
                return refused
        if self._must_pause(deed):
            return self._unknown(deed, Probe(Found.not_done, f"{NOT_DONE}not possible now: {detail}"))
        return self._finish(deed, "failed", f"not possible any more: {detail}", {})

    def _settle_prior(self, deed: Deed, prior: IntentRow, context: EffectContext) -> EffectOutcome | None:
        """The fate of an attempt that began and has no receipt. ``None``: proven not done, so it may be done now."""
        question = deed.question
        resolution = self._decisions.resolution(question.application_id, question.index, question.direction)
        if resolution is not None and resolution.answer == "stop":
            return self._stop(deed, prior, f"{resolution.by} said stop")
        if (
            prior.state == "unknown"
            and is_pause(prior.detail)
            and (by := self._decisions.cancelled_by(question.job_id))
        ):
            return self._stop(deed, prior, f"cancelled by {by}")
        if resolution is not None and resolution.answer == "done":
            return self._finish(deed, "done", f"{resolution.by} said it is done", {})
        if self._parks(deed) and (prior.state != "unknown" or resolution is not None):
            return self._go_on_parked(deed, context, None)
        probe = deed.effect.probe(deed.body, context)
        if probe.found is Found.done:
            return self._verify(deed, context, {}, "found done")
        if resolution is not None or deed.never_began(prior):
            return None
        if probe.found is Found.not_done and prior.state != "unknown":
            self._await_settling(deed, prior)
            return None
        # What was once in doubt stays so until somebody answers; a stray wake-up changes nothing.
        return self._unknown(deed, probe)

    def _stop(self, deed: Deed, prior: IntentRow, why: str) -> EffectOutcome:
        """Go no further. What is known to have happened is taken back with the others."""
        if prior.detail.startswith(NOT_AS_PROMISED):
            return self._finish(deed, "done", f"{NOT_AS_PROMISED}{why}", {})
        return self._finish(deed, "stopped", why, {})

    @staticmethod
    def _await_settling(deed: Deed, prior: IntentRow) -> None:
        """A remote's "no" is not yet a no for as long as the kind says."""
        left = (prior.started_at or _now()) + settle_of(deed.effect, deed.body) - _now()
        if left > timedelta(0):
            raise again_later("waiting until a no is a no", "Settling", after=left)

    def _do(self, deed: Deed, context: EffectContext) -> EffectOutcome:
        try:
            result = deed.effect.do(deed.body, context)
        except StoreTrouble:
            raise  # says nothing about the world: the next attempt looks at it, when it can be written down
        except Exception as error:
            return self._after_error(deed, context, error)
        return self._verify(deed, context, result, "")

    def _after_error(self, deed: Deed, context: EffectContext, error: Exception) -> EffectOutcome:
        """`do` raised: the world says what became of it, not the exception."""
        if self._parks(deed) and (outcome := self._go_on_parked(deed, context, error)) is not None:
            return outcome
        probe = deed.effect.probe(deed.body, context)
        if probe.found is Found.done:
            return self._verify(deed, context, {}, f"done in spite of: {error}")
        proven = isinstance(error, EffectNotBegun) or (
            probe.found is Found.not_done and (isinstance(error, EffectFailed) or not settle_of(deed.effect, deed.body))
        )
        if proven and not isinstance(error, EffectUnknown):
            return self._fail(deed, str(error))
        return self._unknown(deed, Probe(probe.found, f"{error} · {probe.detail}"))

    @staticmethod
    def _parks(deed: Deed) -> bool:
        """Whether somebody outside finishes it."""
        return deed.question.direction == "do" and parking_of(deed.effect) is not None

    def _go_on_parked(self, deed: Deed, context: EffectContext, error: Exception | None) -> EffectOutcome | None:
        """What becomes of an effect that parks. ``None``: nothing of it is there, so it may be done now."""
        parking = parking_of(deed.effect)
        assert parking is not None  # the caller has looked
        job_id = deed.question.job_id
        verdict: Verdict = judge_parked(
            parking, deed.body, context, lambda: self._decisions.cancelled_by(job_id), error
        )
        if verdict.step == "again":
            return None
        if verdict.step == "done":
            return self._verify(deed, context, {}, verdict.detail)
        if verdict.step == "wait":
            return deed.outcome("waiting", verdict.detail)
        if verdict.step == "failed":
            return self._fail(deed, verdict.detail)
        return self._finish(deed, verdict.step, verdict.detail, {})

    def _fail(self, deed: Deed, detail: str) -> EffectOutcome:
        """It was tried and is proven not done."""
        if self._must_pause(deed):
            return self._unknown(deed, Probe(Found.not_done, NOT_DONE + detail))
        return self._finish(deed, "failed", detail, {})

    @staticmethod
    def _must_pause(deed: Deed) -> bool:
        """``on_failure: pause``: a person says whether to try again, to go on or to stop, as for an unknown fate."""
        return deed.planned.on_failure == "pause" and deed.question.direction == "do"

    def _verify(self, deed: Deed, context: EffectContext, result: JsonDict, detail: str) -> EffectOutcome:
        try:
            problems = deed.effect.verify(deed.body, context)
        except EffectWaiting as waiting:
            return deed.outcome("waiting", waiting.message)
        except EffectUnknown as doubt:
            if self._parks(deed):
                return deed.outcome("waiting", f"cannot be told now: {doubt.message}")
            return self._unknown(deed, Probe(Found.unknown, doubt.message))
        if not problems and deed.planned.after is not None:
            is_back = deed.question.direction == "undo"
            problems = find_problems_after(deed.planned.after, context, only_settle=is_back)
        if not problems:
            return self._finish(deed, "done", detail, result)
        said = NOT_AS_PROMISED + "; ".join(problems)
        if self._must_pause(deed):
            return self._unknown(deed, Probe(Found.done, said))
        return self._finish(deed, "done", said, result)

    def _unknown(self, deed: Deed, probe: Probe) -> EffectOutcome:
        detail = probe.detail or f"the world is {probe.found}"
        return self._finish(deed, "unknown", detail, {})

    def _finish(self, deed: Deed, state: EffectState, detail: str, result: JsonDict) -> EffectOutcome:
        """Write the receipt: blob first, then the ledger record that names it. Until then only this process knows."""
        receipt = Receipt(
            application_id=deed.question.application_id,
            index=deed.question.index,
            direction=deed.question.direction,
            state=state,
            kind=deed.effect.kind,
            body=deed.body,
            result=result,
            detail=detail[:400],
        )
        ref = until_stored(lambda: self._blobs.put(receipt.model_dump_json().encode()))
        until_stored(lambda: self._ledger.finish_effect(receipt, ref, at=_now()))
        return deed.outcome(state, detail)

    @contextmanager
    def _target(self, deed: Deed, prior: IntentRow | None) -> Iterator[None]:
        """Hold the target; a dead predecessor's processes are ended first, and nobody starts while one lives."""
        if prior is not None and prior.pgid:
            end_group(prior.pgid, prior.boot_id)
        with take_lock(self._locks / deed.lock_name, _LOCK_PATIENCE):
            yield

    @contextmanager
    def _context(self, planned: PlannedEffect, deed: Deed | None) -> Iterator[EffectContext]:
        scratch = Path(tempfile.mkdtemp(prefix="effect-", dir=made(self._scratch)))
        name = deed.lock_name if deed else f"reading-{scratch.name}.lock"
        question = deed.question if deed else None

        def note(pgid: int, boot_id: str) -> None:
            if question is None:
                return
            key = (question.application_id, question.index, question.direction)
            if self._ledger.intent(*key) is not None:  # before the intent only probes run
                self._ledger.note_process(*key, pgid=pgid, boot_id=boot_id)

        try:
            yield EffectContext(
                blobs=self._blobs,
                scratch=scratch,
                runner=GroupRunner(self._locks / name if deed else scratch / name, note),
                now=_now(),
                secrets=self._secrets(planned.ways_out),
                key=deed.key if deed else "",
            )
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _now() -> datetime:
    return datetime.now(UTC)
