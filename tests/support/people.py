"""People at the door: each with a token of their own, and what the door answers them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from perdure.contracts.http import JobView, Problem
from tests.support.installation import Installation
from tests.support.small import Small


@dataclass
class Person:
    """Somebody who speaks through a door of their own."""

    name: str
    door: httpx.Client

    def decide(self, digest: str, kind: str, *, decision_id: str = "", **more: Any) -> httpx.Response:
        """Decide on a digest; the whole answer, whatever it is."""
        body = {"kind": kind, "decision_id": decision_id or uuid.uuid4().hex[:12], **more}
        return self.door.post(f"/v1/plans/{digest}/decisions", json=body)

    def submit(self, small: Small, template: str) -> httpx.Response:
        """Ask for a job."""
        return self.door.post("/v1/jobs", json=small.request(template))

    def start(self, small: Small, template: str) -> JobView:
        """Submit a job that must be taken."""
        answer = self.submit(small, template)
        assert answer.status_code == 200, answer.text
        return JobView.model_validate(answer.json())


@contextmanager
def person(home: Installation, name: str, *may: str, groups: Sequence[str] = ("maintainers",)) -> Iterator[Person]:
    """Make a token for somebody. ``may``: submit, decide, read."""
    token = home.post("/v1/tokens", {"principal": name, "groups": list(groups), "may": list(may)})
    transport = httpx.HTTPTransport(uds=str(home.settings.socket))
    headers = {"Authorization": f"Bearer {token['text']}"}
    with httpx.Client(transport=transport, base_url="http://perdure", headers=headers, timeout=30) as door:
        yield Person(name, door)


@contextmanager
def owner(home: Installation) -> Iterator[Person]:
    """The owner of the installation, on a connection of their own."""
    transport = httpx.HTTPTransport(uds=str(home.settings.socket))
    with httpx.Client(transport=transport, base_url="http://perdure", timeout=30) as door:
        yield Person("owner", door)


def refusal(answer: httpx.Response) -> Problem:
    """Read a refusal."""
    assert answer.status_code >= 400, answer.text
    return Problem.model_validate(answer.json())
