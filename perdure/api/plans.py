"""Routes about plans: read one whole, decide on one digest."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import StreamingResponse

from perdure.api.asking import Asked, Asking
from perdure.contracts.base import Digest
from perdure.contracts.http import DecideAnswer, DecideRequest, Review
from perdure.errors import UserError

router = APIRouter()


@router.get("/review")
async def review_plan(client: Asked, principal: Asking, ref: str = "", digest: str = "") -> Review:
    """A plan as a reviewer sees it: of a job (its newest), or by its digest or a beginning that names just one."""
    if bool(ref) == bool(digest):
        raise UserError("Give exactly one of ref (a job) and digest (a plan, at least its first 8 digits).")
    if ref:
        return await client.read(
            principal, lambda: client.reader.review_job(ref, now=client.now(), viewer=principal.name)
        )
    return await client.read(
        principal, lambda: client.reader.review_plan(digest, now=client.now(), viewer=principal.name)
    )


@router.get("/diff", response_class=StreamingResponse)
async def stream_diff(
    digest: Annotated[Digest, Query(description="whole: never a prefix, never the latest")],
    client: Asked,
    principal: Asking,
    since_previous: bool = False,
) -> StreamingResponse:
    """A plan's whole diff as text, however large, file by file; or what differs from the last one that you decided.

    An answer whose last chunk is missing broke off: it is not the whole diff.
    """
    reader = client.reader
    pieces = await client.read(
        principal, lambda: reader.stream_diff(digest, since_previous=since_previous, viewer=principal.name)
    )
    return StreamingResponse(pieces, media_type="text/plain; charset=utf-8")


@router.post("/plans/{digest}/decisions")
async def decide_plan(
    digest: Annotated[Digest, Path(description="whole: never a prefix, never the latest")],
    request: DecideRequest,
    client: Asked,
    principal: Asking,
) -> DecideAnswer:
    """Approve, reject, ask for changes, or withdraw: for exactly this digest. The same decision id again is a no-op."""
    return await client.decide(principal, digest, request)
