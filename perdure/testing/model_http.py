"""HTTP/1.1 for the scripted model server: h11 on asyncio's streams, because a web framework cuts no connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import h11

READ_BYTES = 1024 * 1024
"""At once: requests of ten megabytes are the rule here."""


@dataclass
class Request:
    """One request, read whole."""

    method: str
    target: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes = field(repr=False)


@dataclass
class Reply:
    """What is sent back."""

    status: int
    chunks: AsyncIterator[bytes]
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut_after_bytes: int | None = None
    """The connection is cut after so many bytes of the body; 0: not even the status is sent."""


Handler = Callable[[Request], Awaitable[Reply]]


class Cut(Exception):
    """The connection ends here, as the script wants it."""


class Connection:
    """One client's connection, from its first request to its end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._wire = h11.Connection(h11.SERVER)

    async def serve(self, handler: Handler, on_end: Callable[[Request, str], Awaitable[None]]) -> None:
        """Answer every request; ``on_end`` is told how each ended: "answered", "cut" or "client left"."""
        try:
            while (request := await self._next_request()) is not None:
                await on_end(request, await self._answer(request, handler))
                self._wire.start_next_cycle()
        except (h11.ProtocolError, ConnectionError):
            self._writer.transport.abort()  # nothing more to say to it: by our wish or by its own
        finally:
            self._writer.close()

    async def _answer(self, request: Request, handler: Handler) -> str:
        """Send the reply, and give up as soon as nobody waits for it any more."""
        sending = asyncio.create_task(self._send(request, handler))
        leaving = asyncio.create_task(self._reader.read(READ_BYTES))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                if not leaving.result() and not sending.done():
                    return "client left"
                self._wire.receive_data(leaving.result())  # the next request came early
            await sending
        except Cut:
            return "cut"
        except ConnectionError:
            return "client left"
        finally:
            await _end(sending, leaving)
        return "answered"

    async def _next_request(self) -> Request | None:
        """The next request whole; ``None`` when the client has closed the connection."""
        head: h11.Request | None = None
        body: list[bytes] = []
        while True:
            event = self._wire.next_event()
            if event is h11.NEED_DATA:
                self._wire.receive_data(await self._reader.read(READ_BYTES))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode().lower(): value.decode("latin-1") for name, value in head.headers}
                return Request(head.method.decode(), head.target.decode(), headers, b"".join(body))
            else:
                return None

    async def _send(self, request: Request, handler: Handler) -> None:
        reply = await handler(request)
        if reply.cut_after_bytes == 0:
            raise Cut
        headers = {"content-type": reply.content_type, "transfer-encoding": "chunked", **reply.headers}
        await self._write(h11.Response(status_code=reply.status, headers=list(headers.items())))
        left = reply.cut_after_bytes
        async for chunk in reply.chunks:
            await self._write(h11.Data(data=chunk if left is None else chunk[:left]))
            if left is not None:
                left -= len(chunk)
                if left <= 0:
                    raise Cut
        if left is not None:
            raise Cut
        await self._write(h11.EndOfMessage())

    async def _write(self, event: h11.Event) -> None:
        data = self._wire.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """End what still runs; what it would say is of no use any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
