"""The small page: a Starlette application of its own behind the TCP door. It speaks through the client like the API."""

from __future__ import annotations

import logging
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure.api.pages.answers import page, stylesheet
from perdure.api.pages.plans import PlanPages
from perdure.api.pages.rendering import Pages
from perdure.api.pages.sessions import Sessions
from perdure.api.pages.signing_in import Gatekeeper
from perdure.api.problems import status_of
from perdure.client import Client
from perdure.errors import PerdureError

log = logging.getLogger("perdure.api")


def build_pages(client: Client, folder: Path, sessions: Sessions | None = None) -> Starlette:
    """Return the pages; ``folder``: their templates. Host and Origin were checked by the door before them."""
    pages = Pages(folder)
    keeper = Gatekeeper(client.ledger, pages, sessions or Sessions())
    plans = PlanPages(client, pages)

    async def style(request: Request) -> Response:
        return stylesheet(pages.stylesheet)

    def explain(message: str, status: int) -> Response:
        return page(pages.render("trouble", {"principal": None, "message": message}), status)

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, PerdureError)
        return explain(error.message, status_of(error))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return explain(f"{request.method} {request.url.path}: {error.detail}.", error.status_code)

    async def unexpected(request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return explain("Perdure made a mistake; nothing more was done. Its log has the details.", 500)

    guarded = keeper.only_signed_in
    return Starlette(
        routes=[
            Route("/page.css", style),
            Route("/sign-in", keeper.show, methods=["GET"]),
            Route("/sign-in", keeper.sign_in, methods=["POST"]),
            Route("/sign-out", keeper.sign_out, methods=["POST"]),
            Route("/", guarded(plans.list), methods=["GET"]),
            Route("/plans/{digest}", guarded(plans.show), methods=["GET"]),
            Route("/plans/{digest}/decisions", guarded(plans.decide), methods=["POST"]),
        ],
        exception_handlers={PerdureError: ours, HTTPException: http, Exception: unexpected},
    )
