"""A scripted model server: real HTTP on loopback, OpenAI's and Anthropic's protocols, answers written beforehand.

    with model_server({"answers": [{"text": "Four."}]}) as server:
        ...  # point a model's base_url at server.openai_url or server.anthropic_url
        assert server.requests()[0].body["messages"][-1]["content"] == "What is two and two?"

In a process of its own (``perdure models serve-script FILE``, or :func:`model_process` in a test) it outlives a worker
that is killed. The language of scripts: ``docs/how-to/test-with-a-scripted-model.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit

from perdure.errors import SetupError
from perdure.testing.model_handle import ModelServer
from perdure.testing.model_http import READ_BYTES, Connection, Reply, Request
from perdure.testing.model_play import Answering, Asked, Play
from perdure.testing.model_script import Answer, Api, Script, load_script
from perdure.testing.model_wire import body_of, error_body, events_of

KEPT_BYTES = 64 * 1024 * 1024
"""Bodies are kept in memory up to this sum; then the oldest are forgotten (``--record`` writes all)."""

_APIS: dict[str, Api] = {"/chat/completions": "chat", "/messages": "messages"}
LOOPBACK = "127.0.0.1"


@dataclass
class ScriptedModels:
    """Answers requests by a script (or a test's function) and records them."""

    answering: Answering
    script: Script
    record: IO[bytes] | None = None
    """Every request is written here as one JSON line before it is answered."""

    def __post_init__(self) -> None:
        self.asked: list[Asked] = []
        self._kept = 0
        self._forgotten = 0
        self._changed = asyncio.Condition()
        self._held: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._open: dict[int, Asked] = {}

    async def handle(self, request: Request) -> Reply:
        """Answer one request of HTTP, to the model or to the recorder."""
        url = urlsplit(request.target)
        path = url.path.removeprefix("/v1")
        if request.method == "POST" and path in _APIS:
            return await self._model(request, _APIS[path])
        if request.method == "GET" and path == "/models":
            return _reply({"object": "list", "data": [{"id": name, "object": "model"} for name in self.script.models]})
        if request.method == "GET" and path == "/requests":
            return await self._recorded({key: values[-1] for key, values in parse_qs(url.query).items()})
        if request.method == "POST" and path.startswith("/release/"):
            self._held[path.removeprefix("/release/")].set()
            return _reply({})
        known = "POST /v1/chat/completions, POST /v1/messages, GET /v1/models, GET /requests, POST /release/NAME"
        return _reply({"error": {"message": f"No {request.method} {url.path} here. Known: {known}."}}, 404)

    async def ended(self, request: Request, how: str) -> None:
        """Note how the answer to a request ended."""
        asked = self._open.pop(id(request), None)
        if asked is not None:
            async with self._changed:
                asked.ended = how
                self._changed.notify_all()

    async def _model(self, request: Request, api: Api) -> Reply:
        asked = Asked(number=len(self.asked) + 1, api=api, raw=request.body, at=time.time())
        if self.script.key and not _has_key(request, self.script.key):
            return _reply(error_body(api, Answer(status=401, error="This key is not known here.")), 401)
        self._open[id(request)] = asked
        answer = self.answering(asked)
        await self._note(asked)
        await asyncio.sleep(answer.delay_ms / 1000)
        if answer.hold:
            await self._held[answer.hold].wait()
        return self._model_reply(answer, asked)

    def _model_reply(self, answer: Answer, asked: Asked) -> Reply:
        streamed = asked.stream and answer.status < 400
        chunks = list(events_of(answer, asked)) if streamed and answer.raw is None else [body_of(answer, asked)]
        held = self._held[answer.hold_half] if streamed and answer.hold_half else None
        return Reply(
            answer.status,
            _chunks(chunks, answer.pace_ms, held),
            "text/event-stream" if streamed else "application/json",
            {} if answer.retry_after is None else {"retry-after": str(answer.retry_after)},
            answer.cut_after_bytes,
        )

    async def _note(self, asked: Asked) -> None:
        async with self._changed:
            self.asked.append(asked)
            if self.record:
                self.record.write(json.dumps(_line(asked)).encode() + b"\n")
                self.record.flush()
            self._kept += len(asked.raw)
            while self._kept > KEPT_BYTES:
                self._kept -= len(self.asked[self._forgotten].raw)
                self.asked[self._forgotten].forget()
                self._forgotten += 1
            self._changed.notify_all()

    async def _recorded(self, query: dict[str, str]) -> Reply:
        """``after=N``: only later ones · ``wait=N``, ``ends=N``: when N are there, or ended · ``bodies=no``."""
        count, ends = int(query.get("wait", 0)), int(query.get("ends", 0))
        async with self._changed:
            await self._changed.wait_for(
                lambda: len(self.asked) >= count and sum(1 for each in self.asked if each.ended) >= ends
            )
        found = self.asked[int(query.get("after", 0)) :]
        return _reply({"requests": [_line(each, bodies=query.get("bodies") != "no") for each in found]})


def _line(asked: Asked, *, bodies: bool = True) -> dict[str, Any]:
    """A request as the recorder gives it. Keys are never in it."""
    line = {"number": asked.number, "at": asked.at, "api": asked.api, "turn": asked.turn, "bytes": asked.size_bytes,
            "model": asked.model, "stream": asked.stream, "ended": asked.ended}  # fmt: skip
    return {**line, "body": asked.body} if bodies else line


def _has_key(request: Request, key: str) -> bool:
    return f"Bearer {key}" == request.headers.get("authorization") or key == request.headers.get("x-api-key")


def _reply(value: dict[str, Any], status: int = 200) -> Reply:
    return Reply(status, _chunks([json.dumps(value).encode()]))


async def _chunks(chunks: list[bytes], pace_ms: int = 0, held: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    for place, chunk in enumerate(chunks):
        if place and pace_ms:
            await asyncio.sleep(pace_ms / 1000)
        if held and place == len(chunks) // 2:
            await held.wait()
        yield chunk


async def serve(
    source: Path | dict[str, Any] | Script | Answering,
    *,
    port: int = 0,
    record: Path | None = None,
    ready: Callable[[str], None] = lambda url: None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve on loopback until ``stop``; ``ready`` is told the server's address once it listens.

    Raises:
        UserError: the script is none.
        SetupError: the port is taken.
    """
    script = Script() if callable(source) else load_script(source)
    with record.open("ab") if record else _nothing() as file:
        models = ScriptedModels(source if callable(source) else Play(script), script, file)

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.CancelledError):  # the server ends: asyncio would log it as a fault
                await Connection(reader, writer).serve(models.handle, models.ended)

        try:
            server = await asyncio.start_server(connected, LOOPBACK, port, limit=READ_BYTES)
        except OSError as error:
            raise SetupError(f"Cannot listen on {LOOPBACK}:{port} ({error.strerror}). Choose another port.") from error
        ready(f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}")
        try:
            await (stop or asyncio.Event()).wait()
        finally:
            server.close()


@contextmanager
def _nothing() -> Iterator[None]:
    yield None


@contextmanager
def model_server(
    source: Path | dict[str, Any] | Script | Answering,
    *,
    record: Path | None = None,
    limit: timedelta = timedelta(seconds=20),
) -> Iterator[ModelServer]:
    """Serve in a thread of this process, on a free port, until the block ends.

    ``source`` may also be a function from a request (:class:`Asked`) to an :class:`Answer`.
    """
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    urls: list[str] = []
    faults: list[BaseException] = []
    listening = threading.Event()

    def told(url: str) -> None:
        urls.append(url)
        listening.set()

    def work() -> None:
        try:
            asyncio.set_event_loop(loop)
            loop.run_until_complete(serve(source, record=record, ready=told, stop=stop))
        except Exception as error:
            faults.append(error)
        finally:
            _close(loop)
            listening.set()

    thread = threading.Thread(target=work, name="scripted-models", daemon=True)
    thread.start()
    listening.wait(limit.total_seconds())
    if not urls:
        raise faults[0] if faults else SetupError("The scripted model server did not start in time.")
    try:
        yield ModelServer(urls[0])
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(limit.total_seconds())


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End the connections that are still open, then the loop."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
