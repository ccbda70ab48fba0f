"""A call that starts an agent: opened once with what it may have, then looked at until it has ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from activities.agent_desk import AgentDesk, now
from activities.agent_family import leases, used
from activities.agent_prompts import Prompts
from activities.agent_starting import first_lines
from activities.jobs import JobReader
from perdure.contracts import names
from perdure.contracts.agent import AgentEnd, Limits, Permission, ToolOutcome
from perdure.contracts.agent_run import AgentSpec, AgentState, CallInput
from perdure.contracts.base import BlobRef
from perdure.contracts.job import StepInput
from perdure.contracts.messages import CallPart
from perdure.errors import ToolFault
from perdure.policy.budgets import lease
from perdure.policy.delegation import Grant, narrow, wish
from perdure.store.agent_rows import AgentRow
from perdure.store.transcripts import Line

if TYPE_CHECKING:
    from perdure.tools.delegate import Delegate

REPAIRS = 2


class Reads(Protocol):
    """Reads the job of a step."""

    def read(self, step: StepInput) -> JobReader:
        """Its pinned template, inputs and results."""
        ...


class Delegator:
    """Starts agents for agents. The same call finds the agent that it started."""

    def __init__(self, desk: AgentDesk, jobs: Reads, prompts: Prompts) -> None:
        self._desk = desk
        self._jobs = jobs
        self._prompts = prompts

    def run(self, question: CallInput, part: CallPart, spec: AgentSpec) -> AgentState | ToolOutcome:
        """Return the agent while it is to work, and what it came to once it has ended.

        Raises:
            ToolFault: it may not be started like that.
        """
        child = names.child_id(question.agent_id, question.call.turn, question.call.position)
        row = self._desk.agents.find(child) or self._open(child, part, spec)
        if row.end is not None:
            return self._tell(row, row.end)
        return AgentState(agent_id=child, job_id=spec.job_id, spec=row.spec, parent=spec.agent_id)

    def _open(self, child: str, part: CallPart, spec: AgentSpec) -> AgentRow:
        from perdure.tools.base import read_arguments  # with pydantic's models of it: no worker needs them at its start
        from perdure.tools.delegate import DELEGATE_TOOL, Delegate

        wanted = read_arguments(DELEGATE_TOOL.spec, Delegate, part.arguments)
        has = Grant(spec.tools, spec.paths, spec.depth)
        grant, problems = narrow(has, tuple(wanted.tools), tuple(wanted.paths))
        if problems:
            raise ToolFault(f"No agent was started. {' '.join(problems)}")

        def make(parent: AgentRow, below: Sequence[AgentRow]) -> tuple[AgentSpec, BlobRef, Sequence[Line]]:
            made = self._spec(child, spec, wanted, grant, self._lease(parent, below, spec, wanted.turns))
            return made, self._desk.blobs.put_json(made.model_dump(mode="json")), first_lines(made)

        return self._desk.agents.open_child(child, spec.agent_id, make, at=now())

    def _lease(self, parent: AgentRow, below: Sequence[AgentRow], spec: AgentSpec, turns: int) -> Limits:
        """What of its parent's budget a child gets. Raises ``ToolFault``: nothing is left."""
        limits = self._desk.steering_of(spec).limits(spec.limits)
        if limits.wall_seconds:
            left = max(limits.wall_seconds - parent.wall_seconds(now()), 1)
            limits = limits.model_copy(update={"wall_seconds": left})
        spent = used(parent.agent_id, parent.spent, below)
        out = leases(parent.agent_id, below, lambda agent_id: self._desk.spec(agent_id).limits)
        granted = lease(spent, limits, wish(spent, limits, out, turns), out)
        if isinstance(granted, AgentEnd):
            raise ToolFault(f"No agent was started: nothing is left for it. {granted.sentence}")
        return granted

    def _spec(self, child: str, spec: AgentSpec, wanted: Delegate, grant: Grant, limits: Limits) -> AgentSpec:
        from perdure.tools.delegate import schema_of_answer

        answer = schema_of_answer(wanted.answer)
        charter = self._prompts.for_child(self._jobs.read(spec.step), grant.tools, grant.paths, answer)
        changes = {
            "agent_id": child,
            "parent": spec.agent_id,
            "depth": grant.depth,
            "charter": charter,
            "goal": f"Your task, in the words of the agent that you work for:\n\n{wanted.task}",
            "tools": grant.tools,
            "tool_digests": {name: found for name, found in spec.tool_digests.items() if name in grant.tools},
            "paths": grant.paths,
            "permissions": tuple(
                Permission(id=f"delegation.tools.{name}", decision="allow", tool=name) for name in grant.tools
            ),
            "above": (spec.permissions, *spec.above),
            "done_when": (),
            "answer": answer,
            "repairs": REPAIRS,
            "limits": limits,
            "on_limit": "end",
        }
        return spec.model_copy(update=changes)

    def _tell(self, row: AgentRow, end: AgentEnd) -> ToolOutcome:
        """What a child's end says to its parent."""
        below = self._desk.agents.below(row.agent_id)
        total = used(row.agent_id, row.spent, below)
        cost = f"{total.turns} turns, {total.calls} calls, {total.cost_microdollars / 1e6:.4f} USD"
        changed = any(call.changed for call in self._desk.agents.transcripts.calls(row.agent_id)) or any(
            call.changed for one in below for call in self._desk.agents.transcripts.calls(one.agent_id)
        )
        summary = f"agent {row.ordinal}: {end.reason}, {cost}"
        if end.reason == "answered" and row.result is not None:
            text = json.dumps(self._desk.blobs.get_json(row.result), ensure_ascii=False, indent=1)
            return ToolOutcome(status="ok", text=f"{text}\n\nIt used {cost}.", summary=summary, changed=changed)
        text = f"It stopped without an answer ({end.reason}): {end.sentence} It used {cost}. What it changed stands."
        return ToolOutcome(status="error", text=text, summary=summary, changed=changed)
