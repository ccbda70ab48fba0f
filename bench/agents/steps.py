"""The steps of the loop that is written by hand: what goes out lies in SQLite, written before a step ends."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import httpx
from temporalio import activity

from bench.agents.bare import JSON, LIMITS, TOOLS

T = TypeVar("T")

_BEAT_SECONDS = 2.5


class Steps:
    """Activities; each may run twice and writes the same row."""

    def __init__(self, url: str, folder: Path, database: Path) -> None:
        self._url, self._folder = url, folder
        self._client = httpx.AsyncClient(timeout=None, limits=LIMITS)
        self._rows = sqlite3.connect(database)
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=FULL")
        self._rows.execute(
            "CREATE TABLE IF NOT EXISTS messages (run TEXT, number INTEGER, body BLOB, PRIMARY KEY (run, number))"
        )

    @activity.defn
    async def begin(self, run: str, task: str) -> int:
        """Write the task."""
        self._write(run, 0, {"role": "user", "content": task})
        return 0

    @activity.defn
    async def ask(self, run: str, number: int) -> int:
        """Send all before ``number``, write the answer there; return how many calls it asks for."""
        return await _beating(self._ask(run, number))

    @activity.defn
    async def read(self, run: str, answer: int, place: int) -> int:
        """Run one call of an answer, write what it gave behind it."""
        return await _beating(self._read(run, answer, place))

    async def _ask(self, run: str, number: int) -> int:
        query = "SELECT body FROM messages WHERE run = ? AND number < ? ORDER BY number"
        messages = b",".join(row[0] for row in self._rows.execute(query, (run, number)))
        head = json.dumps({"model": "scripted", "tools": TOOLS}).encode()[:-1]
        body = head + b', "messages":[' + messages + b"]}"
        answered = await self._client.post(f"{self._url}/v1/chat/completions", content=body, headers=JSON)
        answered.raise_for_status()
        message = answered.json()["choices"][0]["message"]
        self._write(run, number, message)
        return len(message.get("tool_calls") or [])

    async def _read(self, run: str, answer: int, place: int) -> int:
        query = "SELECT body FROM messages WHERE run = ? AND number = ?"
        call = json.loads(self._rows.execute(query, (run, answer)).fetchone()[0])["tool_calls"][place]
        text = (self._folder / json.loads(call["function"]["arguments"])["path"]).read_text()
        self._write(run, answer + 1 + place, {"role": "tool", "tool_call_id": call["id"], "content": text})
        return len(text)

    def _write(self, run: str, number: int, message: dict[str, Any]) -> None:
        body = json.dumps(message, separators=(",", ":")).encode()
        with self._rows:
            self._rows.execute("INSERT OR REPLACE INTO messages VALUES (?, ?, ?)", (run, number, body))


async def _beating(work: Coroutine[Any, Any, T]) -> T:
    """Heartbeat while a step takes its time."""
    task = asyncio.ensure_future(work)
    while not (await asyncio.wait({task}, timeout=_BEAT_SECONDS))[0]:
        activity.heartbeat()
    return task.result()
