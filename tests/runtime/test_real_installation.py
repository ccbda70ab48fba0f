"""The whole installation with its real worker and API."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from perdure.contracts.http import Health
from perdure.runtime.control import Status, down, status, up
from perdure.settings import Settings
from perdure.testing.server import RunningServer
from tests.runtime.waiting import wait_gone, wait_until


@pytest.fixture
def installation(settings: Settings) -> Iterator[Settings]:
    """Settings whose installation is taken down after the test."""
    yield settings
    down(settings, limit=timedelta(seconds=10))


def pids(now: Status) -> dict[str, int]:
    """Pid of each process by name."""
    return {process.name: process.pid for process in now.processes}


def health(settings: Settings) -> Health:
    """What the API says of itself."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(settings.socket)), timeout=10) as client:
        return Health.model_validate_json(client.get("http://perdure/v1/health").raise_for_status().content)


def test_every_process_may_be_killed(installation: Settings) -> None:
    """Server, worker and API come up, each comes back when it is killed, and none is left after ``down``."""
    now = up(installation)
    assert list(pids(now)) == ["supervisor", "temporal", "worker", "api"]
    assert health(installation)
    for name in ("worker", "api", "temporal"):
        before = pids(status(installation))
        os.kill(before[name], signal.SIGKILL)
        wait_until(lambda: _is_back(installation, name, before[name]), f"{name} is back")  # noqa: B023
    assert health(installation)
    running = pids(status(installation))
    assert running["supervisor"] == pids(now)["supervisor"]
    assert down(installation)
    wait_gone(running.values())
    for database in ("temporal.db", "ledger.db"):
        assert _is_sound(installation.data / database)


def _is_back(settings: Settings, name: str, before: int) -> bool:
    now = status(settings)
    return now.phase == "ready" and pids(now)[name] != before


def _is_sound(path: Path) -> bool:
    with sqlite3.connect(path) as database:
        found = database.execute("PRAGMA integrity_check").fetchone()
    database.close()
    return found == ("ok",)


def test_cluster_needs_no_server_of_ours(
    installation: Settings, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``TEMPORAL_ADDRESS`` no server is started, and worker and API work against that cluster."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    cluster = replace(installation, temporal_address=server.address)
    now = up(cluster)
    assert list(pids(now)) == ["supervisor", "worker", "api"]
    assert now.temporal == server.address
    assert health(cluster)
    assert not (cluster.data / "temporal.db").exists()
