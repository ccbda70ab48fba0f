"""Routes about plans: read one whole, decide on one digest."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

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
        return await client.read(principal, lambda: client.reader.review_job(ref, now=client.now()))
    return await client.read(principal, lambda: client.reader.review_plan(digest, now=client.now()))


@router.post("/plans/{digest}/decisions")
async def decide_plan(
    digest: Annotated[Digest, Path(description="whole: never a prefix, never the latest")],
    request: DecideRequest,
    client: Asked,
    principal: Asking,
) -> DecideAnswer:
    """Approve, reject, ask for changes, or withdraw: for exactly this digest. The same decision id again is a no-op."""
    return await client.decide(principal, digest, request)
