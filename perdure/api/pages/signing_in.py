"""Signing in with a token, and who is signed in. A link leads through here to what it names."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from perdure.api.doors import principal_of
from perdure.api.pages.answers import COOKIE, SECURE_COOKIE, drop_cookies, go_to, keep_cookie, page
from perdure.api.pages.rendering import Pages
from perdure.api.pages.sessions import Session, Sessions
from perdure.errors import Refused, UserError
from perdure.policy.authorize import Principal
from perdure.store.ledger import Ledger

_PLACES = re.compile(r"/(plans/[0-9a-f]{8,64}|jobs/[0-9]{1,9})?")
"""Where signing in may lead: never to another host, and to nothing that a request brings."""
_MOST_FIELDS = 20


@dataclass(frozen=True)
class SignedIn:
    """A request of somebody who is signed in."""

    request: Request
    session: Session
    principal: Principal


Handler = Callable[[SignedIn], Awaitable[Response]]


class Gatekeeper:
    """Opens, finds and ends sessions."""

    def __init__(self, ledger: Ledger, pages: Pages, sessions: Sessions) -> None:
        self._ledger = ledger
        self._pages = pages
        self._sessions = sessions

    def only_signed_in(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that shows the sign-in page to everybody else. The token is looked up each time."""

        async def guarded(request: Request) -> Response:
            found = await self._find(request)
            if found is None:
                return self._ask(request, request.url.path, 401)
            if request.method == "POST":
                check_origin(request)
            return await handler(found)

        return guarded

    async def show(self, request: Request) -> Response:
        """The sign-in page."""
        return self._ask(request, "/", 200)

    async def sign_in(self, request: Request) -> Response:
        """Take a token, and lead on to where the visitor wanted to go."""
        origin = check_origin(request)
        fields = await read_form(request)
        token = await asyncio.to_thread(self._ledger.token, fields.get("token", "").strip())
        if token is None:
            why = "This token is not known, or was revoked. `perdure tokens add` makes one."
            return self._ask(request, fields.get("next", "/"), 401, why)
        is_secure = origin.startswith("https://")
        answer = go_to(_place(fields.get("next", "/")))
        keep_cookie(answer, self._sessions.begin(token.id, is_secure=is_secure), is_secure=is_secure)
        return answer

    async def sign_out(self, request: Request) -> Response:
        """End the session, here and in the browser."""
        check_origin(request)
        for key, _ in _cookies(request):
            self._sessions.end(key)
        answer = go_to("/sign-in")
        drop_cookies(answer)
        return answer

    async def _find(self, request: Request) -> SignedIn | None:
        for key, is_secure in _cookies(request):
            session = self._sessions.find(key, is_secure=is_secure)
            if session is None:
                continue
            token = await asyncio.to_thread(self._ledger.token_by_id, session.token_id)
            if token is not None:
                return SignedIn(request, session, principal_of(token, "page"))
            self._sessions.end(key)
        return None

    def _ask(self, request: Request, place: str, status: int, why: str = "") -> Response:
        # A browser keeps a strict cookie back when another site's link leads here; asked again by our own page, it
        # sends it. Only once: then the request is our own.
        comes_from_elsewhere = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
        facts = {"place": _place(place), "why": why, "again": comes_from_elsewhere and request.method == "GET"}
        return page(self._pages.render("sign_in", {"principal": None, **facts}), status)


def check_origin(request: Request) -> str:
    """Return the Origin of a form, which the door has compared with ours. Raises ``Refused``: there is none."""
    origin = request.headers.get("origin", "")
    if not origin:
        raise Refused("The form came without an Origin: only this page's own forms are taken. Nothing was done.")
    return origin


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises ``UserError``: it is no form, or holds too much."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise UserError(f"The body is {kind or 'of no type'}; expected a form. Nothing was done.")
    try:
        text = (await request.body()).decode("ascii")
        fields = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise UserError(f"The form cannot be read ({error}). Nothing was done.") from None
    return {name: value.replace("\r\n", "\n") for name, value in fields}


def _place(path: str) -> str:
    return path if _PLACES.fullmatch(path) else "/"


def _cookies(request: Request) -> list[tuple[str, bool]]:
    """(session's key, whether it came as the cookie that only TLS carries)."""
    named = ((SECURE_COOKIE, True), (COOKIE, False))
    return [(request.cookies[name], is_secure) for name, is_secure in named if name in request.cookies]
