"""Where agents begin and end: the draft's steps up to one, its specification, the checks that say it is done."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from temporalio import activity

from activities.agent_desk import AgentDesk, asked, now, workspace_folder
from activities.agent_prompts import Prompts
from activities.jobs import JobReader
from activities.plans import review_rule
from activities.running import in_thread, made
from activities.workspaces import WorkspaceActivities, base_of
from perdure.contracts import names
from perdure.contracts.agent import MORE_HELPS, AgentEnd, Dial, Limits, Permission
from perdure.contracts.agent_run import (
    AgentQuestion,
    AgentSpec,
    AgentStanding,
    AgentState,
    CallRecord,
    CloseAgentInput,
    CloseAgentResult,
    WorkspaceInput,
    WorkspaceResult,
)
from perdure.contracts.base import JsonDict
from perdure.contracts.job import JobPhase, StepResult
from perdure.contracts.messages import TextPart
from perdure.contracts.template import AgentLimits, DraftStep
from perdure.errors import PerdureError, StageFailed, UserError
from perdure.store.transcripts import Line, make_message
from perdure.workspace.copies import DraftCopy, open_draft, reopen_draft

_LOG_TAIL_BYTES = 3000

_PARKED = timedelta(days=7)
"""How long a person may take to give more, where the template's limits do not say."""

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
        for position in range(work.part, len(draft.steps)):
            step = draft.steps[position]
            if step.agent:
                agent = self._start(reader, work, step, position)
                kept = self._desk.blobs.put_json(findings)
                return WorkspaceResult(agent=agent, part=position + 1, findings=kept)
            if self._is_new(work, position):
                findings += tools.run_rule(reader, step.use, step.arguments, "draft", copy).findings
        value = self._drafts.commit(reader, copy, str(reader.render(draft.message)))
        shutil.rmtree(folder, ignore_errors=True)
        count = len(value["changes"])
        result = StepResult(result=reader.keep(value, findings), summary=f"{count} file{'s' * (count != 1)} changed")
        return WorkspaceResult(draft=tools.end(work.step, "draft", result))

    def _agent_id(self, work: WorkspaceInput, position: int) -> str:
        return names.agent_id(work.step.job_id, work.step.round, work.attempt, position)

    def _is_new(self, work: WorkspaceInput, position: int) -> bool:
        """Whether a rule's step has not been done in this workspace: an agent that follows shows that it was."""
        draft_agents = self._desk.agents.of_job(work.step.job_id)
        prefix = self._agent_id(work, 0).rpartition(".")[0] + "."
        return not any(
            row.agent_id.startswith(prefix) and int(row.agent_id.removeprefix(prefix)) > position
            for row in draft_agents
        )

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
        if end.reason in ("done", "answered"):
            findings.append(f"An agent worked on this ({used}): {end.sentence}")
            findings += say_degraded(self._desk.agents.transcripts.calls(self._agent_id(work, position)))
            return reopen_draft(repository, base, folder)
        if end.reason == "cancelled" or step.on_failure == "fail":
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
        row = self._desk.agents.find(spec.agent_id)
        if row is None:
            ref = self._desk.blobs.put_json(spec.model_dump(mode="json"))
            name = spec.agent_id
            charter = make_message(f"{name}#charter", TextPart(text=spec.charter), role="system", source="charter")
            goal = make_message(f"{name}#goal", TextPart(text=spec.goal), role="user", source="goal")
            lines = [Line(0, "charter", charter), Line(1, "goal", goal)]
            row = self._desk.agents.open(spec, ref, lines, at=now())
        return AgentState(agent_id=spec.agent_id, job_id=spec.job_id, spec=row.spec)

    def _spec(self, reader: JobReader, work: WorkspaceInput, step: DraftStep, position: int) -> AgentSpec:
        _, base = base_of(reader)
        tools = {name: self._desk.tools[name] for name in step.tools if name in self._desk.tools}
        missing = sorted(set(step.tools) - set(tools))
        if missing:
            raise UserError(f"Draft step {position + 1} wants tools that this worker has not: {', '.join(missing)}.")
        goal, charter = self._prompts.render(reader, step)
        return AgentSpec(
            agent_id=self._agent_id(work, position),
            job_id=work.step.job_id,
            step=work.step,
            draft_step=position,
            charter=charter,
            goal=goal,
            model=step.model,
            tools=tuple(step.tools),
            tool_digests={name: tool.spec.digest() for name, tool in tools.items()},
            paths=tuple(_paths(reader, step)),
            hosts=tuple(step.hosts),
            permissions=_permissions(step),
            dial=Dial(step.dial),
            done_when=tuple(step.done_when),
            limits=_limits(step.limits),
            on_limit="ask" if step.on_failure == "ask" else "end",
            base_commit=base,
            requester=reader.spec.requester,
            template=reader.spec.template,
            template_digest=reader.spec.template_digest,
            review=review_rule(reader),
        )

    @activity.defn(name=names.CLOSE_AGENT)
    async def close_agent(self, question: CloseAgentInput) -> CloseAgentResult:
        """Look whether an agent is done; end it, let it go on with what is red, or park it for a person."""
        return await in_thread(lambda: self._close(asked(question)))

    def _close(self, question: CloseAgentInput) -> CloseAgentResult:
        desk = self._desk
        row, spec = desk.row(question.agent_id), desk.spec(question.agent_id)
        if row.end is not None:
            return CloseAgentResult(state="ended", number=question.number)
        if question.end is None:
            return self._judge(question, spec)
        may_go_on = spec.on_limit == "ask" and question.end.reason in MORE_HELPS and not question.for_good
        if may_go_on:
            key = question.turn * 100 + 98
            desk.agents.park(row.agent_id, JobPhase.paused, question.end.sentence, key, at=now())
            idle = timedelta(seconds=spec.limits.idle_seconds) if spec.limits.idle_seconds else _PARKED
            return CloseAgentResult(state="parked", number=question.number, until=now() + idle)
        desk.agents.close(row.agent_id, question.end, None, at=now())
        desk.agents.transcripts.forget(row.agent_id)
        if question.end.reason == "cancelled":  # nobody drafts on: its job is over
            shutil.rmtree(desk.folder(row.agent_id), ignore_errors=True)
        return CloseAgentResult(state="ended", number=question.number)

    def _judge(self, question: CloseAgentInput, spec: AgentSpec) -> CloseAgentResult:
        """Run the named checks on exactly what the agent made. Green: done. Red: the model is told what is red."""
        messages = self._desk.agents.transcripts.read(question.agent_id, question.number)
        told = messages[-1].text.strip()
        red = self._find_red(spec)
        if not red:
            end = AgentEnd(reason="done", sentence=(told or "The checks are green.")[:500])
            if self._desk.agents.close(question.agent_id, end, None, at=now()) is not None:
                self._desk.agents.transcripts.forget(question.agent_id)
                return CloseAgentResult(state="ended", number=question.number)
            return CloseAgentResult(state="goes_on", number=question.number)  # somebody has just written
        text = "Not done: these checks are red.\n\n" + "\n\n".join(red)
        key = f"checks/{question.turn}"
        message = make_message(f"{question.agent_id}#{key}", TextPart(text=text), role="user", source="perdure")
        self._desk.agents.add_lines(question.agent_id, [Line(question.number, key, message)], at=now())
        return CloseAgentResult(state="goes_on", number=question.number + 1)

    def _find_red(self, spec: AgentSpec) -> list[str]:
        """One paragraph for each named check that is not green, with the end of its output."""
        reader = self._drafts.tools.read(spec.step)
        try:
            reader.results["draft"] = self._draft_value(reader, spec)
        except (StageFailed, UserError) as error:  # what cannot be committed is the model's to mend
            return [error.message]
        red = []
        for name in spec.done_when:
            verdict, _ = self._drafts.judge(reader, name, reader.template.verify.checks[name])
            if verdict.status == "failed":
                tail = self._desk.blobs.get(verdict.log)[-_LOG_TAIL_BYTES:] if verdict.log else b""
                red.append(f"{name}: {verdict.detail}\n{tail.decode('utf-8', 'replace')}".rstrip())
        return red

    def _draft_value(self, reader: JobReader, spec: AgentSpec) -> JsonDict:
        repository, base = base_of(reader)
        copy = reopen_draft(repository, base, self._desk.folder(spec.agent_id))
        assert reader.template.draft is not None
        return self._drafts.commit(reader, copy, "an agent's work in progress")

    @activity.defn(name=names.READ_AGENT)
    async def read_agent(self, question: AgentQuestion) -> AgentStanding:
        """How an agent stands. Reads only."""
        return await in_thread(lambda: self._desk.agents.standing(question.agent_id))


def _limits(limits: AgentLimits) -> Limits:
    return Limits(
        turns=limits.turns,
        calls=limits.calls,
        tokens=limits.tokens,
        cost_microdollars=limits.cost_microdollars,
        wall_seconds=int(limits.wall.total_seconds()),
        idle_seconds=int(limits.idle.total_seconds()),
    )


def _permissions(step: DraftStep) -> tuple[Permission, ...]:
    """What the template says, and that the tools it names may be used: the dial may still ask."""
    named = [Permission(id=f"template.tools.{name}", decision="allow", tool=name) for name in step.tools]
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
