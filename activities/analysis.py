"""An analysis with prompts in it: rules at once, each prompt as an agent without tools that owes one typed answer."""

from __future__ import annotations

from temporalio import activity

from activities.agent_desk import AgentDesk
from activities.agent_prompts import Prompts
from activities.agent_starting import limits_of, start_agent
from activities.jobs import JobReader
from activities.plans import review_rule
from activities.rules import Concluded, StageTools, end_analysis, run_analysis_rule
from activities.running import in_thread
from perdure.contracts import names
from perdure.contracts.agent_run import AgentSpec, AgentStanding, AgentState, AnalysisInput, AnalysisResult
from perdure.contracts.job import JobPhase
from perdure.contracts.template_agents import AnalyzeStep
from perdure.errors import StageFailed
from perdure.policy.answers import close_schema
from perdure.rules.base import Refinement


class AnalysisActivities:
    """Concludes. A second run runs the rules again, which only read, and finds the prompts that were asked."""

    def __init__(self, desk: AgentDesk, tools: StageTools, prompts: Prompts) -> None:
        self._desk = desk
        self._tools = tools
        self._prompts = prompts

    @activity.defn(name=names.CONCLUDE)
    async def conclude(self, work: AnalysisInput) -> AnalysisResult:
        """Run the analysis' steps up to the next prompt, or to the end."""
        return await in_thread(lambda: self._conclude(work))

    def _conclude(self, work: AnalysisInput) -> AnalysisResult:
        self._tools.begin(work.step, JobPhase.analyzing)
        reader = self._tools.read(work.step)
        steps = list(reader.template.analyze.steps.items())
        so_far = Concluded(**self._desk.blobs.get_json(work.kept)) if work.kept else Concluded()
        reader.results["analyze"] = so_far.values
        if work.part:
            name, step = steps[work.part - 1]
            self._take(work, so_far, name, step)
        for position in range(work.part, len(steps)):
            name, step = steps[position]
            agent = self._run(work, reader, so_far, name, step)
            if agent is not None:
                kept = self._desk.blobs.put_json(vars(so_far))
                return AnalysisResult(agent=agent, part=position + 1, kept=kept)
        return AnalysisResult(analysis=end_analysis(self._tools, reader, so_far))

    def _run(
        self, work: AnalysisInput, reader: JobReader, so_far: Concluded, name: str, step: AnalyzeStep
    ) -> AgentState | None:
        """Run a step's rule; return the prompt that has to be asked, ``None`` when there is none or it was answered."""
        if step.use:
            run_analysis_rule(self._tools, reader, so_far, name, step)
        if not step.prompt or (step.use and not self._refinement(step).is_needed(so_far.values[name])):
            return None
        spec = self._spec(work, reader, so_far, name, step)
        known = self._find_answered(spec)
        if known is not None:
            self._accept(so_far, name, step, known)
            return None
        return start_agent(self._desk, spec, reader.budget)

    def _spec(
        self, work: AnalysisInput, reader: JobReader, so_far: Concluded, name: str, step: AnalyzeStep
    ) -> AgentSpec:
        goal, charter = self._prompts.for_prompt(reader, step)
        value = so_far.values[name] if step.use else None
        return AgentSpec(
            agent_id=names.prompt_id(work.step.job_id, work.step.round, name),
            job_id=work.step.job_id,
            step=work.step,
            prompt=name,
            refines=self._desk.blobs.put_json(value) if step.use else None,
            charter=charter,
            goal=goal,
            model=step.model,
            tools=(),
            answer=close_schema(self._refinement(step).schema(value) if value is not None else step.answer),
            repairs=step.repairs,
            limits=limits_of(step.limits),
            on_limit="ask" if step.on_failure == "ask" else "end",
            requester=reader.spec.requester,
            template=reader.spec.template,
            template_digest=reader.spec.template_digest,
            review=review_rule(reader),
        )

    def _find_answered(self, spec: AgentSpec) -> AgentStanding | None:
        """An answer that an earlier round of this job got to the very same question: it is not asked again."""
        for row in reversed(self._desk.agents.of_job(spec.job_id)):
            if row.end is None or row.end.reason != "answered" or row.agent_id == spec.agent_id:
                continue
            other = self._desk.spec(row.agent_id)
            same = ("prompt", "charter", "goal", "model", "answer")
            if all(getattr(other, name) == getattr(spec, name) for name in same):
                return self._desk.agents.standing(row.agent_id)
        return None

    def _take(self, work: AnalysisInput, so_far: Concluded, name: str, step: AnalyzeStep) -> None:
        """Take what a prompt came to; the template says what becomes of a step that got no answer."""
        standing = self._desk.agents.standing(names.prompt_id(work.step.job_id, work.step.round, name))
        if standing.end is None:
            raise StageFailed(f"The prompt of analysis step {name!r} has not ended.")
        if standing.end.reason == "answered":
            self._accept(so_far, name, step, standing)
            return
        why = f"{standing.end.reason}: {standing.end.sentence}"
        if standing.end.reason == "cancelled" or step.on_failure != "keep_rule_result":
            raise StageFailed(f"Analysis step {name!r} got no answer of a model ({why})")
        if step.use and standing.result:  # its form fits, and a part of it may be taken
            self._accept(so_far, name, step, standing)
            return
        so_far.values.setdefault(name, None)
        kept = "The rule's result stands." if step.use else "It has no value."
        so_far.findings.append(f"Step {name!r} got no answer of a model ({why}) {kept}")

    def _accept(self, so_far: Concluded, name: str, step: AnalyzeStep, standing: AgentStanding) -> None:
        assert standing.result is not None  # an answer was kept
        answer = self._desk.blobs.get_json(standing.result)
        model = self._model_of(standing)
        if not step.use:
            so_far.values[name] = answer
            so_far.findings.append(f"Step {name!r} was answered by a model ({model}).")
            return
        refined = self._refinement(step).apply(so_far.values[name], answer, model)
        so_far.values[name] = refined.value
        so_far.findings += refined.findings

    def _model_of(self, standing: AgentStanding) -> str:
        turns = self._desk.agents.transcripts.turns(standing.agent_id)
        cost = (
            f"{standing.spent.cost_microdollars / 1e6:.4f} USD" if not standing.spent.unknown_cost else "cost unknown"
        )
        return f"{turns[-1].model}, {cost}" if turns else cost

    def _refinement(self, step: AnalyzeStep) -> Refinement:
        found = self._tools.rules[step.use].refinement
        if found is None:
            raise StageFailed(f"What {step.use} gives cannot be refined by a prompt.")
        return found
