"""Routes about people: who is who today, and who decides in whose place."""

from __future__ import annotations

from fastapi import APIRouter

from perdure.api.asking import Asked, Asking
from perdure.contracts.http_people import DelegateRequest, DelegationView, EndDelegationRequest, PeopleView

router = APIRouter()


@router.get("/people")
async def show_people(client: Asked, principal: Asking) -> PeopleView:
    """People and policies of the settings as they are now, and delegations, newest first."""
    return await client.read(principal, lambda: client.delegations.view(now=client.now()))


@router.post("/delegations")
async def delegate(request: DelegateRequest, client: Asked, principal: Asking) -> DelegationView:
    """Let somebody decide in your place until a time. The same decision id again is a no-op."""
    return await client.read(
        principal, lambda: client.delegations.add(principal, request, now=client.now()), right="decide"
    )


@router.post("/delegations/{delegation}/end")
async def end_delegation(
    delegation: str, request: EndDelegationRequest, client: Asked, principal: Asking
) -> DelegationView:
    """Take a delegation of yours back, by its id or a beginning that names just one."""
    return await client.read(
        principal, lambda: client.delegations.end(principal, delegation, request, now=client.now()), right="decide"
    )
