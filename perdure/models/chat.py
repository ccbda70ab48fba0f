"""OpenAI's chat completions, as OpenAI and every compatible server speak them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perdure.contracts.agent import FinishReason, ToolSpec, Usage
from perdure.contracts.base import JsonDict
from perdure.contracts.messages import CallPart, Message, TextPart
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
from perdure.models.typed import is_strict, plea

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "filtered",
}


class Chat:
    """Writes and reads chat completions."""

    path = "/chat/completions"
    dialect = "chat"

    def __init__(self, fragments: Fragments) -> None:
        self._fragments = fragments

    def headers(self, key: str) -> Mapping[str, str]:
        """The key as a bearer token."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def write(self, question: Question) -> Body:
        """One body; messages that were sent before are joined, not converted."""
        fragments = [self._fragments.of(self.dialect, each, self._convert) for each in question.request.messages]
        said = self._plea(question)
        if said:
            fragments.insert(_systems(question.request.messages), dump({"role": "system", "content": said}))
        return with_messages(self._head(question), fragments)

    def read(self, body: JsonDict, question: Question) -> Reading:
        """Read the first choice."""
        choice = _first(body.get("choices"), "choices")
        message = choice.get("message")
        if not isinstance(message, dict):
            raise Malformed("the choice has no message")
        parts = with_own_ids(self._parts(message))
        finish = _FINISH.get(str(choice.get("finish_reason")), "stop")
        if message.get("refusal"):
            finish = "filtered"
        elif finish == "stop" and any(isinstance(part, CallPart) for part in parts):
            finish = "calls"  # some servers call with "stop"
        return Reading(parts, finish, _usage(body.get("usage")))

    def assembly(self) -> Assembly:
        """For one stream of chunks."""
        return ChatAssembly()

    def _head(self, question: Question) -> JsonDict:
        model, request = question.model, question.request
        limit = "max_completion_tokens" if model.provider == "openai" else "max_tokens"
        head: JsonDict = {**model.options, "model": model.model, limit: question.max_output_tokens}
        if question.stream:
            head |= {"stream": True, "stream_options": {"include_usage": True}}
        if request.tools:
            head["tools"] = [_tool(spec) for spec in request.tools]
        if request.answer_schema is not None and question.typed != "prompt":
            head["response_format"] = _format(question, request.answer_schema)
        return head

    def _plea(self, question: Question) -> str:
        """The schema in words: a server may take the field and ignore it. OpenAI's own does not."""
        schema = question.request.answer_schema
        if schema is None or (question.model.provider == "openai" and question.typed == "schema"):
            return ""
        return plea(schema)

    def _convert(self, message: Message) -> bytes:
        return b",".join(dump(each) for each in self._wire(message))

    def _wire(self, message: Message) -> Iterator[JsonDict]:
        """The messages of the protocol that one of ours becomes."""
        if message.role == "tool":
            for result in message.results:
                yield {"role": "tool", "tool_call_id": result.call_id, "content": result.text}
            return
        wire: JsonDict = {"role": message.role, "content": message.text}
        if message.calls:
            wire["content"] = message.text or None
            wire["tool_calls"] = [_call(call) for call in message.calls]
        yield wire

    def _parts(self, message: JsonDict) -> Iterator[TextPart | CallPart]:
        text = _text(message.get("content")) + _text(message.get("refusal"))
        if text:
            yield TextPart(text=text)
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list):
            raise Malformed("tool_calls is no list")
        for place, call in enumerate(calls):
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                raise Malformed("a tool call has no function")
            yield read_call(call.get("id"), function.get("name"), function.get("arguments") or "", place)


class ChatAssembly:
    """Puts chunks together. Some servers send calls without an index, or a call whole in one chunk."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._calls: dict[Any, JsonDict] = {}
        self._finish: str | None = None
        self._usage: Any = None

    def add(self, event: JsonDict) -> str:
        """Take one chunk; return its text."""
        if event.get("error"):
            raise RefusedInStream(_error_text(event["error"]))
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices")
        if not choices:
            return ""
        choice = _first(choices, "choices")
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return ""
        self._refusals.append(_text(delta.get("refusal")))
        for call in delta.get("tool_calls") or []:
            self._add_call(call)
        text = _text(delta.get("content"))
        self._texts.append(text)
        return text

    def body(self) -> JsonDict | None:
        """The answer whole; ``None``: no chunk said why it ended."""
        if self._finish is None:
            return None
        message = {"content": "".join(self._texts), "refusal": "".join(self._refusals),
                   "tool_calls": list(self._calls.values())}  # fmt: skip
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}

    def _add_call(self, piece: Any) -> None:
        if not isinstance(piece, dict):
            raise Malformed("a piece of a tool call is no object")
        key = piece.get("index")
        if key is None:  # a new id begins a new call, a piece without one goes on with the last
            key = piece.get("id") or next(reversed(self._calls), 0)
        call = self._calls.setdefault(key, {"id": None, "function": {"name": "", "arguments": ""}})
        call["id"] = piece.get("id") or call["id"]
        function = piece.get("function") or {}
        call["function"]["name"] = function.get("name") or call["function"]["name"]
        arguments = function.get("arguments") or ""
        call["function"]["arguments"] = arguments if isinstance(arguments, dict) else (
            call["function"]["arguments"] + arguments
        )  # fmt: skip


def _systems(messages: tuple[Message, ...]) -> int:
    """How many system messages come first."""
    return next((place for place, each in enumerate(messages) if each.role != "system"), len(messages))


def _tool(spec: ToolSpec) -> JsonDict:
    function = {"name": wire_name(spec.name), "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _call(call: CallPart) -> JsonDict:
    function = {"name": wire_name(call.name), "arguments": dump(known_arguments(call)).decode()}
    return {"id": call.id, "type": "function", "function": function}


def _format(question: Question, schema: JsonDict) -> JsonDict:
    if question.typed == "object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": is_strict(schema)}}


def _first(value: Any, name: str) -> JsonDict:
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        raise Malformed(f"there are no {name} in it")
    return value[0]


def _text(content: Any) -> str:
    """Text of a content: a string, or a list of parts as some gateways send it."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise Malformed(f"the content is {type(content).__name__}")
    return content or ""


def _usage(counts: Any) -> Usage:
    return Usage(
        input_tokens=read_count(counts, "prompt_tokens"),
        output_tokens=read_count(counts, "completion_tokens"),
        cached_tokens=read_count(counts, "prompt_tokens_details", "cached_tokens"),
    )


def _error_text(error: Any) -> str:
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)
