"""Anthropic's messages. Typed answers come through a tool that the model must call: every model of theirs does that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from perdure.contracts.agent import FinishReason, ToolSpec, Usage
from perdure.contracts.base import JsonDict
from perdure.contracts.messages import CallPart, Message, ResultPart, TextPart
from perdure.models.fragments import Fragments
from perdure.models.protocol import (
    Assembly,
    Body,
    Malformed,
    Question,
    Reading,
    RefusedInStream,
    dump,
    known_arguments,
    read_call,
    read_count,
    wire_name,
    with_messages,
    with_own_ids,
)

VERSION = "2023-06-01"
ANSWER_TOOL = "answer"
_CACHED = {"cache_control": {"type": "ephemeral"}}
_EMPTY = "(nothing)"
"""The API refuses empty texts."""

_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}


class Anthropic:
    """Writes and reads messages of Anthropic's protocol."""

    path = "/v1/messages"
    dialect = "anthropic"

    def __init__(self, fragments: Fragments) -> None:
        self._fragments = fragments

    def headers(self, key: str) -> Mapping[str, str]:
        """The protocol's version, and the key."""
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def write(self, question: Question) -> Body:
        """One body. System messages go beside the others; neighbours of one role become one message."""
        spoken = [each for each in question.request.messages if each.role != "system"]
        return with_messages(self._head(question), self._turns(spoken))

    def read(self, body: JsonDict, question: Question) -> Reading:
        """Read the blocks; reasoning is left out, and the call that holds a typed answer becomes text."""
        blocks = body.get("content")
        if not isinstance(blocks, list):
            raise Malformed("there is no content in it")
        parts = with_own_ids(_parts(blocks))
        finish = _FINISH.get(str(body.get("stop_reason")), "stop")
        if question.request.answer_schema is not None:
            parts, finish = _typed(parts, finish)
        return Reading(parts, finish, _usage(body.get("usage")))

    def assembly(self) -> Assembly:
        """For one stream of events."""
        return MessageAssembly()

    def _head(self, question: Question) -> JsonDict:
        model, request = question.model, question.request
        head: JsonDict = {**model.options, "model": model.model, "max_tokens": question.max_output_tokens}
        system = [{"type": "text", "text": each.text or _EMPTY} for each in request.messages if each.role == "system"]
        if system:
            head["system"] = [*system[:-1], {**system[-1], **_CACHED}]
        if question.stream:
            head["stream"] = True
        tools = [_tool(spec) for spec in request.tools]
        if request.answer_schema is not None:
            tools.append(
                {"name": ANSWER_TOOL, "description": "Gives the answer.", "input_schema": request.answer_schema}
            )
            head["tool_choice"] = {"type": "any"} if request.tools else {"type": "tool", "name": ANSWER_TOOL}
        return {**head, "tools": tools} if tools else head

    def _turns(self, messages: list[Message]) -> Iterator[bytes]:
        """Messages of the protocol: blocks of neighbours of one role together, the last block marked for the cache."""
        role, blocks = "", list[bytes]()
        for place, message in enumerate(messages):
            theirs = "assistant" if message.role == "assistant" else "user"
            if theirs != role and blocks:
                yield _turn(role, blocks)
                blocks = []
            role = theirs
            is_last = place == len(messages) - 1
            blocks.append(_marked(message) if is_last else self._fragments.of(self.dialect, message, _convert))
        if blocks:
            yield _turn(role, blocks)


class MessageAssembly:
    """Puts events together: blocks are opened, filled and closed, usage comes in two parts."""

    def __init__(self) -> None:
        self._blocks: dict[int, JsonDict] = {}
        self._typed: dict[int, list[str]] = {}
        self._usage: JsonDict = {}
        self._finish: str | None = None
        self._ended = False

    def add(self, event: JsonDict) -> str:
        """Take one event; return its text."""
        kind = event.get("type")
        if kind == "error":
            error = event.get("error")
            raise RefusedInStream(str(error.get("message") if isinstance(error, dict) else error))
        if kind == "message_start":
            self._count(_object(event, "message"))
        elif kind == "content_block_start":
            self._blocks[_index(event)] = dict(_object(event, "content_block"))
        elif kind == "content_block_delta":
            return self._fill(_index(event), _object(event, "delta"))
        elif kind == "message_delta":
            self._finish = _object(event, "delta").get("stop_reason") or self._finish
            self._count(event)
        elif kind == "message_stop":
            self._ended = True
        return ""

    def body(self) -> JsonDict | None:
        """The answer whole; ``None``: it never stopped."""
        if not self._ended:
            return None
        for place, pieces in self._typed.items():
            self._blocks[place]["input"] = "".join(pieces)
        return {"content": list(self._blocks.values()), "stop_reason": self._finish, "usage": self._usage}

    def _count(self, holder: JsonDict) -> None:
        counts = _object(holder, "usage", needed=False)
        self._usage |= {name: value for name, value in counts.items() if value is not None}

    def _fill(self, place: int, delta: JsonDict) -> str:
        if place not in self._blocks:
            raise Malformed("a block is filled that was not opened")
        if delta.get("type") == "input_json_delta":
            self._typed.setdefault(place, []).append(str(delta.get("partial_json") or ""))
            return ""
        text = delta.get("text") if delta.get("type") == "text_delta" else None
        if not isinstance(text, str):
            return ""
        block = self._blocks[place]
        block["text"] = block.get("text", "") + text
        return text


def _parts(blocks: list[Any]) -> Iterator[TextPart | CallPart]:
    for place, block in enumerate(blocks):
        if not isinstance(block, dict):
            raise Malformed("a block is no object")
        if block.get("type") == "text" and block.get("text"):
            yield TextPart(text=str(block["text"]))
        elif block.get("type") == "tool_use":
            yield read_call(block.get("id"), block.get("name"), block.get("input") or {}, place)


def _typed(
    parts: tuple[TextPart | CallPart, ...], finish: FinishReason
) -> tuple[tuple[TextPart | CallPart, ...], FinishReason]:
    for part in parts:
        if isinstance(part, CallPart) and part.name == ANSWER_TOOL:
            text = part.raw if part.fault else json.dumps(part.arguments, ensure_ascii=False)
            return (TextPart(text=text),), "stop" if finish == "calls" else finish
    return parts, finish


def _convert(message: Message) -> bytes:
    return b",".join(dump(block) for block in _blocks(message))


def _marked(message: Message) -> bytes:
    """The same with a mark on its last block: the provider keeps all up to there for the next turn."""
    blocks = list(_blocks(message))
    return b",".join(dump(block) for block in [*blocks[:-1], {**blocks[-1], **_CACHED}])


def _blocks(message: Message) -> Iterator[JsonDict]:
    if not message.parts:
        yield {"type": "text", "text": _EMPTY}
    for part in message.parts:
        if isinstance(part, TextPart):
            yield {"type": "text", "text": part.text if part.text.strip() else _EMPTY}
        elif isinstance(part, CallPart):
            yield {"type": "tool_use", "id": part.id, "name": wire_name(part.name), "input": known_arguments(part)}
        else:
            yield _result(part)


def _result(part: ResultPart) -> JsonDict:
    block: JsonDict = {"type": "tool_result", "tool_use_id": part.call_id, "content": part.text or _EMPTY}
    return {**block, "is_error": True} if part.status in ("error", "denied", "unknown") else block


def _turn(role: str, blocks: list[bytes]) -> bytes:
    return b'{"role":"' + role.encode() + b'","content":[' + b",".join(blocks) + b"]}"


def _tool(spec: ToolSpec) -> JsonDict:
    return {"name": wire_name(spec.name), "description": spec.description, "input_schema": spec.parameters}


def _object(value: JsonDict, name: str, *, needed: bool = True) -> JsonDict:
    found = value.get(name)
    if found is None and not needed:
        return {}
    if not isinstance(found, dict):
        raise Malformed(f"{name} is {type(found).__name__}")
    return found


def _index(event: JsonDict) -> int:
    found = event.get("index")
    if not isinstance(found, int):
        raise Malformed("a block has no index")
    return found


def _usage(counts: Any) -> Usage:
    """Input counts what was cached too: the protocol counts it apart."""
    fresh = read_count(counts, "input_tokens")
    cached = read_count(counts, "cache_read_input_tokens") or 0
    written = read_count(counts, "cache_creation_input_tokens") or 0
    return Usage(
        input_tokens=None if fresh is None else fresh + cached + written,
        output_tokens=read_count(counts, "output_tokens"),
        cached_tokens=cached,
    )
