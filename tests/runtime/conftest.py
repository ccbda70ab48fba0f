"""What the tests of the runtime share: a data folder, one real server for those that talk to Temporal."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from perdure.runtime.connect import connect
from perdure.runtime.payload_keys import make_key
from perdure.settings import Settings
from perdure.testing.server import RunningServer, temporal_server


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an installation that is not there yet; nothing of the caller's environment."""
    return Settings(data=tmp_path / "d")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A real server; tests keep apart by random ids."""
    with temporal_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest_asyncio.fixture
async def client(server: RunningServer, settings: Settings) -> AsyncIterator[Client]:
    """A client with the keys of ``settings``."""
    make_key(settings.keys)
    yield await connect(replace(settings, temporal_address=server.address), role="test")


@pytest.fixture
def is_root() -> bool:
    """Whether file modes mean nothing to this process."""
    return os.geteuid() == 0
