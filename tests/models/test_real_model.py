"""A real small model answers through the door: text, a stream, a typed answer, a tool call. Off unless asked for."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import pytest

from perdure.contracts.messages import CallPart, TextPart
from perdure.models.client import Models
from perdure.testing.small_model import WINDOW_TOKENS, small_model
from tests.models.kit import READ, request, said

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The model's address; loading takes seconds."""
    with small_model() as found:
        yield found


@pytest.fixture
async def models(url: str) -> AsyncIterator[Models]:
    """The small model by the name ``small``, with tools in the schema: it has no calls of its own."""
    table = {"provider": "llama.cpp", "model": "smollm2", "base_url": url, "window": WINDOW_TOKENS, "calls": "schema"}
    models = Models(lambda: {"small": {**table, "options": {"temperature": 0}}}, {}.get)
    yield models
    await models.close()


async def test_real_model_answers_and_counts(models: Models) -> None:
    """It answers a question, and says how many tokens that took; on this machine it is free."""
    answer = await models.ask(request(said("What is the capital of France? One word."), max_output_tokens=30))
    assert "Paris" in "".join(part.text for part in answer.parts if isinstance(part, TextPart))
    assert answer.usage.input_tokens and answer.usage.output_tokens
    assert answer.cost_microdollars == 0


async def test_real_model_streams_for_watchers(models: Models) -> None:
    """Watchers see the same text piece by piece."""
    seen: list[str] = []
    asked = request(said("Count from one to five in words."), max_output_tokens=40)
    answer = await models.ask(asked, seen.append)
    assert len(seen) > 3
    assert "".join(seen) == "".join(part.text for part in answer.parts if isinstance(part, TextPart))


async def test_real_model_gives_a_typed_answer(models: Models) -> None:
    """Its server holds it to the schema: the answer is an object of that form, whatever it says."""
    schema = {"type": "object", "properties": {"fruit": {"type": "string", "maxLength": 12}}, "required": ["fruit"]}
    asked = request(
        said("Name a fruit."), answer_schema={**schema, "additionalProperties": False}, max_output_tokens=60
    )
    (part,) = (await models.ask(asked)).parts
    assert isinstance(part, TextPart)
    assert set(json.loads(part.text)) == {"fruit"}


async def test_real_model_calls_a_tool(models: Models) -> None:
    """A model without tool calls of its own calls a tool with arguments that fit."""
    asked = request(said("Read the file README.md with the tool."), tools=(READ,), max_output_tokens=80)
    answer = await models.ask(asked)
    assert answer.finish == "calls"
    (call,) = answer.parts
    assert isinstance(call, CallPart)
    assert (call.name, set(call.arguments)) == ("files.read", {"path"})
