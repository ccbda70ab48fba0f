"""Freeze a plan: every expression resolved, every effect planned, nothing computed later."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio import activity

from activities.jobs import JobReader
from activities.rules import StageTools
from activities.running import in_thread, made
from activities.undoing import UndoDraft, UndoPlanner
from perdure.contracts import names
from perdure.contracts.base import JsonDict
from perdure.contracts.job import PlanRef, PlanResult, StepInput
from perdure.contracts.plan import (
    After,
    Envelope,
    FileChange,
    Forecast,
    Inverse,
    PlannedEffect,
    ReviewRule,
    Settled,
    Verdict,
    content_digest,
    freeze,
)
from perdure.contracts.template import ApplyStep
from perdure.contracts.template_review import Review
from perdure.effects.after import plan_after, seconds_after, ways_after
from perdure.effects.base import SECRET_MARK, Effect, EffectContext, EffectDraft, EffectRequest, Found
from perdure.effects.forecast import foresee
from perdure.errors import Refused, UserError
from perdure.policy.for_each import read_items
from perdure.policy.review_rules import pinned_rule
from perdure.workspace.processes import GroupRunner

_ALONE = Review()
"""The rule of a plan that takes a job back, where the job's own plan went by no policy: one maintainer."""


class PlanActivities:
    """Planning reads the world and changes nothing; a second run within the round gives the same bytes."""

    def __init__(self, tools: StageTools, effects: Mapping[str, Effect], undo: UndoPlanner, scratch: Path) -> None:
        self._tools = tools
        self._effects = effects
        self._undo = undo
        self._scratch = scratch

    @activity.defn(name=names.FREEZE_PLAN)
    async def freeze_plan(self, step: StepInput) -> PlanResult:
        """Plan every effect, store the plan, name it by its digest."""
        return await in_thread(lambda: self._freeze(step))

    def _freeze(self, step: StepInput) -> PlanResult:
        reader = self._tools.read(step)
        if reader.spec.undoes:
            undo = self._undo.plan(reader.spec.undoes)
            if not undo.effects:
                return PlanResult(summary="; ".join(undo.findings) or "There is nothing to take back.")
            review = Review(policy=undo.policy) if undo.policy in reader.policies() else _ALONE
            rule = pinned_rule(review, reader.policies())
            envelope = self._envelope(reader, rule, undo.title, undo.findings, undo)
            forecasts = self._foresee(reader, undo.effects) if undo.is_foreseen else []
            return self._store(reader, envelope.model_copy(update={"forecasts": forecasts}), undo.effects)
        try:
            effects, skipped = self._plan_effects(reader)
            if step.parts:
                self._refuse_drift(reader, effects)
        except UserError as error:
            if step.parts:
                return PlanResult(problem=f"The rest of the plan cannot be planned again: {error.message}")
            raise
        if not effects:
            return PlanResult(summary="Nothing to apply: every step was left out.")
        rule = review_rule(reader)
        envelope = self._envelope(reader, rule, _title(reader), skipped)
        # With a draft the diff says what changes, and all later steps need what earlier ones make.
        forecasts = self._foresee(reader, effects) if reader.template.draft is None else []
        return self._store(reader, envelope.model_copy(update={"forecasts": forecasts}), effects)

    def _foresee(self, reader: JobReader, effects: list[PlannedEffect]) -> list[Forecast]:
        """What each step would do."""
        looks = [(self._effects[planned.kind], planned) for planned in effects]
        return foresee(looks, lambda one: _reading(self._tools, reader, self._scratch, one.ways_out))

    def _plan_effects(self, reader: JobReader) -> tuple[list[PlannedEffect], list[str]]:
        done = self._done_ids(reader)
        planned: list[PlannedEffect] = []
        earlier: list[tuple[str, JsonDict]] = list(self._done_bodies(reader))
        findings = [f"{identifier} is done already, by this job." for identifier in done]
        for part, identifier, each in _steps(reader):
            if identifier in done or not reader.render(part.when, each):
                continue
            effect = self._plan_one(reader, part, identifier, each, earlier)
            # Between steps: before the first of a plan its approval has just been given.
            paused_before = not planned or any(one.id.startswith(f"{part.id}.") for one in planned)
            effect = effect.model_copy(update={"pause": part.pause and not paused_before})
            planned.append(effect)
            earlier.append((effect.kind, effect.body))
        return planned, findings

    def _refuse_drift(self, reader: JobReader, effects: list[PlannedEffect]) -> None:
        """A rest that could not begin as it was just planned would be asked about for ever: nobody is asked.

        The stages are not run again for a rest, so that what they read (where the remote was) may be what has moved.
        """
        # Of a runbook's later steps nothing can be told before the earlier ones have made it so.
        for planned in effects if reader.template.draft is not None else effects[:1]:
            kind = self._effects[planned.kind]
            with _reading(self._tools, reader, self._scratch, planned.ways_out) as context:
                is_done = kind.probe(planned.body, context).found is Found.done
                drift = [] if is_done else kind.check(planned.body, context)
            if drift:
                raise UserError("; ".join(drift))

    def _done_ids(self, reader: JobReader) -> list[str]:
        return [effect.id for part in reader.step.parts for effect in self._undo.effects_of(part)]

    def _done_bodies(self, reader: JobReader) -> list[tuple[str, JsonDict]]:
        return [(effect.kind, effect.body) for part in reader.step.parts for effect in self._undo.effects_of(part)]

    def _plan_one(
        self,
        reader: JobReader,
        part: ApplyStep,
        identifier: str,
        each: JsonDict | None,
        earlier: list[tuple[str, JsonDict]],
    ) -> PlannedEffect:
        kind = self._effects[part.effect]
        request = EffectRequest(
            id=identifier,
            arguments=reader.render(part.arguments, each),
            probe=reader.render(part.probe, each),
            undo=reader.render(part.undo, each),
            require=reader.render(part.require, each),
            irreversible=part.irreversible,
            runs_on=part.runs_on or reader.template.runs_on,
            attempt_limit=part.attempt_limit,
            draft=reader.results["draft"],
            earlier=earlier,
        )
        with _reading(self._tools, reader, self._scratch) as context:
            draft = kind.plan(request, context)
        looks = reader.render({"run": part.verify.run, "http": part.verify.http}, each) if part.verify else {}
        after = plan_after(request, reader.render(part.settle, each), part.verify, looks)
        return _planned(part, identifier, kind, draft, after)

    def _envelope(
        self, reader: JobReader, rule: ReviewRule, title: str, findings: list[str], undo: UndoDraft | None = None
    ) -> Envelope:
        step, spec = reader.step, reader.spec
        draft = reader.results["draft"]
        verdicts = _verdicts(reader)
        notes = [step.note] if step.note else []
        return Envelope(
            job_id=step.job_id,
            thread=names.JobId.parse(step.job_id).thread,
            round=step.round,
            requester=spec.requester,
            authors=_authors(reader),
            template=spec.template,
            template_digest=spec.template_digest,
            rule=rule,
            verdicts=verdicts,
            findings=[*notes, *reader.findings, *findings],
            lock=undo.lock if undo else str(reader.render(reader.template.lock)),
            base_commit=draft.get("base", ""),
            title=title,
            reasons=_reasons(reader),
            settles=_settles(reader),
            changes=[FileChange.model_validate(change) for change in draft.get("changes", [])],
            created_at=step.at,
            expires_at=step.at + timedelta(seconds=rule.expires_after_seconds),
            undoes=spec.undoes,
            previous=step.previous,
        )

    def _store(self, reader: JobReader, envelope: Envelope, effects: list[PlannedEffect]) -> PlanResult:
        digest, data = freeze(envelope, effects)
        plan = PlanRef(
            digest=digest,
            content=content_digest(effects),
            ref=self._tools.blobs.put(data),
            effects=len(effects),
            round=envelope.round,
            expires_at=envelope.expires_at,
            title=envelope.title[:200],
            needs_gate=bool(envelope.rule.approvals),
            needs_decision=not reader.spec.plan_only,
        )
        self._tools.ledger.record_plan(job_id=reader.step.job_id, plan=plan, envelope=envelope, at=datetime.now(UTC))
        return PlanResult(plan=plan, summary=envelope.title)


def review_rule(reader: JobReader) -> ReviewRule:
    """The template's rule with its expressions resolved and its policy's, as it is pinned into the plan.

    Raises ``UserError`` when the policy that it names is gone: then there is no plan.
    """
    review = reader.template.review
    conditions = ("requester_may_approve", "authors_may_approve")
    said = [name for name in conditions if name in review.model_fields_set]
    rendered = {name: bool(reader.render(getattr(review, name))) for name in said}
    return pinned_rule(review.model_copy(update=rendered), reader.policies())


def _steps(reader: JobReader) -> Iterator[tuple[ApplyStep, str, JsonDict | None]]:
    """Give (step, effect id, item) of every effect that the template asks for, in order; no item without a list."""
    for part in reader.template.apply:
        if part.for_each is None:
            yield part, part.id, None
        else:
            yield from ((part, name, item) for name, item in read_items(part, reader.render(part.for_each)))


def _planned(part: ApplyStep, identifier: str, kind: Effect, draft: EffectDraft, after: After | None) -> PlannedEffect:
    """Put one planned effect together; refuse one without an inverse or a reason why there is none."""
    inverse: Inverse = draft.inverse
    if inverse.body is None and not inverse.irreversible and not inverse.none_needed:
        raise Refused(f"Step {identifier!r} ({kind.kind}) has no inverse; declare `undo:` or `irreversible: <why>`.")
    return PlannedEffect(
        id=identifier,
        kind=kind.kind,
        version=kind.version,
        summary=draft.summary,
        body=draft.body,
        target=draft.target,
        requires=draft.requires,
        inverse=inverse,
        artifacts=draft.artifacts,
        runs_on="worker" if draft.runs_on == "worker" else "sandbox",
        ways_out=list(dict.fromkeys([*draft.ways_out, *ways_after(after)])),
        attempt_limit_seconds=int(part.attempt_limit.total_seconds()) + seconds_after(after),
        on_failure=part.on_failure,
        after=after,
    )


def _verdicts(reader: JobReader) -> list[Verdict]:
    """What the checks said. Without a draft they are about the world, which may change until the first effect."""
    verdicts = [Verdict.model_validate(verdict) for verdict in reader.results["verify"].values()]
    if not verdicts or reader.template.draft is not None or reader.step.parts:
        return verdicts  # nor for the rest of a plan: its own first steps may have changed what was checked
    return [verdict.model_copy(update={"again": verdict.status == "passed"}) for verdict in verdicts]


def _analysis(reader: JobReader) -> list[Any]:
    return [value for value in reader.results["analyze"].values() if isinstance(value, dict)]


def _title(reader: JobReader) -> str:
    titles = [value["title"] for value in _analysis(reader) if isinstance(value.get("title"), str)]
    message = str(reader.results["draft"].get("message", "")).partition("\n")[0]
    return titles[-1] if titles else message or reader.template.summary or reader.template.name


def _reasons(reader: JobReader) -> list[str]:
    return [str(reason) for value in _analysis(reader) for reason in value.get("reasons", [])]


def _authors(reader: JobReader) -> list[str]:
    """Whose edits are in the plan: this job's, and remembered ones that an analysis says it took over."""
    remembered = {str(name) for value in _analysis(reader) for name in value.get("authors", [])}
    return sorted(remembered | {edit.by for edit in reader.edits})


def _settles(reader: JobReader) -> list[Settled]:
    return [Settled.model_validate(one) for value in _analysis(reader) for one in value.get("settles", [])]


@contextmanager
def _reading(
    tools: StageTools, reader: JobReader, folder: Path, ways_out: Sequence[str] = ()
) -> Iterator[EffectContext]:
    scratch = Path(tempfile.mkdtemp(prefix="planning-", dir=made(folder)))
    try:
        runner = GroupRunner(scratch / "planning.lock", lambda _pgid, _boot: None)
        secrets = tools.secrets([way for way in ways_out if way.startswith(SECRET_MARK)])
        yield EffectContext(blobs=tools.blobs, scratch=scratch, runner=runner, now=reader.step.at, secrets=secrets)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
