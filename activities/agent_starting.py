"""How an agent comes to be: specification pinned, first messages written, limits within the job's budget."""

from __future__ import annotations

from activities.agent_desk import AgentDesk, now
from perdure.contracts.agent import AgentEnd, Limits
from perdure.contracts.agent_run import AgentSpec, AgentState
from perdure.contracts.messages import TextPart
from perdure.contracts.template_agents import AgentLimits, JobBudget
from perdure.policy.budgets import add, lease
from perdure.store.transcripts import Line, make_message


def start_agent(desk: AgentDesk, spec: AgentSpec, budget: JobBudget) -> AgentState:
    """Open an agent that a job starts; one that is there stays as it was pinned.

    It gets no more than is left of the job's budget. Agents of a job follow one another, so that nothing is out on
    lease meanwhile.
    """
    row = desk.agents.find(spec.agent_id)
    if row is None:
        spec = _bound(desk, spec, budget)
        ref = desk.blobs.put_json(spec.model_dump(mode="json"))
        row = desk.agents.open(spec, ref, first_lines(spec), at=now())
    return AgentState(agent_id=spec.agent_id, job_id=spec.job_id, spec=row.spec)


def first_lines(spec: AgentSpec) -> list[Line]:
    """The charter and the goal: messages 0 and 1 of every transcript."""
    charter = make_message(f"{spec.agent_id}#charter", TextPart(text=spec.charter), role="system", source="charter")
    goal = make_message(f"{spec.agent_id}#goal", TextPart(text=spec.goal), role="user", source="goal")
    return [Line(0, "charter", charter), Line(1, "goal", goal)]


def limits_of(limits: AgentLimits) -> Limits:
    """A template's limits as they are counted."""
    return Limits(
        turns=limits.turns,
        calls=limits.calls,
        tokens=limits.tokens,
        cost_microdollars=limits.cost_microdollars,
        wall_seconds=int(limits.wall.total_seconds()),
        idle_seconds=int(limits.idle.total_seconds()),
    )


def _bound(desk: AgentDesk, spec: AgentSpec, budget: JobBudget) -> AgentSpec:
    bounds = Limits(
        turns=0,
        calls=0,
        tokens=budget.tokens or 0,
        cost_microdollars=budget.cost_microdollars or 0,
        wall_seconds=0,
    )
    spent = add(*(row.spent for row in desk.agents.of_job(spec.job_id)))
    granted = lease(spent, bounds, spec.limits)
    if isinstance(granted, AgentEnd):
        sentence = f"The job's budget is used up. {granted.sentence}"[:500]
        return spec.model_copy(update={"refused": granted.model_copy(update={"sentence": sentence})})
    return spec.model_copy(update={"limits": granted})
