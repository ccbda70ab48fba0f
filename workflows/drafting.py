"""Stages with models in them: rules run in an activity, each agent is a workflow of its own that the job hears from."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from perdure.contracts import names
from perdure.contracts.agent_run import (
    AgentQuestion,
    AgentStanding,
    AgentState,
    AnalysisInput,
    AnalysisResult,
    WorkspaceInput,
    WorkspaceResult,
)
from perdure.contracts.job import Poke, StepInput, StepResult
from workflows.calls import LIE, call, poke, start_child

Hear = Callable[[str], Awaitable[None]]
"""Waits until a child is said to have ended."""


async def draft_with_agents(step: StepInput, attempt: int, hear: Hear, limit: timedelta) -> StepResult:
    """Run the draft's steps in their order; what an agent came to is asked of the ledger."""
    work = WorkspaceInput(step=step, attempt=attempt)
    while True:
        found = await call(names.OPEN_WORKSPACE, work, WorkspaceResult, limit=limit)
        if found.draft is not None:
            return found.draft
        assert found.agent is not None  # it is one or the other
        await _run_agent(found.agent, hear)
        work = work.model_copy(update={"part": found.part, "findings": found.findings, "answers": found.answers})


async def conclude_with_prompts(step: StepInput, hear: Hear, limit: timedelta) -> StepResult:
    """Run the analysis' steps in their order; a prompt is an agent without tools."""
    work = AnalysisInput(step=step)
    while True:
        found = await call(names.CONCLUDE, work, AnalysisResult, limit=limit)
        if found.analysis is not None:
            return found.analysis
        assert found.agent is not None  # it is one or the other
        await _run_agent(found.agent, hear)
        work = work.model_copy(update={"part": found.part, "kept": found.kept})


async def _run_agent(agent: AgentState, hear: Hear) -> None:
    """Keep an agent at work until the ledger says that it has ended."""
    question = AgentQuestion(agent_id=agent.agent_id)
    try:
        while True:
            await start_child(names.AGENT_WORKFLOW, agent, agent.agent_id)
            await hear(agent.agent_id)
            standing = await call(names.READ_AGENT, question, AgentStanding)
            if standing.end is not None:
                return
            await workflow.sleep(LIE)
    except (asyncio.CancelledError, FailureError) as error:
        if is_cancelled_exception(error):
            await poke(agent.agent_id, Poke(about="cancel"))  # it finds the cancel in the ledger
        raise
