"""Executions are listed by pages, for audits over thousands of them."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client

from perdure.runtime import messenger as room
from perdure.runtime.messenger import Messenger


async def test_every_execution_is_listed_with_its_fate(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several pages: what runs is open, what ended is closed, and what runs again after an end is open."""
    monkeypatch.setattr(room, "_PAGE", 2)
    names = [f"listed/{uuid.uuid4().hex[:8]}" for _ in range(5)]

    async def start(name: str) -> Any:
        return await client.start_workflow("Unknown", id=name, task_queue="nobody", run_timeout=timedelta(minutes=5))

    handles = [await start(name) for name in names]
    for handle in handles[:2]:
        await handle.terminate()
    await start(names[1])

    async def connected() -> Client:
        return client

    messenger = Messenger(connected)
    wanted = dict(zip(names, ["closed", "open", "open", "open", "open"], strict=True))
    found: dict[str, str] = {}
    for _ in range(200):  # lists follow a moment later
        found = {name: fate for name, fate in (await messenger.describe_all()).items() if name in wanted}
        if found == wanted:
            break
        await asyncio.sleep(0.1)
    assert found == wanted
    for handle in handles[2:]:
        await handle.terminate()
    await client.get_workflow_handle(names[1]).terminate()
