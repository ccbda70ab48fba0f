"""Models without tool calls are offered the tools as one JSON schema of their answer."""

from __future__ import annotations

import json

import pytest

from perdure.contracts.messages import CallPart, Message, ResultPart, TextPart
from perdure.models.chat import Chat
from perdure.models.configured import read_models
from perdure.models.fragments import Fragments
from perdure.models.protocol import Question
from perdure.models.schema_calls import SchemaChat
from perdure.models.typed import is_strict, unwrapped
from perdure.testing.model_server import model_server
from tests.models.kit import READ, answered, called, models_at, request, said


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"tool": "files-read", "arguments": {"path": "a"}}',
         CallPart(id="call_0", name="files.read", arguments={"path": "a"})),
        ('{"say": "Done."}', TextPart(text="Done.")),
        ("Plain words.", TextPart(text="Plain words.")),
        ('{"tool": "files-read", "arguments": 3}', CallPart(
            id="call_0", name="files.read", raw="3", fault="The arguments are int; expected a JSON object.")),
    ],
)  # fmt: skip
async def test_text_is_read_as_a_call_or_as_said(text: str, part: CallPart | TextPart) -> None:
    """The JSON that the schema asks for becomes a call or text; anything else stays text."""
    with model_server({"answers": [{"text": text}]}) as server:
        models = models_at(server, "compatible", calls="schema")
        answer = await models.ask(request(tools=(READ,)))
        await models.close()
        (recorded,) = server.requests()
    assert answer.parts == (part,)
    assert answer.finish == ("calls" if isinstance(part, CallPart) else "stop")
    assert "tools" not in recorded.body
    assert recorded.body["response_format"]["json_schema"]["schema"]["anyOf"][0]["required"] == ["tool", "arguments"]


def test_conversation_goes_as_text() -> None:
    """Calls and results are written as text of assistant and user: any template of a small model takes them."""
    messages: tuple[Message, ...] = (
        said("Be short.", "system"),
        said("Read it."),
        called(CallPart(id="c1", name="files.read", arguments={"path": "a"})),
        answered(ResultPart(call_id="c1", name="files.read", text="content")),
    )
    model = read_models({"m": {"provider": "ollama", "model": "small", "calls": "schema"}}).find("m")
    question = Question(request=request(*messages, tools=(READ,)), model=model, max_output_tokens=100)
    sent = json.loads(b"".join(SchemaChat(Fragments()).write(question).pieces))["messages"]
    assert [each["role"] for each in sent] == ["system", "system", "user", "assistant", "user"]
    assert json.loads(sent[3]["content"]) == {"tool": "files-read", "arguments": {"path": "a"}}
    assert sent[4]["content"] == "Result of files-read:\ncontent"


def test_fragments_are_bounded() -> None:
    """What was not used for longest is forgotten; what is asked for again is converted again, to the same bytes."""
    fragments, made = Fragments(limit_bytes=30), list[str]()

    def convert(message: Message) -> bytes:
        made.append(message.id)
        return message.text.encode()

    one, two, three = (said(text * 12) for text in "abc")
    for each in (one, two, one, three, one, two):
        assert fragments.of("d", each, convert) == each.text.encode()
    assert made == [one.id, two.id, three.id, two.id]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('Sure!\n```json\n{"a": 1}\n```\nBye', '{"a": 1}'),
        ('It is {"a": {"b": 2}}.', '{"a": {"b": 2}}'),
        ("no object", "no object"),
        ("{broken", "{broken"),
    ],
)
def test_json_is_found_in_what_a_model_says(text: str, found: str) -> None:
    """An object in a fence or between words is taken out; other text stays as it is."""
    assert unwrapped(text) == found


def test_strict_is_asked_for_where_the_schema_allows_it() -> None:
    """OpenAI refuses strict schemas with open objects or optional properties: those are asked for without."""
    closed = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    assert is_strict({**closed, "$defs": {"x": closed}})
    assert not is_strict({**closed, "required": []})
    assert not is_strict({**closed, "properties": {"a": {"type": "object", "properties": {}}}})
    model = read_models({"m": {"provider": "openai", "model": "gpt"}}).find("m")
    question = Question(request=request(answer_schema=closed), model=model, max_output_tokens=100)
    sent = json.loads(b"".join(Chat(Fragments()).write(question).pieces))
    assert sent["response_format"]["json_schema"]["strict"] is True
    assert sent["max_completion_tokens"] == 100
    assert len(sent["messages"]) == 1
