"""A browser without scripts: cookies, forms and their fields, over real HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

import httpx

from tests.api.installed import Installed


class Visitor:
    """Somebody at the pages. Sends the headers that a browser sends with its own forms."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.origin = f"http://{client.base_url.netloc.decode()}"

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Follow a link."""
        return self.client.get(path, headers=headers, timeout=60)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        """Send a form; redirects are shown, not followed."""
        return self.client.post(path, data=fields, headers={"Origin": self.origin, **headers}, timeout=60)

    def sign_in(self, token: str, place: str = "/") -> httpx.Response:
        """Sign in with a token."""
        return self.post("/sign-in", {"token": token, "next": place})

    def decide(self, digest: str, kind: str, **more: str) -> httpx.Response:
        """Open a plan, fill its form in and send it."""
        form = form_of(self.get(f"/plans/{digest}"))
        return self.post(f"/plans/{digest}/decisions", {"form": form, "kind": kind, **more})


def form_of(answer: httpx.Response) -> str:
    """The nonce of the decision's form."""
    found = re.search(r'name="form" value="([^"]+)"', answer.text)
    assert found, answer.text[-3000:]
    return found[1]


def said_in(answer: httpx.Response) -> str:
    """What a page says, without its tags, in one line."""
    text = re.sub(r"<title>.*?</title>", " ", answer.text, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def kinds_in(answer: httpx.Response) -> list[str]:
    """The decisions that a page offers."""
    return re.findall(r'name="kind" value="([a-z_]+)"', answer.text)


@contextmanager
def visiting(world: Installed, token: str = "", **options: Any) -> Iterator[Visitor]:
    """A visitor, signed in when there is a token."""
    with world.http.tcp(**options) as client:
        visitor = Visitor(client)
        if token:
            assert visitor.sign_in(token).status_code == 303
        yield visitor
