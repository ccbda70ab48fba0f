"""The two doors to one application: each proves who is asking before anything else happens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perdure.api.problems import kind_of, problem, status_of
from perdure.contracts.http import TokenView
from perdure.errors import PerdureError, Refused, UserError
from perdure.policy.authorize import TOKEN_RIGHTS, Principal
from perdure.store.ledger import Ledger

PRINCIPAL = "perdure.principal"
"""Key of the ASGI scope under which the application finds who is asking."""

_ASK = "The owner of the installation makes one: `perdure tokens add`."

API_PATHS = ("/v1/",)
"""A cookie opens none of these; a token's header none of the others."""

MAX_BODY_BYTES = 1 << 20
"""Requests are small; what is large lies in the blob store."""


class _TurnedAway(Exception):
    """The door stays shut; never leaves this module."""

    def __init__(self, status: int, error: PerdureError) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error


class Door:
    """An ASGI wrapper that lets a request through with its principal in the scope, or answers it itself."""

    NAME = "door"
    """As decisions that came through it record it."""

    def __init__(self, app: ASGIApp, ledger: Ledger) -> None:
        self._app = app
        self._ledger = ledger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit, or say why not. WebSockets are not spoken here."""
        if scope["type"] != "http":
            raise RuntimeError(f"A door got {scope['type']!r}; it is for HTTP alone.")
        headers = Headers(scope=scope)
        try:
            self.check(headers)
            _check_body(scope["method"], headers)
            scope[PRINCIPAL] = await self.identify(headers)
        except _TurnedAway as turned:
            await _answer(turned.error, turned.status, scope, receive, send)
        except PerdureError as error:
            await _answer(error, status_of(error), scope, receive, send)
        else:
            await self._app(scope, _limited(receive), send)

    def check(self, headers: Headers) -> None:
        """Refuse a request by what stands on its envelope."""

    async def identify(self, headers: Headers) -> Principal:
        """Return who is asking."""
        raise NotImplementedError

    async def bearer(self, headers: Headers) -> Principal | None:
        """Return whose token the request bears; ``None`` when it bears none."""
        given = headers.getlist("authorization")
        if not given:
            return None
        scheme, _, text = given[0].partition(" ")
        token = None
        if len(given) == 1 and scheme.lower() == "bearer" and text:
            token = await asyncio.to_thread(self._ledger.token, text.strip())
        if token is None or token.revoked_at is not None:
            raise _TurnedAway(401, Refused(f"This token is not known, or was revoked. {_ASK}"))
        return principal_of(token, self.NAME)


def principal_of(token: TokenView, door: str) -> Principal:
    """Return whom a token speaks for, through that door."""
    may = frozenset(token.may) & TOKEN_RIGHTS
    name = f"{door}, token {token.id}"
    return Principal(token.principal, tuple(token.groups), may, acts_for=token.acts_for, door=name)


class UnixDoor(Door):
    """The Unix socket. Its peer's uid was checked when it connected: without a token, it is the owner."""

    NAME = "unix socket"

    def __init__(self, app: ASGIApp, ledger: Ledger, owner: Principal) -> None:
        super().__init__(app, ledger)
        self._owner = owner

    async def identify(self, headers: Headers) -> Principal:
        """The owner; or, with a token, only what the token may."""
        return await self.bearer(headers) or self._owner


class TcpDoor(Door):
    """TCP. Whoever comes must know the exact host name and bear a token; pages of other origins are turned away."""

    NAME = "tcp"

    def __init__(self, app: ASGIApp, ledger: Ledger, hosts: Iterable[str], pages: ASGIApp | None = None) -> None:
        super().__init__(app, ledger)
        self._pages = pages
        self._hosts = frozenset(hosts)
        self._origins = frozenset(f"{scheme}://{host}" for host in self._hosts for scheme in ("http", "https"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what is not for the API to the pages, which ask for a session in place of the token."""
        if self._pages is None or scope["type"] != "http" or scope["path"].startswith(API_PATHS):
            await super().__call__(scope, receive, send)
            return
        try:
            self.check(Headers(scope=scope))
        except _TurnedAway as turned:
            await _answer(turned.error, turned.status, scope, receive, send)
        else:
            await self._pages(scope, _limited(receive), send)

    def check(self, headers: Headers) -> None:
        """Host must be one of ours, Origin absent or ours: this stops DNS rebinding and other sites' pages."""
        if len(headers.getlist("host")) != 1 or headers["host"] not in self._hosts:
            raise _TurnedAway(421, Refused("This host name is not served here. See PERDURE_ALLOWED_HOSTS."))
        if any(origin not in self._origins for origin in headers.getlist("origin")):
            raise _TurnedAway(403, Refused("Requests from pages of another origin are refused."))

    async def identify(self, headers: Headers) -> Principal:
        """Whose token it is; without one nothing is answered."""
        principal = await self.bearer(headers)
        if principal is None:
            raise _TurnedAway(401, Refused(f"A token is needed: `Authorization: Bearer …`. {_ASK}"))
        return principal


def _check_body(method: str, headers: Headers) -> None:
    if method in {"GET", "HEAD"}:
        return
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise _TurnedAway(413, UserError(f"The body has {length} bytes; at most {MAX_BODY_BYTES} are read."))
    has_body = length not in {"", "0"} or "transfer-encoding" in headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if (has_body or kind) and kind != "application/json":
        raise _TurnedAway(415, UserError(f"The body is {kind or 'of no type'}; expected application/json."))


def _limited(receive: Receive) -> Receive:
    """Cut a body that grows beyond what was promised, or that promised nothing (chunked)."""
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MAX_BODY_BYTES:
            raise UserError(f"The body is larger than {MAX_BODY_BYTES} bytes.")
        return message

    return limited


async def _answer(error: PerdureError, status: int, scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"connection": "close"}  # the body may not have been read
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    response = problem(kind_of(error), error.message, status, exit_code=error.exit_code, headers=headers)
    await response(scope, receive, send)
