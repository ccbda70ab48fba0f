"""The scripted model of the work load, a process of its own: ``python -m bench.agents.model LOG``.

Prints its address. Every request becomes one line of LOG as it arrives: time, turn, bytes, run, and 1 for a summary.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from io import TextIOWrapper
from pathlib import Path

from bench.agents.load import MARK, Wanted, answer, read_request
from perdure.testing.model_http import READ_BYTES, Connection, Reply, Request


class Model:
    """Answers at once, but for first and last answers of held runs: they begin together, and none ends before all."""

    def __init__(self, log: TextIOWrapper) -> None:
        self._log = log
        self._gates = {"/begin": asyncio.Event(), "/end": asyncio.Event()}

    async def handle(self, request: Request) -> Reply:
        """Answer one request of HTTP."""
        if request.target == "/hold":
            for gate in self._gates.values():
                gate.clear()
            return _reply({})
        if request.target in self._gates:
            self._gates[request.target].set()
            return _reply({})
        wanted = read_request(request.body)
        about = (f"{time.time():.6f}", wanted.turn, len(request.body), wanted.load.run, int(wanted.is_summary))
        self._log.write(" ".join(map(str, about)) + "\n")
        self._log.flush()
        if wanted.load.is_held and wanted.turn in (0, wanted.load.turns):
            await self._gates["/end" if wanted.turn else "/begin"].wait()
        return _reply(_completion(wanted, request))


async def ended(request: Request, how: str) -> None:
    """Nothing is kept of a request."""


def _completion(wanted: Wanted, request: Request) -> dict[str, object]:
    is_ours = b'"files-write"' in request.body[:READ_BYTES]  # only Perdure's agent can write, and must
    message = answer(wanted, with_note=is_ours)
    if wanted.is_summary:
        message = {"role": "assistant", "content": f"{MARK}: parts up to {wanted.turn} were read."}
    finish = "tool_calls" if "tool_calls" in message else "stop"
    usage = {"prompt_tokens": len(request.body) // 4, "completion_tokens": 20}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion", "model": "scripted", "choices": [choice], "usage": usage}


def _reply(value: dict[str, object]) -> Reply:
    async def chunks() -> AsyncIterator[bytes]:
        yield json.dumps(value).encode()

    return Reply(200, chunks())


async def main(path: Path) -> None:
    """Serve until the process is ended."""
    with path.open("a") as log:
        model = Model(log)

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await Connection(reader, writer).serve(model.handle, ended)

        server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=READ_BYTES)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
