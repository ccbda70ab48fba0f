"""What routes are given: the client, and who is asking."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request

from perdure.api.doors import PRINCIPAL
from perdure.client import Client
from perdure.policy.authorize import Principal


def _client(request: Request) -> Client:
    return cast(Client, request.app.state.client)


def _principal(request: Request) -> Principal:
    """Whom the door has let in. A request that came through no door has no principal and fails here."""
    return cast(Principal, request.scope[PRINCIPAL])


Asked = Annotated[Client, Depends(_client)]
Asking = Annotated[Principal, Depends(_principal)]
