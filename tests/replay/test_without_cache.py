"""Workflows that are replayed at every single task take the same way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.runtime.renderer import Renderer
from perdure.store.ledger import Ledger
from tests.hostile.forging import say
from tests.support.installation import Installation, installation, wait_until
from worker import build_worker


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Installation]:
    """An installation without a worker."""
    with installation(tmp_path / "home") as running:
        yield running


async def test_job_ends_right_when_no_workflow_is_remembered(home: Installation, tmp_path: Path) -> None:
    """With no cache each task replays the whole history; changes are asked for, the next plan is applied once."""
    ledger, renderer = Ledger.open(home.settings.ledger), Renderer()
    client = await home.temporal()
    try:
        async with build_worker(client, home.settings, ledger, renderer, max_cached_workflows=0):
            saying = await asyncio.to_thread(say, home, tmp_path / "said", "replayed")
            first = await asyncio.to_thread(home.waiting, saying.job)
            await asyncio.to_thread(home.decide, first.digest, "request_changes", comment="again")
            await asyncio.to_thread(_wait_for_another, home, saying.job, first.digest)
            await asyncio.to_thread(home.approve, saying.job)
            await asyncio.to_thread(home.done, saying.job)
    finally:
        renderer.close()
        ledger.close()
    saying.assert_said_once()


def _wait_for_another(home: Installation, job: JobView, digest: str) -> None:
    def is_there() -> bool:
        now = home.job(job)
        return now.digest != digest and now.phase is JobPhase.waiting

    wait_until(is_there, "the next plan")
