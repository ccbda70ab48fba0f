"""A connection to Temporal with the installation's data converter: the embedded server, or the named cluster."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import time
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.envconfig import ClientConfig

from perdure.errors import SetupError
from perdure.runtime.codec import data_converter
from perdure.runtime.state import is_running, read_state
from perdure.settings import Settings

SERVER_WAIT = timedelta(seconds=20)
LOOK_AGAIN_SECONDS = 0.02

_SAID = re.compile(r'(?:message|error): "((?:[^"\\]|\\.)*)"')
"""Where the SDK's transport, which prints its structures, says what the system said."""
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"')


async def connect(
    settings: Settings, *, role: str = "client", converter: DataConverter | None = None, wait: timedelta = SERVER_WAIT
) -> Client:
    """Return a client. It must be made and used on one event loop.

    Args:
        role: goes into the identity that Temporal's histories show.
        converter: instead of the one made from the keys of ``settings``.
        wait: how long an embedded server that is being started may take.

    Raises:
        SetupError: nothing is there to connect to, or the payload key is missing; says what to do.
    """
    converter = converter or data_converter(settings.keys)
    target = await _embedded(settings, wait) if settings.is_embedded else _cluster(settings)
    try:
        return await Client.connect(**target, data_converter=converter, identity=identity(role))
    except RuntimeError as error:
        raise SetupError(_explain(settings, str(target.get("target_host")), str(error))) from error


def identity(role: str) -> str:
    """Return a name for this process that no other process, earlier or later, has."""
    return f"perdure-{role}/{os.getpid()}/{secrets.token_hex(4)}"


def _cluster(settings: Settings) -> dict[str, Any]:
    """Temporal's own environment configuration (address, TLS, API key, profile), as its other clients read it."""
    target: dict[str, Any] = {**ClientConfig.load_client_connect_config()}
    if settings.temporal_address:
        target["target_host"] = settings.temporal_address
    target.setdefault("namespace", settings.temporal_namespace)
    return target


async def _embedded(settings: Settings, wait: timedelta) -> dict[str, Any]:
    """Wait until the supervisor says that the server is there.

    Never an address from a stale state: by now another program may listen on that port.
    """
    deadline = time.monotonic() + wait.total_seconds()
    while True:
        if not is_running(settings.data):
            raise SetupError(f"No server runs for {settings.data}. Start it with `perdure up`.")
        state = read_state(settings.data)
        if state is not None and state.temporal is not None and state.temporal.ready:
            return {"target_host": state.temporal.address, "namespace": settings.temporal_namespace}
        if time.monotonic() > deadline:
            raise SetupError(
                f"The Temporal server of {settings.data} did not come up within {wait.total_seconds():.0f} s. "
                f"Look into {settings.logs / 'temporal.log'}."
            )
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


def plain_reason(error: str) -> str:
    """What the system said, out of an error of the SDK's transport: "Connection refused"; else the text as it is."""
    if "(" not in error:
        return error
    found = _SAID.findall(error) or _NAMED.findall(error)
    return str(found[-1]) if found else error


def _explain(settings: Settings, address: str, error: str) -> str:
    error = plain_reason(error)
    if settings.is_embedded:
        return f"The embedded Temporal server at {address} does not answer ({error}). See {settings.logs}/temporal.log."
    return (
        f"Cannot reach Temporal at {address} ({error}). "
        "See that a server runs there and can be reached from here. Check TEMPORAL_ADDRESS, or unset it to use the "
        "embedded server (`perdure up`)."
    )
