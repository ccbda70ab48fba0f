"""Routes about jobs: start, list, follow, take back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from perdure.api.asking import Asked, Asking
from perdure.contracts.base import BlobRef, Digest
from perdure.contracts.http import (
    ArtifactView,
    CancelRequest,
    EventPage,
    JobView,
    ResolveRequest,
    SubmitRequest,
    UndoRequest,
)

LONGEST_WAIT_SECONDS = 30.0

router = APIRouter()

Ref = Annotated[str, Query(description="3, releases/3, @last or a whole job id", max_length=300)]


@router.post("/jobs")
async def submit_job(request: SubmitRequest, client: Asked, principal: Asking) -> JobView:
    """Start a job. The same ``request_id`` again answers with the same job."""
    return await client.submit(principal, request)


@router.get("/jobs")
async def list_jobs(
    client: Asked,
    principal: Asking,
    thread: str | None = None,
    open: bool = False,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> list[JobView]:
    """Jobs, newest first."""
    return await client.read(principal, lambda: client.ledger.jobs(thread=thread, open_only=open, limit=limit))


@router.get("/job")
async def show_job(ref: Ref, client: Asked, principal: Asking) -> JobView:
    """One job; while it waits, with who is still needed."""
    return await client.job(principal, ref)


@router.get("/events")
async def follow_job(
    ref: Ref,
    client: Asked,
    principal: Asking,
    after: Annotated[int, Query(ge=0)] = 0,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_SECONDS)] = 0,
) -> EventPage:
    """A job's events after a position; while there is none, the answer waits for one up to ``wait`` seconds."""
    return await client.follow(principal, ref, after=after, wait_seconds=wait)


@router.post("/resolve")
async def resolve_effect(ref: Ref, request: ResolveRequest, client: Asked, principal: Asking) -> JobView:
    """Say what became of an effect whose fate is unknown."""
    return await client.resolve(principal, ref, request)


@router.post("/cancel")
async def cancel_job(ref: Ref, request: CancelRequest, client: Asked, principal: Asking) -> JobView:
    """Stop a job at its next boundary; what it applied is taken back."""
    return await client.cancel(principal, ref, request)


@router.post("/undo")
async def undo_job(ref: Ref, request: UndoRequest, client: Asked, principal: Asking) -> JobView:
    """Start a job that takes another one back, as a plan of its own."""
    return await client.undo(principal, ref, request)


@router.post("/look")
async def look_at_job(ref: Ref, client: Asked, principal: Asking) -> JobView:
    """Look at once whether what a job waits for outside has happened."""
    return await client.look(principal, ref)


@router.get("/artifacts")
async def list_artifacts(ref: Ref, client: Asked, principal: Asking) -> list[ArtifactView]:
    """A job's stored results, in the order they were made."""
    return await client.read(principal, lambda: client.reader.artifacts(client.ledger.job(ref).job_id))


@router.get("/blobs/{sha256}", response_class=Response, responses={200: {"content": {"application/octet-stream": {}}}})
async def read_blob(
    sha256: Digest, size: Annotated[int, Query(ge=0)], ref: Ref, client: Asked, principal: Asking
) -> Response:
    """The bytes of a blob that belongs to the job, hashed again before they are sent."""
    blob = BlobRef(sha256=sha256, size_bytes=size)
    data = await client.read(principal, lambda: client.reader.read_blob(client.ledger.job(ref).job_id, blob))
    headers = {"X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment"}
    return Response(data, media_type="application/octet-stream", headers=headers)
