"""Gather and analyze: named rules that only read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from temporalio import activity

from activities.jobs import JobReader, JsonBlobs, Policies, Rendering
from activities.memory import ThreadMemory
from activities.running import in_thread
from perdure.contracts import names
from perdure.contracts.base import JsonDict
from perdure.contracts.job import JobOutline, JobPhase, NoteInput, StepInput, StepResult
from perdure.contracts.memory import Memory
from perdure.contracts.template import Template
from perdure.contracts.template_agents import AnalyzeStep, is_prompt_file
from perdure.errors import Conflict, StageFailed, UserError
from perdure.rules.base import DraftSpace, Rule, RuleClass, RuleContext, RuleResult
from perdure.store.ledger import Ledger

_PHASE_ORDER = {
    JobPhase.gathering: 1,
    JobPhase.analyzing: 2,
    JobPhase.drafting: 3,
    JobPhase.verifying: 4,
}


NO_MODEL = "Name one in config.toml in the data folder: docs/how-to/use-a-model.md."


@dataclass
class Concluded:
    """What the steps so far came to."""

    values: JsonDict = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StageTools:
    """What all stage activities share."""

    ledger: Ledger
    blobs: JsonBlobs
    renderer: Rendering
    rules: Mapping[str, Rule]
    check: Callable[[Template], None]
    """Refuses a template whose rules or effects this worker does not have."""
    memory: ThreadMemory
    policies: Policies = dict
    """Named rules of the installation, as they are when a plan is frozen."""
    secrets: Callable[[list[str]], Mapping[str, str]] = lambda _wanted: {}
    """Values of secrets for the source that names them."""
    has_model: Callable[[], bool] = lambda: False
    """A model is configured; without one agents are skipped, and said so."""

    def read(self, step: StepInput) -> JobReader:
        """Read the step's job."""
        return JobReader(step, self.blobs, self.renderer, self.policies)

    def begin(self, step: StepInput, phase: JobPhase) -> None:
        """Say in the ledger that the job's round has reached ``phase``; said once however often it is called."""
        note = NoteInput(job_id=step.job_id, step=step.round * 10 + _PHASE_ORDER[phase], phase=phase)
        self.ledger.note_job(note, workflow_id=f"{step.job_id}/stages", at=datetime.now(UTC))

    def end(self, step: StepInput, stage: str, result: StepResult) -> StepResult:
        """Write one step's line of the timeline."""
        name = f"{stage}.{step.name}" if step.name else stage
        body = {
            "stage": stage,
            "name": step.name,
            "round": step.round,
            "status": result.status,
            "summary": result.summary,
            "result": result.result.model_dump() if result.result else None,
        }
        # One draft may follow another in a round: the result's hash keeps their lines apart and a retry the same.
        key = f"{step.round}/{name}/{result.result.sha256[:16] if result.result else result.summary[:64]}"
        self.ledger.append(
            thread=names.JobId.parse(step.job_id).thread,
            kind="stage",
            actor="perdure",
            body=body,
            job_id=step.job_id,
            workflow_id=f"{step.job_id}/stages",
            step=key,
            at=datetime.now(UTC),
        )
        return result

    def run_rule(
        self, reader: JobReader, name: str, arguments: Any, rule_class: RuleClass, space: DraftSpace | None = None
    ) -> RuleResult:
        """Resolve the arguments and run a rule."""
        rule = self.rules.get(name)
        if rule is None or rule.rule_class != rule_class:
            raise UserError(f"There is no {rule_class} rule {name!r}. `perdure templates validate` names the nearest.")
        context = RuleContext(
            blobs=self.blobs,
            now=reader.step.at,
            inputs=reader.spec.inputs,
            results=reader.results,
            edits=reader.edits,
            remembered=self._recall(reader, rule_class),
            space=space,
            secrets=self.secrets,
        )
        return rule.run(reader.render(arguments), context)

    def _recall(self, reader: JobReader, rule_class: RuleClass) -> Memory:
        step = reader.step
        return self.memory.recall(step.job_id, step.at) if rule_class == "analysis" else Memory()


class RuleActivities:
    """Reads of the world and conclusions from them. Running one twice reads twice and changes nothing."""

    def __init__(self, tools: StageTools) -> None:
        self._tools = tools

    @activity.defn(name=names.OPEN_JOB)
    async def open_job(self, step: StepInput) -> JobOutline:
        """Read the pinned template and say which stages there are. Refuses a job that has ended."""
        return await in_thread(lambda: self._open_job(step))

    def _open_job(self, step: StepInput) -> JobOutline:
        job = self._tools.ledger.job(step.job_id)
        if job.phase.is_final:
            raise Conflict(f"{job.name} has ended ({job.phase}); a job is never started again.")
        reader = self._tools.read(step)
        if reader.spec.undoes:
            return JobOutline(undoes=reader.spec.undoes, plan_only=reader.spec.plan_only)
        from perdure.policy.templates import outline  # as the template itself, not needed at a worker's start

        self._tools.check(reader.template)
        return outline(
            reader.template, reader.spec, reader.spec.inputs, has_model=self._may_ask_models(reader.template)
        )

    def _may_ask_models(self, template: Template) -> bool:
        """The settings are only looked at where it matters: a fault in them stops no job that needs no model."""
        return any(template.asks_models) and self._tools.has_model()

    @activity.defn(name=names.GATHER_SOURCE)
    async def gather_source(self, step: StepInput) -> StepResult:
        """Read one named source."""
        return await in_thread(lambda: self._gather(step))

    def _gather(self, step: StepInput) -> StepResult:
        self._tools.begin(step, JobPhase.gathering)
        reader = self._tools.read(step)
        source = reader.template.gather.sources[step.name]
        try:
            found = self._tools.run_rule(reader, source.use, source.arguments, "source")
        except (UserError, StageFailed) as error:
            if not source.optional:
                raise
            ref = reader.keep(None, [f"Source {step.name} failed: {error.message}"])
            failed = StepResult(result=ref, summary=error.message[:500], status="failed")
            return self._tools.end(step, "gather", failed)
        ref = reader.keep(found.value, found.findings)
        return self._tools.end(step, "gather", StepResult(result=ref, summary=found.summary[:500]))

    @activity.defn(name=names.ANALYZE)
    async def analyze(self, step: StepInput) -> StepResult:
        """Run the analysis steps in order and say whether there is anything to do."""
        return await in_thread(lambda: self._analyze(step))

    def _analyze(self, step: StepInput) -> StepResult:
        self._tools.begin(step, JobPhase.analyzing)
        reader = self._tools.read(step)
        so_far = Concluded()
        reader.results["analyze"] = so_far.values
        for name, part in reader.template.analyze.steps.items():
            if part.use:
                run_analysis_rule(self._tools, reader, so_far, name, part)
            if part.prompt:
                _skip_prompt(so_far, name, part)
        return end_analysis(self._tools, reader, so_far)


def run_analysis_rule(tools: StageTools, reader: JobReader, so_far: Concluded, name: str, step: AnalyzeStep) -> None:
    """Run one step's rule and keep what it gave."""
    found = tools.run_rule(reader, step.use, step.arguments, "analysis")
    so_far.values[name] = found.value
    so_far.findings += found.findings
    so_far.summaries.append(found.summary)


def end_analysis(tools: StageTools, reader: JobReader, so_far: Concluded) -> StepResult:
    """Say whether there is anything to do, in the ledger too."""
    analysis, ref = reader.template.analyze, reader.keep(so_far.values, so_far.findings)
    if reader.render(analysis.finish_when):
        summary = str(reader.render(analysis.finish_message))[:500]
        return tools.end(reader.step, "analyze", StepResult(result=ref, summary=summary, status="finished"))
    summary = " · ".join(text for text in so_far.summaries if text)[:500]
    return tools.end(reader.step, "analyze", StepResult(result=ref, summary=summary))


def _skip_prompt(so_far: Concluded, name: str, step: AnalyzeStep) -> None:
    """Without a model an optional prompt is left out, and said so. Raises ``UserError`` for any other."""
    what = step.prompt if is_prompt_file(step.prompt) else f"The prompt of step {name!r}"
    if not step.optional:
        raise UserError(f"{what} needs a model, and none is configured. {NO_MODEL}")
    so_far.values.setdefault(name, None)
    stands = "The rules' result stands." if step.use else "The step has no value."
    so_far.findings.append(f"{what} was skipped: no model is configured. {stands}")
