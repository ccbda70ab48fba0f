"""Routes about threads: lasting workspaces with one responsibility each."""

from __future__ import annotations

from fastapi import APIRouter

from perdure.api.asking import Asked, Asking
from perdure.contracts.threads import ThreadErased, ThreadRow, ThreadView, ThreadWordRequest
from perdure.policy.authorize import Right

router = APIRouter()


@router.get("/threads")
async def list_threads(client: Asked, principal: Asking, archived: bool = False) -> list[ThreadRow]:
    """Threads by name, with what each did last."""
    return await client.read(principal, lambda: client.threads.rows(archived=archived))


@router.get("/threads/{thread}")
async def show_thread(thread: str, client: Asked, principal: Asking) -> ThreadView:
    """One thread's history: its newest jobs, who decided, what was taken back, what is left over."""
    return await client.read(principal, lambda: client.threads.view(thread))


@router.post("/threads/{thread}/words")
async def say_about_thread(thread: str, request: ThreadWordRequest, client: Asked, principal: Asking) -> ThreadView:
    """Pause, resume or archive. To pause, the right to submit is enough: it only brakes."""
    right: Right = "submit" if request.kind == "pause" and "decide" not in principal.may else "decide"
    return await client.read(principal, lambda: client.threads.say(principal, thread, request), right)


@router.delete("/threads/{thread}")
async def erase_thread(thread: str, client: Asked, principal: Asking) -> ThreadErased:
    """Erase what a finished thread's records say, and archive it. Evidence goes: only the owner may."""
    return await client.read(principal, lambda: client.threads.erase(principal, thread), right="own")
