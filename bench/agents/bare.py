"""The bare loop: ``python -m bench.agents.bare URL FOLDER``. Nothing is kept; it dies with its process.

Reads loads from standard input, one a line (run, turns, hold), and writes the run's name when one is done.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import httpx

from bench.agents.load import Load

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "files-read",
            "description": "Read a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]
LIMITS = httpx.Limits(max_connections=200, max_keepalive_connections=200)


async def run(client: httpx.AsyncClient, url: str, folder: Path, load: Load) -> None:
    """Ask and read until the model asks for nothing more; messages are kept as the bytes that go out."""
    messages = [_dump({"role": "user", "content": load.task})]
    while True:
        head = _dump({"model": "scripted", "tools": TOOLS})[:-1]
        body = head + b',"messages":[' + b",".join(messages) + b"]}"
        answered = await client.post(f"{url}/v1/chat/completions", content=body, headers=JSON)
        message = answered.json()["choices"][0]["message"]
        messages.append(_dump(message))
        for call in message.get("tool_calls") or []:
            text = (folder / json.loads(call["function"]["arguments"])["path"]).read_text()
            messages.append(_dump({"role": "tool", "tool_call_id": call["id"], "content": text}))
        if not message.get("tool_calls"):
            return


JSON = {"content-type": "application/json"}


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


async def main(url: str, folder: Path) -> None:
    """Do what standard input says."""
    async with httpx.AsyncClient(timeout=None, limits=LIMITS) as client, asyncio.TaskGroup() as group:
        while line := await asyncio.to_thread(sys.stdin.readline):
            name, turns, hold = line.split()
            group.create_task(_one(client, url, folder, Load(name, int(turns), hold == "1")))


async def _one(client: httpx.AsyncClient, url: str, folder: Path, load: Load) -> None:
    await run(client, url, folder, load)
    print(load.run, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
