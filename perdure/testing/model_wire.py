"""What an answer of a script looks like in OpenAI's and in Anthropic's protocol: one body, or events of a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from perdure.testing.model_play import Asked
from perdure.testing.model_script import Answer, Api, Call, Usage

JsonObject = dict[str, Any]

_PIECES = 40
"""A text is streamed in at most so many pieces."""


def body_of(answer: Answer, asked: Asked) -> bytes:
    """The whole body of an answer that is not streamed, or of an error."""
    if answer.raw is not None:
        return answer.raw.encode()
    if answer.status >= 400:
        return _json(error_body(asked.api, answer))
    return _json(_chat(answer, asked) if asked.api == "chat" else _message(answer, asked))


def events_of(answer: Answer, asked: Asked) -> Iterator[bytes]:
    """The events of a streamed answer, each a block of ``data:`` lines."""
    yield from _chat_events(answer, asked) if asked.api == "chat" else _message_events(answer, asked)


def error_body(api: Api, answer: Answer) -> JsonObject:
    """An error as the protocol has it."""
    text = answer.error or f"scripted status {answer.status}"
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = kinds.get(answer.status, "api_error" if answer.status >= 500 else "invalid_request_error")
    if api == "messages":
        return {"type": "error", "error": {"type": kind, "message": text}}
    return {"error": {"message": text, "type": kind, "param": None, "code": None}}


def text_of(answer: Answer) -> str:
    """The text that is answered."""
    written = answer.text if answer.data is None else json.dumps(answer.data)
    return written + "x" * answer.text_bytes


def arguments_of(call: Call) -> str:
    """A call's arguments as text."""
    return call.raw if call.raw is not None else json.dumps(call.arguments)


def _usage(answer: Answer, asked: Asked) -> Usage | None:
    if isinstance(answer.usage, Usage):
        return answer.usage
    if answer.usage == "unknown":
        return None
    said = len(text_of(answer)) + sum(len(arguments_of(call)) for call in answer.calls)
    return Usage(input=-(-len(asked.raw) // 4), output=-(-said // 4))


# Chat completions


def _chat(answer: Answer, asked: Asked) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": text_of(answer) or (None if answer.calls else "")}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [_chat_call(call) for call in answer.calls]
    choice = {"index": 0, "message": message, "finish_reason": _chat_finish(answer)}
    return {**_chat_head(asked, "chat.completion"), "choices": [choice], **_chat_usage(answer, asked)}


def _chat_events(answer: Answer, asked: Asked) -> Iterator[bytes]:
    head = _chat_head(asked, "chat.completion.chunk")

    def chunk(delta: JsonObject, finish: str | None = None) -> bytes:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(answer.thinking):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(text_of(answer)):
        yield chunk({"content": piece})
    if answer.error:
        yield _event(error_body("chat", answer))
        return
    for place, call in enumerate(answer.calls):
        yield chunk({"tool_calls": [{"index": place, **_chat_call(call, "")}]})
        for piece in _pieces(arguments_of(call)):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    yield chunk({}, _chat_finish(answer))
    usage = _chat_usage(answer, asked)
    if usage and (asked.body.get("stream_options") or {}).get("include_usage"):
        yield _event({**head, "choices": [], **usage})
    yield b"data: [DONE]\n\n"


def _chat_head(asked: Asked, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{asked.number}", "object": kind, "created": int(time.time()), "model": asked.model}


def _chat_call(call: Call, arguments: str | None = None) -> JsonObject:
    text = arguments_of(call) if arguments is None else arguments
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": text}}


def _chat_finish(answer: Answer) -> str:
    return answer.finish or ("tool_calls" if answer.calls else "stop")


def _chat_usage(answer: Answer, asked: Asked) -> JsonObject:
    usage = _usage(answer, asked)
    if usage is None:
        return {}
    counts = {"prompt_tokens": usage.input, "completion_tokens": usage.output}
    cached = {"prompt_tokens_details": {"cached_tokens": usage.cached}}
    return {"usage": {**counts, "total_tokens": usage.input + usage.output, **cached}}


# Messages


def _message(answer: Answer, asked: Asked) -> JsonObject:
    return {
        **_message_head(asked),
        "content": [_block(block, whole) for block, whole in _blocks(answer, asked)],
        "stop_reason": _message_finish(answer, asked),
        **_message_usage(answer, asked),
    }


def _message_events(answer: Answer, asked: Asked) -> Iterator[bytes]:
    usage = _message_usage(answer, asked)
    start = {key: {**counts, "output_tokens": 1} for key, counts in usage.items()}
    head = {**_message_head(asked), "content": [], "stop_reason": None, **start}
    yield _named("message_start", {"message": head})
    yield _named("ping", {})
    for place, (block, whole) in enumerate(_blocks(answer, asked)):
        yield _named("content_block_start", {"index": place, "content_block": _block(block, "")})
        for piece in _pieces(whole):
            yield _named("content_block_delta", {"index": place, "delta": _delta(block, piece)})
        yield _named("content_block_stop", {"index": place})
    if answer.error:
        yield _named("error", error_body("messages", answer))
        return
    ended = {"stop_reason": _message_finish(answer, asked), "stop_sequence": None}
    yield _named("message_delta", {"delta": ended, **usage})
    yield _named("message_stop", {})


def _message_head(asked: Asked) -> JsonObject:
    return {"id": f"msg_{asked.number}", "type": "message", "role": "assistant", "model": asked.model,
            "stop_sequence": None}  # fmt: skip


def _blocks(answer: Answer, asked: Asked) -> list[tuple[JsonObject, str]]:
    """Blocks without their text, each beside it. A JSON answer is the call that must be made, where one must be."""
    must = (asked.body.get("tool_choice") or {}).get("name")
    if must and answer.data is not None:
        return [({"type": "tool_use", "id": f"call_{asked.turn}", "name": must}, json.dumps(answer.data))]
    found: list[tuple[JsonObject, str]] = []
    if answer.thinking:
        found.append(({"type": "thinking", "signature": ""}, answer.thinking))
    if text_of(answer):
        found.append(({"type": "text"}, text_of(answer)))
    for call in answer.calls:
        found.append(({"type": "tool_use", "id": call.id, "name": call.tool}, arguments_of(call)))
    return found


def _block(block: JsonObject, whole: str) -> JsonObject:
    if block["type"] != "tool_use":
        return {**block, block["type"]: whole}
    try:
        return {**block, "input": json.loads(whole or "{}")}
    except ValueError:
        return {**block, "input": whole}


def _delta(block: JsonObject, piece: str) -> JsonObject:
    if block["type"] == "tool_use":
        return {"type": "input_json_delta", "partial_json": piece}
    return {"type": f"{block['type']}_delta", block["type"]: piece}


def _message_finish(answer: Answer, asked: Asked) -> str:
    has_calls = any(block["type"] == "tool_use" for block, _ in _blocks(answer, asked))
    return answer.finish or ("tool_use" if has_calls else "end_turn")


def _message_usage(answer: Answer, asked: Asked) -> JsonObject:
    usage = _usage(answer, asked)
    if usage is None:
        return {}
    fresh = usage.input - usage.cached
    return {
        "usage": {"input_tokens": fresh, "output_tokens": usage.output, "cache_read_input_tokens": usage.cached,
                  "cache_creation_input_tokens": 0},
    }  # fmt: skip


# Bytes


def _pieces(text: str) -> Iterator[str]:
    size = max(8, -(-len(text) // _PIECES))
    yield from (text[start : start + size] for start in range(0, len(text), size))


def _json(value: JsonObject) -> bytes:
    return json.dumps(value).encode()


def _event(value: JsonObject) -> bytes:
    return b"data: " + _json(value) + b"\n\n"


def _named(name: str, value: JsonObject) -> bytes:
    return f"event: {name}\n".encode() + _event({"type": name, **value})
