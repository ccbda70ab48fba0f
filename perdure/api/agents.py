"""Routes about agents at work: what they did, and what people say to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from perdure.api.asking import Asked, Asking
from perdure.api.jobs import Ref
from perdure.contracts.checkpoints import CheckpointView
from perdure.contracts.http import AgentView, SteerRequest
from perdure.contracts.watching import LiveView, TranscriptLine, TurnView

router = APIRouter()


@router.get("/agents")
async def list_agents(ref: Ref, client: Asked, principal: Asking) -> list[AgentView]:
    """A job's agents, oldest first: turns, calls, cost, and what was said to them."""
    return await client.read(principal, lambda: client.steerer.views(client.ledger.job(ref).job_id))


@router.post("/steer")
async def steer_job(ref: Ref, request: SteerRequest, client: Asked, principal: Asking) -> list[AgentView]:
    """Say something to the agent at work on a job, pause it, turn its dial, give it more."""
    return await client.steer(principal, ref, request)


@router.get("/turns")
async def list_turns(ref: Ref, client: Asked, principal: Asking, since: datetime | None = None) -> list[TurnView]:
    """The answered turns of a job's agents with their calls, oldest first; results by reference."""
    return await client.read(principal, lambda: client.turns.views(client.ledger.job(ref).job_id, since=since))


@router.get("/transcript")
async def read_transcript(
    ref: Ref,
    client: Asked,
    principal: Asking,
    agent: Annotated[int, Query(ge=1)] = 1,
    start: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[TranscriptLine]:
    """Messages of one agent, whole, whatever a summary covers."""
    return await client.read(
        principal, lambda: client.turns.transcript(client.ledger.job(ref).job_id, agent, start=start, limit=limit)
    )


@router.get("/checkpoints")
async def list_checkpoints(ref: Ref, client: Asked, principal: Asking) -> list[CheckpointView]:
    """The checkpoints of a job's workspace, oldest first: one after each call that wrote."""
    return await client.read(principal, lambda: client.snapshots.of_job(client.ledger.job(ref).job_id))


@router.get("/checkpoints/diff", response_class=StreamingResponse)
async def diff_checkpoints(
    ref: Ref,
    client: Asked,
    principal: Asking,
    old: Annotated[int, Query(ge=0)] = 0,
    new: Annotated[int, Query(ge=0, description="0: the last one")] = 0,
) -> StreamingResponse:
    """What differs between two checkpoints, as text; 0 is the base. Without its last chunk it broke off."""
    pieces = await client.read(principal, lambda: client.snapshots.stream_diff(client.ledger.job(ref).job_id, old, new))
    return StreamingResponse(pieces, media_type="text/plain; charset=utf-8")


@router.get("/live", response_class=StreamingResponse)
async def watch_agents(ref: Ref, client: Asked, principal: Asking, since: datetime | None = None) -> StreamingResponse:
    """What a job's agents do as it happens, one JSON object (``LiveView``) a line, until the job ends.

    Models stream only while somebody watches: text comes from the next turn on.
    """
    await client.job(principal, ref)  # what is refused is refused with a status
    return StreamingResponse(_lines(client.watch(principal, ref, since)), media_type="application/x-ndjson")


async def _lines(views: AsyncIterator[LiveView]) -> AsyncIterator[str]:
    async for view in views:
        yield view.model_dump_json() + "\n"
