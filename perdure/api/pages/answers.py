"""Responses of the pages: HTML that no other page may frame, load or keep."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

COOKIE, SECURE_COOKIE = "perdure_session", "__Host-perdure_session"
"""Without and with TLS. A browser takes the second one only over TLS, from this host alone."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": with that a browser sends "Origin: null" with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def page(text: str, status: int = 200) -> Response:
    """A whole page."""
    return HTMLResponse(text, status, HEADERS)


def flowing_page(pieces: Iterator[str]) -> Response:
    """A page that is sent as it is written: nothing of it is too large."""
    return StreamingResponse(pieces, media_type="text/html", headers=HEADERS)


def stylesheet(text: str) -> Response:
    """The stylesheet."""
    return Response(text, media_type="text/css", headers=HEADERS)


def go_to(path: str) -> Response:
    """Send the browser on, by GET."""
    return RedirectResponse(path, 303, HEADERS)


def keep_cookie(response: Response, key: str, *, is_secure: bool) -> None:
    """Let the browser keep a session: no script reads it, no other site's request carries it."""
    name = SECURE_COOKIE if is_secure else COOKIE
    response.set_cookie(name, key, path="/", secure=is_secure, httponly=True, samesite="strict")


def drop_cookies(response: Response) -> None:
    """Let the browser forget its session."""
    for name, is_secure in ((COOKIE, False), (SECURE_COOKIE, True)):
        response.delete_cookie(name, path="/", secure=is_secure, httponly=True, samesite="strict")
