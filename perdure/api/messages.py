"""Routes about messages to people: what was told on which channel, and what did not arrive."""

from __future__ import annotations

from fastapi import APIRouter

from perdure.api.asking import Asked, Asking
from perdure.contracts.job import Done
from perdure.contracts.notify import AgainRequest, MessageView, ToldView

router = APIRouter()


@router.get("/messages")
async def list_messages(client: Asked, principal: Asking, ref: str | None = None, failing: bool = False) -> ToldView:
    """Channels of the settings, and the newest messages, of one job or of all; ``failing``: that did not arrive."""

    def look() -> ToldView:
        job_id = client.ledger.job(ref).job_id if ref else ""
        found = client.telling.messages(job_id=job_id, only_failing=failing)
        return ToldView(channels=client.telling.channels(), messages=found)

    return await client.read(principal, look)


@router.post("/messages/again")
async def send_again(request: AgainRequest, client: Asked, principal: Asking) -> MessageView:
    """Send a message now that was given up, or waits for its next attempt."""
    return await client.read(principal, lambda: client.telling.send_again(request.key, client.now()), right="submit")


@router.post("/channels/{name}/test")
async def try_channel(name: str, client: Asked, principal: Asking) -> Done:
    """Send a word to a channel."""
    await client.read(principal, lambda: client.telling.try_channel(name), right="own")
    return Done()
