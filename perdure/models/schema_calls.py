"""Chat completions for models without tool calls: one JSON schema of the answer offers the tools and a plain answer.

The conversation goes there and back as text, so that any template of a small model takes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from perdure.contracts.agent import ToolSpec
from perdure.contracts.base import JsonDict
from perdure.contracts.messages import CallPart, Message, TextPart
from perdure.models.chat import Chat
from perdure.models.protocol import Malformed, Question, Reading, dump, own_name, read_call, wire_name

_INTRODUCTION = (
    'Answer with one JSON object. To use a tool: {"tool": NAME, "arguments": {…}}. To say something instead: '
    '{"say": TEXT}. Tools:\n'
)


class SchemaChat(Chat):
    """Writes tools into the schema and the instructions, and reads calls out of the text."""

    dialect = "schema chat"

    def read(self, body: JsonDict, question: Question) -> Reading:
        """Read the text as a call, or as what is said."""
        reading = super().read(body, question)
        if not question.request.tools:
            return reading
        text = "".join(part.text for part in reading.parts if isinstance(part, TextPart))
        part = _part(text)
        if part is None:
            return reading
        reading.parts = (part,)
        if isinstance(part, CallPart) and reading.finish == "stop":
            reading.finish = "calls"
        return reading

    def _head(self, question: Question) -> JsonDict:
        head = super()._head(question)
        if head.pop("tools", None) and question.typed != "prompt":
            schema = schema_of(question.request.tools)
            form = {"type": "json_schema", "json_schema": {"name": "turn", "schema": schema}}
            head["response_format"] = form if question.typed == "schema" else {"type": "json_object"}
        return head

    def _plea(self, question: Question) -> str:
        tools = question.request.tools
        return _introduction(tools) if tools else super()._plea(question)

    def _wire(self, message: Message) -> Iterator[JsonDict]:
        if message.role == "tool":
            for result in message.results:
                yield {"role": "user", "content": f"Result of {wire_name(result.name)}:\n{result.text}"}
        elif message.calls:
            for call in message.calls:
                said = {"tool": wire_name(call.name), "arguments": call.arguments}
                yield {"role": "assistant", "content": dump(said).decode()}
        else:
            yield {"role": message.role, "content": message.text}


def schema_of(tools: tuple[ToolSpec, ...]) -> JsonDict:
    """The schema of one turn: one of the tools with its arguments, or something said."""
    calls = [
        _closed({"tool": {"const": wire_name(spec.name)}, "arguments": spec.parameters}) for spec in tools
    ]  # fmt: skip
    return {"anyOf": [*calls, _closed({"say": {"type": "string"}})]}


def _closed(properties: JsonDict) -> JsonDict:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _introduction(tools: tuple[ToolSpec, ...]) -> str:
    lines = [f"- {wire_name(spec.name)}: {spec.description} {json.dumps(spec.parameters)}" for spec in tools]
    return _INTRODUCTION + "\n".join(lines)


def _part(text: str) -> CallPart | TextPart | None:
    """What a turn's JSON means; ``None``: it is none, and stays text."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    if isinstance(found.get("say"), str):
        return TextPart(text=found["say"])
    if not isinstance(found.get("tool"), str):
        return None
    try:
        return read_call("call_0", own_name(found["tool"]), found.get("arguments") or {}, 0)
    except Malformed:
        return None
