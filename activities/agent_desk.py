"""What all of an agent's activities read: its specification, people's verified words to it, where its workspace is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from temporalio import activity

from activities.jobs import JsonBlobs
from activities.ledger import Decisions
from perdure.contracts.agent import Denial, Dial, Limits
from perdure.contracts.agent_ports import ModelClient, Tool
from perdure.contracts.agent_run import AgentSpec, OfAgent
from perdure.contracts.decisions import Decision
from perdure.contracts.names import first_agent
from perdure.policy.budgets import raise_limits
from perdure.policy.dial import lower_by_itself
from perdure.policy.permissions import remember
from perdure.store.agent_rows import AgentRow
from perdure.store.agents import Agents
from perdure.store.ledger import Ledger


@dataclass(frozen=True)
class Steering:
    """What people said to an agent while it works, as verified now."""

    words: tuple[Decision, ...]

    @property
    def cancelled_by(self) -> str:
        """Who cancelled the job; empty: nobody."""
        return next((word.by for word in self.words if word.kind == "cancel"), "")

    @property
    def paused_by(self) -> str:
        """Who paused it and did not let it go on since; empty: it may work."""
        last = next((word for word in reversed(self.words) if word.kind in ("pause", "resume")), None)
        return last.by if last is not None and last.kind == "pause" else ""

    def dial(self, first: Dial) -> Dial:
        """The dial as last turned, ``first`` while nobody has."""
        last = next((word for word in reversed(self.words) if word.kind == "dial"), None)
        return Dial(last.comment) if last is not None else first

    def limits(self, first: Limits) -> Limits:
        """The limits with everything that was given since."""
        for word in self.words:
            if word.kind == "more":
                first = raise_limits(first, read_more(word.comment))
        return first


@dataclass(frozen=True)
class AgentDesk:
    """What the activities of agents share."""

    ledger: Ledger
    blobs: JsonBlobs
    decisions: Decisions
    agents: Agents
    models: ModelClient
    tools: Mapping[str, Tool]
    workspaces: Path

    def spec(self, agent_id: str) -> AgentSpec:
        """The agent's specification, as pinned when it began; the last few are kept."""
        found = _SPECS.get(agent_id)
        if found is None:
            found = AgentSpec.model_validate(self.blobs.get_json(self.agents.get(agent_id).spec))
            while len(_SPECS) >= _MOST_SPECS:
                _SPECS.pop(next(iter(_SPECS)))
            _SPECS[agent_id] = found
        return found

    def steering(self, job_id: str) -> Steering:
        """People's words on a job whose signatures hold, oldest first."""
        return Steering(tuple(self.decisions.on_job(job_id)))

    def steering_of(self, spec: AgentSpec) -> Steering:
        """As :meth:`steering`. What a person gives more an agent below others gets from them."""
        found = self.steering(spec.job_id)
        return Steering(tuple(word for word in found.words if word.kind != "more")) if spec.parent else found

    def dial(self, spec: AgentSpec, steering: Steering) -> Dial:
        """Where the dial of an agent's job stands: as a person turned it last, or lower since by itself."""
        return self.agents.lowered_dial(spec.job_id) or steering.dial(spec.dial)

    def lower_dial(self, spec: AgentSpec, why: str, step: str) -> None:
        """Turn the dial down by itself, once per (agent, step); a person may turn it up again."""
        now_at = self.dial(spec, self.steering(spec.job_id))
        lower = lower_by_itself(now_at)
        if lower is not now_at:
            self.agents.lower_dial(spec.agent_id, lower, why, step, at=now())

    def folder(self, agent_id: str) -> Path:
        """The private workspace that an agent works in; the agents of one draft share it."""
        return workspace_folder(self.workspaces, agent_id)

    def denials(self, job_id: str) -> tuple[Denial, ...]:
        """What people denied the agents of a job, by target and effect, with how often it was wanted since."""
        return remember(self.agents.transcripts.denied(job_id))

    def row(self, agent_id: str) -> AgentRow:
        """The agent. Raises ``NotFound``."""
        return self.agents.get(agent_id)


def read_more(text: str) -> Limits:
    """What a person gives more, as it was signed: JSON of the limits that grow."""
    return Limits.model_validate({**dict.fromkeys(Limits.model_fields, 0), **json.loads(text)})


Question = TypeVar("Question", bound=OfAgent)


def asked(question: Question) -> Question:
    """The question of an agent's workflow with the agent that asks it."""
    return question.model_copy(update={"agent_id": activity.info().workflow_id})


def workspace_folder(workspaces: Path, agent_id: str) -> Path:
    """The folder of the draft that an agent works on: named by job, round and attempt."""
    draft = first_agent(agent_id).rpartition(".")[0]
    return workspaces / f"agent-{hashlib.sha256(draft.encode()).hexdigest()[:24]}"


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


_SPECS: dict[str, AgentSpec] = {}
_MOST_SPECS = 256
