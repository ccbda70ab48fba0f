"""Connecting: the embedded server when it is really there, a cluster when one is named."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest

from perdure.errors import SetupError
from perdure.runtime.connect import connect
from perdure.runtime.payload_keys import make_key
from perdure.runtime.state import LOCK_FILE, State, TemporalState, take_lock, write_state
from perdure.settings import Settings
from perdure.testing.server import RunningServer


@pytest.fixture
def keyed(settings: Settings) -> Settings:
    """Settings of a folder that has its key."""
    make_key(settings.keys)
    settings.data.chmod(0o700)
    return settings


def state_of(port: int, *, ready: bool = True) -> State:
    """A state that names a server on ``port``."""
    return State("0", "boot", os.getpid(), "now", "starting", TemporalState(port, 0, "x.invalid", ready))


async def test_nothing_to_connect_to_says_what_to_do(keyed: Settings) -> None:
    """Without a server the error names the command that starts one."""
    with pytest.raises(SetupError, match=r"No server runs for .*Start it with `perdure up`"):
        await connect(keyed)


async def test_stale_state_is_not_connected_to(keyed: Settings, server: RunningServer) -> None:
    """An address that an earlier run left may be another program's by now: it is not used."""
    write_state(keyed.data, state_of(server.server.port))
    with pytest.raises(SetupError, match="No server runs"):
        await connect(keyed)


async def test_server_that_is_being_started_is_waited_for(keyed: Settings, server: RunningServer) -> None:
    """While the supervisor brings the server up a client waits, and connects once it is there."""
    lock = take_lock(keyed.data / LOCK_FILE)
    assert lock is not None
    try:
        write_state(keyed.data, state_of(server.server.port, ready=False))
        waiting = asyncio.ensure_future(connect(keyed, role="worker"))
        done, _ = await asyncio.wait({waiting}, timeout=0.2)
        assert not done
        write_state(keyed.data, state_of(server.server.port))
        client = await waiting
        assert client.identity.startswith(f"perdure-worker/{os.getpid()}/")
        assert await client.service_client.check_health()
    finally:
        os.close(lock)


async def test_server_that_never_comes_is_named(keyed: Settings) -> None:
    """A server that does not come up in time is named with its log."""
    lock = take_lock(keyed.data / LOCK_FILE)
    assert lock is not None
    try:
        write_state(keyed.data, state_of(1, ready=False))
        with pytest.raises(SetupError, match=r"did not come up within 0 s.*temporal\.log"):
            await connect(keyed, wait=timedelta(milliseconds=50))
    finally:
        os.close(lock)


async def test_unreachable_cluster_names_address_and_setting(keyed: Settings) -> None:
    """A cluster that does not answer is named, and so is the setting that named it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    named = replace(keyed, temporal_address=f"127.0.0.1:{port}")
    with pytest.raises(SetupError, match=rf"Cannot reach Temporal at 127\.0\.0\.1:{port}.*Check TEMPORAL_ADDRESS"):
        await connect(named)


async def test_namespace_of_the_settings_is_used(keyed: Settings, server: RunningServer) -> None:
    """The namespace comes from the settings."""
    named = replace(keyed, temporal_address=server.address, temporal_namespace="elsewhere")
    assert (await connect(named)).namespace == "elsewhere"


async def test_missing_key_is_said_before_connecting(settings: Settings) -> None:
    """Without the payload key nothing is connected to."""
    with pytest.raises(SetupError, match=r"payload\.key is missing"):
        await connect(settings)


CLIENT = """
import asyncio, sys
from pathlib import Path
from perdure.runtime.connect import connect
from perdure.runtime.exit import leave
from perdure.settings import Settings
async def main():
    client = await connect(Settings(data=Path(sys.argv[1]), temporal_address=sys.argv[2]))
    print(await client.service_client.check_health(), end="")
asyncio.run(main())
leave(3)
"""


def test_client_process_ends_as_it_was_asked_to(keyed: Settings, server: RunningServer) -> None:
    """A process that used the client writes out what it printed and ends with its own exit code, every time."""
    argv = [sys.executable, "-P", "-c", CLIENT, str(keyed.data), server.address]
    ended = [subprocess.run(argv, capture_output=True, text=True) for _ in range(5)]
    assert [(done.returncode, done.stdout, done.stderr) for done in ended] == [(3, "True", "")] * 5


def test_worker_process_says_what_is_missing_and_ends(keyed: Settings) -> None:
    """A worker that finds no server ends with the exit code of a fault of the machine and one line that says so."""
    argv = [sys.executable, "-P", "-m", "perdure.runtime.run_worker", "--data", str(keyed.data)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == SetupError.exit_code
    assert done.stderr.splitlines()[-1] == f"No server runs for {keyed.data}. Start it with `perdure up`."


@pytest.mark.parametrize("module", ["control", "supervisor", "server", "installation", "payload_keys"])
def test_starting_needs_no_sdk(module: str) -> None:
    """Starting and looking at an installation loads neither Temporal's SDK nor any other heavy library."""
    heavy = "{'temporalio', 'cryptography', 'sqlalchemy', 'fastapi', 'pydantic', 'httpx'}"
    code = f"import sys, perdure.runtime.{module}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(("host", "said"), [("127.0.0.1", "Connection refused"), ("nosuch.invalid", "lookup")])
async def test_an_unreachable_cluster_is_said_in_words(keyed: Settings, host: str, said: str) -> None:
    """What happened, which address, what to do: nothing of the transport's own structures."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"{host}:{unused.getsockname()[1]}"
    with pytest.raises(SetupError) as caught:
        await connect(replace(keyed, temporal_address=address))
    message = caught.value.message
    assert message.startswith(f"Cannot reach Temporal at {address} (") and said in message
    assert "Check TEMPORAL_ADDRESS" in message
    assert "tonic" not in message and "{" not in message
