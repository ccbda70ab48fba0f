"""Where a draft's agents begin: the rules' steps up to one, its specification, what becomes of its work."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from temporalio import activity

from activities.agent_desk import AgentDesk, workspace_folder
from activities.agent_prompts import Prompts
from activities.agent_starting import limits_of, start_agent
from activities.jobs import JobReader
from activities.plans import review_rule
from activities.running import in_thread, made
from activities.workspaces import WorkspaceActivities, base_of
from perdure.contracts import names
from perdure.contracts.agent import Dial, Permission
from perdure.contracts.agent_run import (
    AgentQuestion,
    AgentSpec,
    AgentStanding,
    AgentState,
    CallRecord,
    WorkspaceInput,
    WorkspaceResult,
)
from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.job import JobPhase, StepResult
from perdure.contracts.template_agents import DraftStep
from perdure.errors import PerdureError, StageFailed, UserError
from perdure.policy.answers import close_schema
from perdure.tools.calls import with_call_tools
from perdure.workspace.copies import DraftCopy, open_draft, reopen_draft

GOOD_ENDS = ("done", "answered")

Findings = list[str]


class AgentActivities:
    """Private work; each activity finds what an earlier attempt of it did."""

    def __init__(self, desk: AgentDesk, drafts: WorkspaceActivities, prompts: Prompts) -> None:
        self._desk = desk
        self._drafts = drafts
        self._prompts = prompts

    @activity.defn(name=names.OPEN_WORKSPACE)
    async def open_workspace(self, work: WorkspaceInput) -> WorkspaceResult:
        """Run the draft's rules up to the next agent, or to the end and build the commit."""
        return await in_thread(lambda: self._open(work))

    def _open(self, work: WorkspaceInput) -> WorkspaceResult:
        tools = self._drafts.tools
        tools.begin(work.step, JobPhase.drafting)
        reader = tools.read(work.step)
        draft = reader.template.draft
        if draft is None:
            raise UserError("The template has no draft stage.")
        folder = workspace_folder(self._desk.workspaces, self._agent_id(work, 0))
        findings: Findings = self._desk.blobs.get_json(work.findings) if work.findings else []
        copy = self._continue(reader, work, folder, findings) if work.part else self._begin(reader, work, folder)
        answers = self._answers(draft.steps, work)
        for position in range(work.part, len(draft.steps)):
            step = draft.steps[position]
            if step.agent:
                agent = self._start(reader, work, step, position)
                kept = self._desk.blobs.put_json(findings)
                return WorkspaceResult(agent=agent, part=position + 1, findings=kept, answers=answers)
            if self._is_new(work, position):
                findings += tools.run_rule(reader, step.use, step.arguments, "draft", copy).findings
        said = self._read_answers(draft.steps, answers)
        reader.results["draft"] = said
        value = {**self._drafts.commit(reader, copy, str(reader.render(draft.message))), **said}
        shutil.rmtree(folder, ignore_errors=True)
        count = len(value["changes"])
        result = StepResult(result=reader.keep(value, findings), summary=f"{count} file{'s' * (count != 1)} changed")
        return WorkspaceResult(draft=tools.end(work.step, "draft", result))

    def _answers(self, steps: Sequence[DraftStep], work: WorkspaceInput) -> dict[str, BlobRef]:
        """Typed answers so far, by name: those before, and that of the agent that has just ended."""
        step = steps[work.part - 1] if work.part else None
        if step is None or step.name is None:
            return work.answers
        standing = self._desk.agents.standing(self._agent_id(work, work.part - 1))
        is_good = standing.end is not None and standing.end.reason in GOOD_ENDS
        return {**work.answers, step.name: standing.result} if is_good and standing.result else work.answers

    def _read_answers(self, steps: Sequence[DraftStep], answers: Mapping[str, BlobRef]) -> JsonDict:
        """The answers as expressions see them; an agent that gave none has null."""
        wanted = [step.name for step in steps if step.name is not None]
        found = {name: self._desk.blobs.get_json(answers[name]) if name in answers else None for name in wanted}
        return {"answers": found} if wanted else {}

    def _agent_id(self, work: WorkspaceInput, position: int) -> str:
        return names.agent_id(work.step.job_id, work.step.round, work.attempt, position)

    def _is_new(self, work: WorkspaceInput, position: int) -> bool:
        """Whether a rule's step has not been done in this workspace: an agent that follows shows that it was."""
        draft_agents = self._desk.agents.of_job(work.step.job_id)
        prefix = self._agent_id(work, 0).rpartition(".")[0] + "."
        first = [names.first_agent(row.agent_id) for row in draft_agents]
        return not any(one.startswith(prefix) and int(one.removeprefix(prefix)) > position for one in first)

    def _begin(self, reader: JobReader, work: WorkspaceInput, folder: Path) -> DraftCopy:
        """A clean copy of the base; the one that an agent works in already, when an attempt before this one began."""
        repository, base = base_of(reader)
        if not self._is_new(work, -1):
            return reopen_draft(repository, base, folder)
        shutil.rmtree(folder, ignore_errors=True)
        return open_draft(repository, base, made(folder))

    def _continue(self, reader: JobReader, work: WorkspaceInput, folder: Path, findings: Findings) -> DraftCopy:
        """After an agent: its work stands where it is done; else the template says what becomes of it."""
        position = work.part - 1
        assert reader.template.draft is not None  # _open has looked
        step = reader.template.draft.steps[position]
        standing = self._desk.agents.standing(self._agent_id(work, position))
        if standing.end is None:
            raise StageFailed(f"The agent of draft step {position + 1} has not ended.")
        spent, end = standing.spent, standing.end
        used = f"{spent.turns} turns, {spent.calls} calls, {spent.cost_microdollars / 1e6:.4f} USD"
        repository, base = base_of(reader)
        if end.reason in GOOD_ENDS:
            findings.append(f"An agent worked on this ({used}): {end.sentence}")
            findings += say_degraded(self._desk.agents.transcripts.calls(self._agent_id(work, position)))
            return reopen_draft(repository, base, folder)
        if end.reason == "cancelled" or step.on_failure != "keep_rule_result":
            shutil.rmtree(folder, ignore_errors=True)
            raise StageFailed(f"The agent stopped ({end.reason}): {end.sentence} It used {used}.")
        findings.append(f"The agent's work was dropped ({end.reason}: {end.sentence}); the rules' result stands.")
        shutil.rmtree(folder, ignore_errors=True)
        copy = open_draft(repository, base, made(folder))
        for part in reader.template.draft.steps[:position]:
            if part.use:
                self._drafts.tools.run_rule(reader, part.use, part.arguments, "draft", copy)
        return copy

    def _start(self, reader: JobReader, work: WorkspaceInput, step: DraftStep, position: int) -> AgentState:
        spec = self._spec(reader, work, step, position)
        state = start_agent(self._desk, spec, reader.budget)
        if work.attempt:
            why = "What an agent said was done did not pass the verification."
            self._desk.lower_dial(spec, why, "verification")
        return state

    def _spec(self, reader: JobReader, work: WorkspaceInput, step: DraftStep, position: int) -> AgentSpec:
        repository, base = base_of(reader)
        named = with_call_tools(step.tools, self._desk.tools)
        tools = {name: self._desk.tools[name] for name in named if name in self._desk.tools}
        missing = sorted(set(step.tools) - set(tools))
        if missing:
            raise UserError(f"Draft step {position + 1} wants tools that this worker has not: {', '.join(missing)}.")
        answer = close_schema(step.answer) if step.answer else {}
        goal, charter = self._prompts.for_agent(reader, step, answer)
        return AgentSpec(
            agent_id=self._agent_id(work, position),
            job_id=work.step.job_id,
            step=work.step,
            draft_step=position,
            charter=charter,
            goal=goal,
            model=step.model,
            tools=named,
            tool_digests={name: tool.spec.digest() for name, tool in tools.items()},
            paths=tuple(_paths(reader, step)),
            hosts=tuple(step.hosts),
            permissions=_permissions(step, named),
            dial=Dial(step.dial),
            done_when=tuple(step.done_when),
            answer=answer,
            repairs=step.repairs if answer else 0,
            limits=limits_of(step.limits),
            on_limit="ask" if step.on_failure == "ask" else "end",
            base_commit=base,
            repository=str(repository.place),
            requester=reader.spec.requester,
            template=reader.spec.template,
            template_digest=reader.spec.template_digest,
            review=review_rule(reader),
        )

    @activity.defn(name=names.READ_AGENT)
    async def read_agent(self, question: AgentQuestion) -> AgentStanding:
        """How an agent stands. Reads only."""
        return await in_thread(lambda: self._desk.agents.standing(question.agent_id))


def _permissions(step: DraftStep, tools: Sequence[str]) -> tuple[Permission, ...]:
    """What the template says, and that the tools it names may be used: the dial may still ask."""
    named = [Permission(id=f"template.tools.{name}", decision="allow", tool=name) for name in tools]
    said = [
        Permission(id=f"template.permissions.{position}", **rule.model_dump())
        for position, rule in enumerate(step.permissions, start=1)
    ]
    return (*said, *named)


def _paths(reader: JobReader, step: DraftStep) -> list[str]:
    rendered = reader.render(step.paths)
    if not isinstance(rendered, list) or not all(isinstance(path, str) for path in rendered):
        raise PerdureError(f"`paths` gives {rendered!r}; expected a list of patterns.")
    return rendered


def say_degraded(calls: Iterable[CallRecord]) -> list[str]:
    """Return what a reviewer should know of answers that were not their tools' best, each once, in order."""
    return list(dict.fromkeys(f"Degraded: {call.degraded}." for call in calls if call.degraded))
