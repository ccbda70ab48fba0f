"""What happens when a provider fails: what may pass, what will not, and that no key is in any text."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from perdure.contracts.agent import ModelAnswer
from perdure.contracts.messages import TextPart
from perdure.errors import ModelFailed, ModelTrouble, SetupError
from perdure.models import exchange
from perdure.models.client import Models
from perdure.models.trouble import retry_after
from perdure.testing.model_handle import ModelServer
from perdure.testing.model_server import model_server
from tests.models.kit import KEY, PROTOCOLS, models_at, request, table

each_way = pytest.mark.parametrize(("provider", "streamed"), [(p, s) for p in PROTOCOLS for s in (False, True)])


async def ask(models: Models, *, streamed: bool = False, **more: Any) -> ModelAnswer:
    """Ask; connections are closed."""
    try:
        return await models.ask(request(**more), print if streamed else None)
    finally:
        await models.close()


async def trouble_of(answer: dict[str, Any], provider: str, *, streamed: bool, **more: Any) -> ModelTrouble:
    """The trouble that one scripted answer makes."""
    with model_server({"answers": [answer]}) as server, pytest.raises(ModelTrouble) as caught:
        await ask(models_at(server, provider), streamed=streamed, **more)
    return caught.value


async def failure_of(answer: dict[str, Any], provider: str, *, streamed: bool, **more: Any) -> ModelFailed:
    """The final failure that one scripted answer makes."""
    with model_server({"answers": [answer], **more}) as server, pytest.raises(ModelFailed) as caught:
        await ask(models_at(server, provider, key="main-key"), streamed=streamed)
    return caught.value


@each_way
@pytest.mark.parametrize(
    ("status", "kind", "after"), [(429, "limited", 7), (500, "unavailable", None), (529, "unavailable", 0.5)]
)
async def test_passing_refusal_says_when_to_ask_again(
    provider: str, streamed: bool, status: int, kind: str, after: float | None
) -> None:
    """429 and faults of the provider's own may pass; Retry-After is handed on, and unknown where there was none."""
    answer = {"status": status, "error": "busy", **({} if after is None else {"retry_after": str(after)})}
    trouble = await trouble_of(answer, provider, streamed=streamed)
    assert (trouble.kind, trouble.retry_after_seconds) == (kind, after)
    assert "busy" in trouble.message
    assert f"{status}" in trouble.message


@each_way
@pytest.mark.parametrize("sent", [0, 60])
async def test_cut_answer_may_pass(provider: str, streamed: bool, sent: int) -> None:
    """A connection that is cut before the answer's end gives no answer, and is no final failure."""
    trouble = await trouble_of({"text": "x" * 500, "cut_after_bytes": sent}, provider, streamed=streamed)
    assert trouble.kind == "cut"


@pytest.mark.parametrize("provider", PROTOCOLS)
async def test_stream_without_its_end_is_cut(provider: str) -> None:
    """A stream that ends tidily, but before the answer did, is a cut answer and not a short one."""
    trouble = await trouble_of({"raw": ": nothing more\n\n"}, provider, streamed=True)
    assert trouble.kind == "cut"


@each_way
@pytest.mark.parametrize("raw", ["{no", "", "[]", "{}", '{"choices": [{"message": 3}], "content": {}}'])
async def test_malformed_answer_may_pass(provider: str, streamed: bool, raw: str) -> None:
    """A body that is empty, no JSON or of wrong types is reported as malformed, never as an answer."""
    body = f"data: {raw}\n\n" if streamed and raw else raw
    trouble = await trouble_of({"raw": body}, provider, streamed=streamed)
    assert trouble.kind in (("malformed", "cut") if streamed else ("malformed",))


@pytest.mark.parametrize("provider", PROTOCOLS)
async def test_error_inside_a_stream_may_pass(provider: str) -> None:
    """An error that comes in the middle of a stream is trouble with the provider's words."""
    trouble = await trouble_of({"text": "Once upon", "error": "overloaded now"}, provider, streamed=True)
    assert "overloaded now" in trouble.message


@each_way
async def test_late_answer_is_given_up(provider: str, streamed: bool) -> None:
    """An answer that does not come within the request's limit is trouble."""
    trouble = await trouble_of({"hold": "never"}, provider, streamed=streamed, limit_seconds=1)
    assert trouble.kind == "late"


@each_way
async def test_answer_of_ten_megabytes_is_refused(provider: str, streamed: bool) -> None:
    """An answer over the cap is refused for good: it would be no smaller the next time."""
    failure = await failure_of({"text_bytes": 10_000_000}, provider, streamed=streamed)
    assert "over 4 MB" in failure.message


async def test_endless_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading stops at the cap, not at the answer's end."""
    monkeypatch.setattr(exchange, "ANSWER_LIMIT_BYTES", 1000)
    with model_server({"answers": [{"text_bytes": 8_000_000, "pace_ms": 1}]}) as server:
        with pytest.raises(ModelFailed):
            await ask(models_at(server, "compatible"))
        assert [each.ended for each in server.wait_for_ends(1)] == ["client left"]


@each_way
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "refused the key"),
        (403, "refused the key"),
        (404, "no such model"),
        (400, "refused the request"),
        (302, "sends us elsewhere"),
    ],
)
async def test_final_refusal_says_what_to_do(provider: str, streamed: bool, status: int, said: str) -> None:
    """A key, a name or a request that is wrong stays wrong: it is not asked again."""
    failure = await failure_of({"status": status, "error": f"no: {KEY}"}, provider, streamed=streamed)
    assert said in failure.message
    assert failure.status == status


async def test_spent_account_does_not_pass() -> None:
    """A 429 that means "no money" is no rate limit."""
    failure = await failure_of({"status": 429, "error": "insufficient_quota"}, "compatible", streamed=False)
    assert "no money" in failure.message


@pytest.fixture
def no_key_in_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing that was logged holds the key."""
    caplog.set_level(logging.DEBUG)
    yield
    assert KEY not in caplog.text


@each_way
@pytest.mark.parametrize("status", [400, 401, 429, 500])
@pytest.mark.usefixtures("no_key_in_logs")
async def test_key_is_in_no_error_and_no_log(provider: str, streamed: bool, status: int) -> None:
    """A provider that repeats the key does not bring it into an error, its causes or a log."""
    script = {"answers": [{"status": status, "error": f"you sent {KEY}"}]}
    with model_server(script) as server, pytest.raises((ModelTrouble, ModelFailed)) as caught:
        await ask(models_at(server, provider, key="main-key"), streamed=streamed)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in str(error) + repr(error)
        error = error.__cause__


async def test_nobody_listening_may_pass() -> None:
    """A server that is not there is trouble that names its address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        models = models_at(ModelServer(url), "compatible")
        with pytest.raises(ModelTrouble, match="cannot be reached") as caught:
            await ask(models)
    assert url.removeprefix("http://") in caught.value.message


async def test_fallbacks_are_asked_in_order() -> None:
    """When a model does not answer the next one does, and the answer says from whom to whom and why."""
    late, here = {"answers": [{"status": 429, "error": "later"}]}, {"answers": [{"text": "Here."}]}
    with model_server(late) as first, model_server({}) as second, model_server(here) as third:
        tables = {
            "default": "a",
            "a": table(first, "compatible", fallbacks=["b", "c"]),
            "b": table(second, "anthropic"),
            "c": table(third, "anthropic", model="big"),
        }
        answer = await ask(Models(lambda: tables, {}.get))
    assert answer.parts == (TextPart(text="Here."),)
    assert answer.model == "anthropic/big"
    assert [note[:22] for note in answer.notes] == ["fell back from a to b:", "fell back from b to c:"]
    assert "429" in answer.notes[0]


async def test_nobody_answering_is_the_trouble_that_may_pass() -> None:
    """When all models fail, what may pass decides, with the shortest wait."""
    with model_server({"answers": [{"status": 429, "retry_after": 60}]}) as first, model_server({}) as second:
        tables = {"a": table(first, "compatible", fallbacks=["b"]), "b": table(second, "compatible"), "default": "a"}
        with pytest.raises(ModelTrouble) as caught:
            await ask(Models(lambda: tables, {}.get))
    assert caught.value.retry_after_seconds == 60


async def test_missing_secret_is_named() -> None:
    """A key whose secret is not there names the secret and where to put it; nothing is sent."""
    with model_server({}) as server:
        with pytest.raises(SetupError, match="secrets/other"):
            await ask(models_at(server, "compatible", key="other"))
        assert server.requests() == []


async def test_weaker_ways_to_a_typed_answer_are_tried_once() -> None:
    """A server that takes no schema is asked for any object, then in words; that is remembered and noted."""
    script = {"answers": [{"status": 400}, {"status": 422}, {"text": 'Sure:\n```json\n{"a": 1}\n```'}, {"text": "{}"}]}
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    with model_server(script) as server:
        models = models_at(server, "compatible")
        answer = await models.ask(request(answer_schema=schema))
        await ask(models, answer_schema=schema)
        forms = [(each.body.get("response_format") or {}).get("type") for each in server.requests()]
    assert answer.parts == (TextPart(text='{"a": 1}'),)
    assert forms == ["json_schema", "json_object", None, None]
    assert len(answer.notes) == 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Tue, 01 Dec 2026 00:01:00 GMT"}, 60.0),
        ({"retry-after": "Mon, 30 Nov 2026 00:00:00 GMT"}, 0.0),
        ({"retry-after": "99999999"}, 86_400.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, a date, OpenAI's milliseconds; nonsense is nothing said, and nobody waits for longer than a day."""
    assert retry_after(headers, datetime(2026, 12, 1, tzinfo=UTC)) == seconds
