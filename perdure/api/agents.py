"""Routes about agents at work: what they did, and what people say to them."""

from __future__ import annotations

from fastapi import APIRouter

from perdure.api.asking import Asked, Asking
from perdure.api.jobs import Ref
from perdure.contracts.http import AgentView, SteerRequest

router = APIRouter()


@router.get("/agents")
async def list_agents(ref: Ref, client: Asked, principal: Asking) -> list[AgentView]:
    """A job's agents, oldest first: turns, calls, cost, and what was said to them."""
    return await client.read(principal, lambda: client.steerer.views(client.ledger.job(ref).job_id))


@router.post("/steer")
async def steer_job(ref: Ref, request: SteerRequest, client: Asked, principal: Asking) -> list[AgentView]:
    """Say something to the agent at work on a job, pause it, turn its dial, give it more."""
    return await client.steer(principal, ref, request)
