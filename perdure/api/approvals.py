"""Routes about standing approvals: calls that go without being asked about, as far as a person said."""

from __future__ import annotations

from fastapi import APIRouter

from perdure.api.asking import Asked, Asking
from perdure.contracts.http_standing import RevokeRequest, StandingRequest, StandingView
from perdure.policy.authorize import authorize

router = APIRouter()


@router.get("/approvals")
async def list_approvals(client: Asked, principal: Asking, thread: str | None = None) -> list[StandingView]:
    """Standing approvals, newest first, with how often each was used; those that stand no more, too."""
    return await client.read(principal, lambda: client.approvals.list(thread, now=client.now()))


@router.post("/approvals")
async def add_approval(request: StandingRequest, client: Asked, principal: Asking) -> StandingView:
    """Let calls like that of a plan go from now on. The same decision id again is a no-op."""
    authorize(principal, "decide")
    return await client.approvals.add(principal, request, now=client.now())


@router.post("/approvals/{approval}/revoke")
async def revoke_approval(approval: str, request: RevokeRequest, client: Asked, principal: Asking) -> StandingView:
    """Take a standing approval back, by its id or a beginning that names just one."""
    authorize(principal, "decide")
    return await client.approvals.revoke(principal, approval, request, now=client.now())
