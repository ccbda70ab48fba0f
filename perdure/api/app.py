"""The HTTP application: routes under ``/v1`` that speak the contracts, and nothing that decides."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from perdure.api import agents, approvals, jobs, messages, operate, people, plans, schedules, templates, threads
from perdure.api.problems import install_problems
from perdure.client import Client, installed_version
from perdure.errors import PerdureError

log = logging.getLogger("perdure.api")

RETELL_SECONDS = 5.0
"""How often decisions that could not be passed on are tried again."""


def build_app(client: Client, *, retell_seconds: float = RETELL_SECONDS) -> FastAPI:
    """Return the application; serve it only behind the doors of ``perdure.api.doors``, which say who is asking."""

    @asynccontextmanager
    async def retelling(app: FastAPI) -> AsyncIterator[None]:
        """While the application runs: pass on what an earlier process, or an unreachable server, left untold."""
        task = asyncio.create_task(_retell_for_ever(client, retell_seconds))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    app = FastAPI(
        title="Perdure",
        version=installed_version(),
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its page loads scripts from another host
        redoc_url=None,
        lifespan=retelling,
    )
    app.state.client = client
    for room in (jobs, agents, approvals, plans, schedules, threads, templates, people, messages, operate):
        app.include_router(room.router, prefix="/v1")
    install_problems(app)
    return app


async def _retell_for_ever(client: Client, every_seconds: float) -> None:
    recovered: int | None = None
    while True:
        try:
            if told := await client.retell():
                log.info("passed on %d decisions that had not been told", told)
            if recovered is None and (recovered := await client.recover()):
                log.info("started %d jobs again that Temporal had lost", recovered)
        except PerdureError as error:
            log.warning("decisions could not be passed on: %s", error.message)
        await asyncio.sleep(every_seconds)
