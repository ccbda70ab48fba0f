"""One request and its answer over HTTP: whole or as a stream, never longer than a limit, never redirected."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import zlib
from collections.abc import AsyncIterator

import httpx

from perdure.contracts.agent_ports import OnText
from perdure.contracts.base import JsonDict
from perdure.contracts.messages import CallPart
from perdure.errors import ModelFailed, ModelTrouble
from perdure.models.configured import ConfiguredModel
from perdure.models.protocol import Adapter, Malformed, Question, Reading, RefusedInStream
from perdure.models.trouble import broken, malformed, refusal, refused_in_stream, too_large

ANSWER_LIMIT_BYTES = 4_000_000
"""Of text and calls together. The largest windows hold about as much."""
_STREAM_FACTOR = 16
"""How much larger a stream may be than what it says: a token an event, a few hundred bytes each."""
_CONNECT_SECONDS = 10.0
_POOLS = 16
"""Connections are kept in so many places, by the agent that asks."""

logging.getLogger("httpx").setLevel(logging.WARNING)  # it notes every request


class TooLong(Exception):
    """More bytes came than are read."""


class Exchange:
    """Connections to models, kept open between turns. One event loop's: made there, closed there."""

    def __init__(self) -> None:
        self._clients: dict[tuple[bool, int], httpx.AsyncClient] = {}
        self._trust: ssl.SSLContext | None = None

    async def ask(
        self, adapter: Adapter, question: Question, key: str, limit_seconds: float, on_text: OnText | None
    ) -> Reading:
        """Ask once.

        Raises:
            ModelTrouble: no whole answer came; it may pass.
            ModelFailed: it was refused for good, or the answer is larger than ``ANSWER_LIMIT_BYTES``.
        """
        model = question.model
        try:
            async with asyncio.timeout(limit_seconds):
                body = await self._body(adapter, question, key, on_text)
            reading = adapter.read(body, question)
        except Malformed as error:
            raise malformed(model, error) from error
        except RefusedInStream as error:
            raise refused_in_stream(model, error, key) from None
        except TooLong:
            raise too_large(model, ANSWER_LIMIT_BYTES) from None
        except (httpx.HTTPError, TimeoutError) as error:
            raise broken(model, error, limit_seconds) from None
        if _size(reading) > ANSWER_LIMIT_BYTES:
            raise too_large(model, ANSWER_LIMIT_BYTES)
        return reading

    async def close(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            await client.aclose()

    async def _body(self, adapter: Adapter, question: Question, key: str, on_text: OnText | None) -> JsonDict:
        model = question.model
        sent = adapter.write(question)
        headers = {"content-type": "application/json", "content-length": str(sent.size_bytes), **adapter.headers(key)}
        asked = self._client(model, question.request.agent).stream(
            "POST", model.url + adapter.path, content=sent.chunks(), headers=headers
        )
        async with asked as response:
            if response.status_code != 200:
                raise await _refusal(model, response, key)
            if question.stream and "event-stream" in response.headers.get("content-type", ""):
                return await _assembled(response, adapter, on_text)
            return _object(b"".join([chunk async for chunk in _capped(response, ANSWER_LIMIT_BYTES * 2)]))

    def _client(self, model: ConfiguredModel, agent: str) -> httpx.AsyncClient:
        """The connections that an agent's requests go by; servers on this machine are reached without proxies.

        A pool looks at every connection for each request, so one for all was 8 % of a worker's CPU with fifty agents.
        """
        local = model.is_loopback and model.url.startswith("http:")
        place = (local, zlib.crc32(agent.encode()) % _POOLS)
        if place not in self._clients:
            if self._trust is None and not local:
                self._trust = httpx.create_ssl_context()  # certificates take 40 ms to load: once, and never for local
            self._clients[place] = httpx.AsyncClient(
                verify=False if local or self._trust is None else self._trust,
                trust_env=not local,
                timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),  # the whole has a limit of its own
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30),
            )
        return self._clients[place]


async def _refusal(model: ConfiguredModel, response: httpx.Response, key: str) -> ModelTrouble | ModelFailed:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > 10_000:
            break
    return refusal(model, response.status_code, response.headers, bytes(body), key)


async def _assembled(response: httpx.Response, adapter: Adapter, on_text: OnText | None) -> JsonDict:
    assembly = adapter.assembly()
    async for event in _events(response):
        text = assembly.add(event)
        if text and on_text:
            on_text(text)
    body = assembly.body()
    if body is None:
        raise httpx.RemoteProtocolError("the stream ended before the answer did")
    return body


async def _events(response: httpx.Response) -> AsyncIterator[JsonDict]:
    """The events of a stream, without the end mark. Split at line feeds only: JSON may hold other line separators."""
    rest = b""
    data: list[bytes] = []
    async for chunk in _capped(response, ANSWER_LIMIT_BYTES * _STREAM_FACTOR):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                if data != [b"[DONE]"]:
                    yield _object(b"\n".join(data))
                data = []


async def _capped(response: httpx.Response, limit_bytes: int) -> AsyncIterator[bytes]:
    seen = 0
    async for chunk in response.aiter_bytes():
        seen += len(chunk)
        if seen > limit_bytes:
            raise TooLong
        yield chunk


def _object(data: bytes) -> JsonDict:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise Malformed("it is empty" if not data.strip() else f"it is no JSON ({error})") from error
    if not isinstance(found, dict):
        raise Malformed(f"it is {type(found).__name__}, no object")
    return found


def _size(reading: Reading) -> int:
    return sum(
        len(part.raw) + len(str(part.arguments)) if isinstance(part, CallPart) else len(part.text)
        for part in reading.parts
    )
