"""What the adapters of protocols share: a request on its way out, an answer on its way in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

from perdure.contracts.agent import FinishReason, ModelRequest, Usage
from perdure.contracts.base import JsonDict
from perdure.contracts.messages import CallPart, TextPart
from perdure.models.configured import ConfiguredModel

Typed = Literal["schema", "object", "prompt"]
"""How an answer by a schema is asked for: by the schema itself, as any JSON object, or only in words."""


CHUNK_BYTES = 256 * 1024


class Malformed(ValueError):
    """An answer is not what the protocol says."""


class RefusedInStream(Exception):
    """The provider reported an error in the middle of a stream."""


@dataclass(frozen=True)
class Question:
    """A request with all that an adapter needs to write it."""

    request: ModelRequest
    model: ConfiguredModel
    max_output_tokens: int
    typed: Typed = "schema"
    stream: bool = False


@dataclass(frozen=True)
class Body:
    """A request's body in pieces. It is sent in chunks, never joined: a long conversation would be copied each turn."""

    pieces: list[bytes]

    @cached_property
    def size_bytes(self) -> int:
        """Of the whole."""
        return sum(map(len, self.pieces))

    async def chunks(self) -> AsyncIterator[bytes]:
        """Chunks that are worth a system call each."""
        chunk: list[bytes] = []
        size = 0
        for piece in self.pieces:
            chunk.append(piece)
            size += len(piece)
            if size >= CHUNK_BYTES:
                yield b"".join(chunk)
                chunk, size = [], 0
        if chunk:
            yield b"".join(chunk)


@dataclass
class Reading:
    """An answer as it was read."""

    parts: tuple[TextPart | CallPart, ...]
    finish: FinishReason
    usage: Usage = field(default_factory=Usage)


class Assembly(Protocol):
    """Puts the events of a stream together."""

    def add(self, event: JsonDict) -> str:
        """Take one event; return the text that it brought, for watchers.

        Raises:
            Malformed: it is not what the protocol says.
            RefusedInStream: it is an error.
        """
        ...

    def body(self) -> JsonDict | None:
        """The whole answer as it would have come at once; ``None``: the stream was cut before its end."""
        ...


class Adapter(Protocol):
    """One protocol."""

    path: str
    """Beneath the model's address."""

    def headers(self, key: str) -> Mapping[str, str]:
        """Headers of every request; ``key`` may be empty."""
        ...

    def write(self, question: Question) -> Body:
        """The request's body."""
        ...

    def assembly(self) -> Assembly:
        """For one streamed answer."""
        ...

    def read(self, body: JsonDict, question: Question) -> Reading:
        """Read a whole answer.

        Raises:
            Malformed: it is not what the protocol says.
        """
        ...


def dump(value: Any) -> bytes:
    """JSON as it is sent."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def with_messages(head: JsonDict, fragments: Iterable[bytes]) -> Body:
    """A body whose last field is the list of messages, which are not converted again."""
    pieces = [dump(head)[:-1] + b',"messages":[']
    for fragment in fragments:
        pieces += (fragment, b",") if fragment else ()
    return Body([*pieces[: -1 if len(pieces) > 1 else None], b"]}"])


def wire_name(tool: str) -> str:
    """A tool's name as protocols allow it: ``files.read`` is ``files-read`` (our names have no hyphen)."""
    return tool.replace(".", "-")


def own_name(tool: str) -> str:
    """The inverse of :func:`wire_name`; a name that is none of ours comes back as it can be shown."""
    return tool.replace("-", ".")


def read_call(identity: Any, name: Any, arguments: Any, place: int) -> CallPart:
    """One call of an answer. What cannot be read is kept beside the reason."""
    if not isinstance(name, str) or not name:
        raise Malformed(f"a tool call has {name!r} for a name")
    call = CallPart(id=str(identity or f"call_{place}"), name=own_name(name))
    if isinstance(arguments, dict):
        return call.model_copy(update={"arguments": arguments})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        return call.model_copy(update={"raw": text, "fault": f"The arguments are no JSON: {error}."})
    if not isinstance(found, dict):
        fault = f"The arguments are {type(found).__name__}; expected a JSON object."
        return call.model_copy(update={"raw": text, "fault": fault})
    return call.model_copy(update={"arguments": found})


def with_own_ids(parts: Iterator[TextPart | CallPart]) -> tuple[TextPart | CallPart, ...]:
    """The same parts, the ids of calls unique in the message: some servers repeat them."""
    seen: set[str] = set()
    out: list[TextPart | CallPart] = []
    for part in parts:
        if isinstance(part, CallPart):
            while part.id in seen:
                part = part.model_copy(update={"id": f"{part.id}_{len(seen)}"})
            seen.add(part.id)
        out.append(part)
    return tuple(out)


def known_arguments(call: CallPart) -> JsonDict:
    """A call's arguments as they are sent back; servers parse them, so that unreadable ones go inside an object."""
    return {"unreadable": call.raw} if call.fault else call.arguments


def read_count(counts: Any, *path: str) -> int | None:
    """A number of tokens somewhere in a provider's counts; ``None`` when it is not there or no number."""
    for name in path:
        counts = counts.get(name) if isinstance(counts, dict) else None
    return counts if isinstance(counts, int) and not isinstance(counts, bool) and counts >= 0 else None
