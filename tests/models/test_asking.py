"""Asking a model through the one door, in both protocols, streamed and not, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from perdure.contracts.agent import ModelAnswer, ModelRequest
from perdure.contracts.agent_ports import OnText
from perdure.contracts.messages import CallPart, Message, ResultPart, TextPart
from perdure.models.client import Models
from perdure.testing.model_server import model_server
from tests.models.kit import KEY, PROTOCOLS, READ, answered, called, models_at, request, said

pytestmark = [pytest.mark.parametrize("provider", PROTOCOLS), pytest.mark.parametrize("streamed", [False, True])]


async def ask(models: Models, asked: ModelRequest, *, streamed: bool, watch: list[str] | None = None) -> ModelAnswer:
    """Ask, watching when the answer is to be streamed; connections are closed."""
    on_text: OnText | None = (watch if watch is not None else []).append if streamed else None
    try:
        return await models.ask(asked, on_text)
    finally:
        await models.close()


async def test_answer_has_text_usage_and_cost(provider: str, streamed: bool) -> None:
    """An answer gives its text, the tokens that the provider counted, and what they cost with cached ones apart."""
    usage = {"input": 1000, "output": 100, "cached": 400}
    watch: list[str] = []
    with model_server({"answers": [{"text": "It is four, I think.", "usage": usage}]}) as server:
        answer = await ask(models_at(server, provider), request(), streamed=streamed, watch=watch)
    assert answer.parts == (TextPart(text="It is four, I think."),)
    assert answer.finish == "stop"
    assert answer.usage.model_dump() == {"input_tokens": 1000, "output_tokens": 100, "cached_tokens": 400}
    assert answer.cost_microdollars == 600 + 40 + 1000
    assert answer.model == f"{provider}/small"
    assert ("".join(watch), len(watch) > 1) == (("It is four, I think.", True) if streamed else ("", False))


async def test_parallel_calls_come_with_their_arguments(provider: str, streamed: bool) -> None:
    """Every call of an answer comes back with our name of the tool, its arguments and an id of its own."""
    calls = [{"tool": "files-read", "with": {"path": p}, "id": "same"} for p in ("a", "b")] + [{"tool": "no-such"}]
    with model_server({"answers": [{"text": "Both.", "calls": calls}]}) as server:
        answer = await ask(models_at(server, provider), request(tools=(READ,)), streamed=streamed)
    found = [part for part in answer.parts if isinstance(part, CallPart)]
    assert [(call.name, call.arguments, call.fault) for call in found] == [
        ("files.read", {"path": "a"}, ""),
        ("files.read", {"path": "b"}, ""),
        ("no.such", {}, ""),
    ]
    assert len({call.id for call in found}) == 3
    assert answer.finish == "calls"


@pytest.mark.parametrize("raw", ['{"path": ', "[1]", '"text"'])
async def test_unreadable_arguments_come_back_with_the_reason(provider: str, streamed: bool, raw: str) -> None:
    """Arguments that are no JSON object come back as a call with a fault, so that the model can be told."""
    with model_server({"answers": [{"calls": [{"tool": "files-read", "raw": raw}]}]}) as server:
        answer = await ask(models_at(server, provider), request(tools=(READ,)), streamed=streamed)
    (call,) = answer.parts
    assert isinstance(call, CallPart)
    assert (call.name, call.arguments) == ("files.read", {})
    assert call.fault.startswith("The arguments are")
    assert call.raw


async def test_empty_answer_is_an_answer(provider: str, streamed: bool) -> None:
    """A model that says nothing gives no parts: the loop tells it so."""
    with model_server({"answers": [{}]}) as server:
        answer = await ask(models_at(server, provider), request(), streamed=streamed)
    assert answer.parts == ()


async def test_unsaid_usage_is_unknown(provider: str, streamed: bool) -> None:
    """Usage that the provider does not give is unknown, and so is the cost."""
    with model_server({"answers": [{"text": "Yes.", "usage": "unknown"}]}) as server:
        answer = await ask(models_at(server, provider), request(), streamed=streamed)
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.cost_microdollars) == (None, None, None)


@pytest.mark.parametrize(("word", "finish"), [("length", "length"), ("filter", "filtered")])
async def test_reason_of_the_end_is_told(provider: str, streamed: bool, word: str, finish: str) -> None:
    """An answer that was cut at its limit, or filtered, says so."""
    words = {"compatible": ("length", "content_filter"), "anthropic": ("max_tokens", "refusal")}[provider]
    with model_server({"answers": [{"text": "Once", "finish": words[word == "filter"]}]}) as server:
        answer = await ask(models_at(server, provider), request(), streamed=streamed)
    assert answer.finish == finish


async def test_key_is_sent_from_its_secret(provider: str, streamed: bool) -> None:
    """The key comes from the named secret and opens a server that asks for it."""
    with model_server({"answers": [{"text": "Come in."}], "key": KEY}) as server:
        answer = await ask(models_at(server, provider, key="main-key"), request(), streamed=streamed)
    assert answer.parts == (TextPart(text="Come in."),)


async def test_conversation_reaches_the_model_whole(provider: str, streamed: bool) -> None:
    """Instructions, messages, calls with their results and what a person says between: each is in the request once."""
    call = CallPart(id="c1", name="files.read", arguments={"path": "a"})
    bad = CallPart(id="c2", name="files.read", raw="{no", fault="The arguments are no JSON.")
    messages = (
        said("Be short.", "system"),
        said("Read both."),
        called(call, bad, text="Reading."),
        answered(
            ResultPart(call_id="c1", name="files.read", text="äöü\u2028"),
            ResultPart(call_id="c2", name="files.read", status="error", text="No JSON."),
        ),
        said("And hurry."),
    )
    with model_server({"answers": [{"text": "Done."}]}) as server:
        await ask(models_at(server, provider), request(*messages, tools=(READ,)), streamed=streamed)
        (recorded,) = server.requests()
    text = json.dumps(recorded.body, ensure_ascii=False)
    for part in ("Be short.", "Read both.", "Reading.", "äöü\u2028", "No JSON.", "And hurry.", "files-read", "{no"):
        assert part in text
    roles = [each["role"] for each in recorded.body["messages"]]
    if provider == "anthropic":
        assert roles == ["user", "assistant", "user"]
        assert recorded.body["system"][0]["text"] == "Be short."
        kinds = [(block["type"], block.get("is_error", False)) for block in recorded.body["messages"][2]["content"]]
        assert kinds == [("tool_result", False), ("tool_result", True), ("text", False)]
    else:
        assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
        assert recorded.body["messages"][2]["tool_calls"][1]["function"]["arguments"] == '{"unreadable":"{no"}'


async def test_typed_answer_comes_as_json_text(provider: str, streamed: bool) -> None:
    """An answer by a schema comes back as the text of one JSON object, whatever means the provider has."""
    schema: dict[str, Any] = {"type": "object", "properties": {"version": {"type": "string"}}}
    with model_server({"answers": [{"json": {"version": "2.0"}}]}) as server:
        answer = await ask(models_at(server, provider), request(answer_schema=schema), streamed=streamed)
        (recorded,) = server.requests()
    assert [json.loads(part.text) for part in answer.parts if isinstance(part, TextPart)] == [{"version": "2.0"}]
    assert answer.finish == "stop"
    assert json.dumps(schema) in json.dumps(recorded.body)


async def test_cancelled_question_closes_its_connection(provider: str, streamed: bool) -> None:
    """Cancelling the task hangs up at once; the next question is asked on the same client."""
    with model_server({"answers": [{"hold": "never"}, {"text": "Yes."}]}) as server:
        models = models_at(server, provider)
        asking = asyncio.create_task(models.ask(request(), print if streamed else None))
        await asyncio.to_thread(server.wait_for, 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        answer = await ask(models, request(), streamed=streamed)
        assert answer.parts == (TextPart(text="Yes."),)
        assert [each.ended for each in await asyncio.to_thread(server.wait_for_ends, 2)] == ["client left", "answered"]


async def test_message_is_converted_once(provider: str, streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn converts only what is new: messages that were sent before are joined as they are.

    The newest message is left out of the count: Anthropic's is marked for the cache, and marked ones are not kept.
    """
    converted: list[str] = []
    dump = json.dumps

    def counting(value: Any, **options: Any) -> str:
        converted.append(text := dump(value, **options))
        return text

    messages: list[Message] = [said("first", number=1)]
    with model_server({"otherwise": {"text": "more"}}) as server:
        models = models_at(server, provider)
        monkeypatch.setattr("perdure.models.protocol.json.dumps", counting)
        try:
            for number in range(2, 6):
                await models.ask(request(*messages), print if streamed else None)
                messages += [said("more", "assistant", number), said(f"next {number}", number=number)]
            converted.clear()
            await models.ask(request(*messages), print if streamed else None)
        finally:
            monkeypatch.undo()
            await models.close()
        assert len(server.requests()[-1].body["messages"]) == 9
    assert not [text for text in converted if "first" in text or "next 3" in text]
