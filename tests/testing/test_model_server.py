"""The scripted model server speaks both protocols over real HTTP, fails as it is told to, and records what is asked."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from perdure.errors import SetupError, UserError
from perdure.testing import model_server as server_module
from perdure.testing.model_handle import ModelServer, model_process
from perdure.testing.model_play import Asked
from perdure.testing.model_script import Answer, load_script
from perdure.testing.model_server import model_server

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}
TWO_CALLS = {"text": "Looking.", "calls": [{"tool": "read", "with": {"path": "a"}}, {"tool": "list", "raw": "{no"}]}


def ask(server: ModelServer, api: str = "chat", *messages: dict[str, Any], **more: Any) -> httpx.Response:
    """Ask the model with these messages."""
    body = {"model": "small", "messages": list(messages) or [{"role": "user", "content": "Hello"}], **more}
    return httpx.post(server.url + PATHS[api], json=body, verify=False)


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    """The JSON events of a stream."""
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_chat_answer_has_text_and_parallel_calls() -> None:
    """A chat completion holds the text, every call with its arguments as they stand, and usage."""
    with model_server({"answers": [TWO_CALLS]}) as server:
        answer = ask(server).json()
    message = answer["choices"][0]["message"]
    assert message["content"] == "Looking."
    assert [call["function"] for call in message["tool_calls"]] == [
        {"name": "read", "arguments": '{"path": "a"}'},
        {"name": "list", "arguments": "{no"},
    ]
    assert len({call["id"] for call in message["tool_calls"]}) == 2
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    assert answer["usage"]["prompt_tokens"] > 0


def test_messages_answer_has_text_and_parallel_calls() -> None:
    """An answer in Anthropic's protocol holds text and tool_use blocks."""
    with model_server({"answers": [TWO_CALLS]}) as server:
        answer = ask(server, "messages").json()
    assert [block["type"] for block in answer["content"]] == ["text", "tool_use", "tool_use"]
    assert answer["content"][1]["input"] == {"path": "a"}
    assert answer["stop_reason"] == "tool_use"


def test_chat_stream_gives_the_same_in_pieces() -> None:
    """Streamed chunks put together are the whole answer; usage comes when it is asked for."""
    with model_server({"answers": [TWO_CALLS]}) as server:
        found = events(ask(server, stream=True, stream_options={"include_usage": True}))
    deltas = [choice["delta"] for event in found for choice in event["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Looking."
    pieces = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert "".join(p["function"]["arguments"] for p in pieces if p["index"] == 0) == '{"path": "a"}'
    assert found[-1]["usage"]["completion_tokens"] > 0


def test_messages_stream_gives_the_same_in_pieces() -> None:
    """Streamed events open, fill and close a block for text and one for each call."""
    with model_server({"answers": [TWO_CALLS]}) as server:
        found = events(ask(server, "messages", stream=True))
    assert [event["type"] for event in found if "block_delta" not in event["type"]] == (
        ["message_start", "ping"]
        + ["content_block_start", "content_block_stop"] * 3
        + ["message_delta", "message_stop"]
    )
    typed = [event["delta"].get("partial_json", "") for event in found if event.get("index") == 1 and "delta" in event]
    assert "".join(typed) == '{"path": "a"}'


@pytest.mark.parametrize("api", PATHS)
def test_errors_have_the_protocols_form(api: str) -> None:
    """A status from 400 on is an error body of the protocol, with Retry-After where the script gives one."""
    with model_server({"answers": [{"status": 429, "retry_after": 7, "error": "slow down"}]}) as server:
        answer = ask(server, api)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert answer.json()["error"]["message"] == "slow down"


@pytest.mark.parametrize("bytes_sent", [0, 30])
@pytest.mark.parametrize("stream", [False, True])
def test_connection_is_cut_where_the_script_says(bytes_sent: int, stream: bool) -> None:
    """A cut answer ends without its end: before the first byte, or after so many."""
    with model_server({"answers": [{"text": "x" * 100, "cut_after_bytes": bytes_sent}]}) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            ask(server, stream=stream)
        assert [each.ended for each in server.wait_for_ends(1)] == ["cut"]


def test_raw_body_is_sent_as_it_stands() -> None:
    """A body that is no JSON, an empty one, and one of ten megabytes."""
    script = {"answers": [{"raw": "{no"}, {"raw": ""}, {"text_bytes": 10_000_000}]}
    with model_server(script) as server:
        assert ask(server).text == "{no"
        assert ask(server).text == ""
        assert len(ask(server).content) > 10_000_000


def test_turn_is_answered_the_same_whoever_asks_again() -> None:
    """An answer by turn depends on the conversation alone: asked again, it is the same."""
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "one"}]
    with model_server({"turns": [{"text": "turn $turn", "repeat": 2}, {"text": "end"}]}) as server:
        texts = [
            ask(server, "chat", *messages).json()["choices"][0]["message"]["content"]
            for messages in ([said[0]], [said[0]], said, [*said, said[1]])
        ]
    assert texts == ["turn 0", "turn 0", "turn 1", "end"]


def test_attempts_of_a_turn_are_counted_for_each_conversation() -> None:
    """A list in a turn is one answer an attempt, the last one from then on; conversations do not meet."""
    with model_server({"turns": [[{"status": 500}, {"text": "at last"}]]}) as server:
        first, other = {"role": "user", "content": "a"}, {"role": "user", "content": "b"}
        assert [ask(server, "chat", first).status_code for _ in range(3)] == [500, 200, 200]
        assert ask(server, "chat", other).status_code == 500


def test_fitting_rule_goes_first() -> None:
    """A rule answers what it fits, as often as it may; all else goes on in order."""
    rules = [
        {"when": {"last_says": "weather"}, "answer": {"text": "rain"}, "times": 1},
        {"when": {"tool": "read", "api": "chat", "turn": 0}, "answer": {"text": "has a tool"}},
    ]
    weather = {"role": "user", "content": [{"type": "text", "text": "what weather?"}]}
    tool = {"type": "function", "function": {"name": "read"}}
    with model_server({"rules": rules, "answers": [{"text": "in order"}]}) as server:
        answers = [ask(server, "chat", weather), ask(server, tools=[tool]), ask(server, "chat", weather)]
        left_over = ask(server)
    assert [answer.json()["choices"][0]["message"]["content"] for answer in answers] == [
        "rain",
        "has a tool",
        "in order",
    ]
    assert left_over.status_code == 400
    assert "no answer for request 4" in left_over.json()["error"]["message"]


def test_requests_are_recorded_whole() -> None:
    """Every request's body can be read, and never its key; without the script's key it is refused."""
    with model_server({"answers": [{"text": "yes"}], "key": "k-1"}) as server:
        body = {"model": "m", "messages": [{"role": "user", "content": "key?"}]}
        url = server.openai_url + "/chat/completions"
        assert httpx.post(url, json=body).status_code == 401
        assert httpx.post(url, json=body, headers={"authorization": "Bearer k-1"}).status_code == 200
        recorded = server.requests()
        assert [each.body for each in recorded] == [body]
        assert "k-1" not in httpx.get(server.url + "/requests").text


def test_old_bodies_are_forgotten_and_their_counts_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays bounded: the oldest bodies go, number, turn and size stay."""
    monkeypatch.setattr(server_module, "KEPT_BYTES", 250)
    with model_server({"otherwise": {"text": "yes"}}) as server:
        for _ in range(5):
            ask(server)
        recorded = server.requests()
    assert [bool(each.body) for each in recorded] == [False, False, True, True, True]
    assert {each.bytes for each in recorded} == {recorded[0].bytes}
    assert recorded[0].bytes > 50


def test_held_answer_waits_until_it_is_released() -> None:
    """A held answer is sent when its name is released, not before."""
    with model_server({"answers": [{"text": "now", "hold": "gate"}]}) as server:
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.append(ask(server)))
        asking.start()
        assert [each.ended for each in server.wait_for(1)] == [""]
        assert answers == []
        server.release("gate")
        asking.join()
        assert answers[0].status_code == 200


def test_client_that_leaves_is_noticed() -> None:
    """Who gives up while an answer is held is recorded as gone, and the server answers others."""
    with model_server({"answers": [{"hold": "never"}, {"text": "yes"}]}) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.url + PATHS["chat"], json={"messages": []}, timeout=0.2)
        assert ask(server).status_code == 200
        assert [each.ended for each in server.wait_for_ends(2)] == ["client left", "answered"]


def test_function_of_a_test_can_answer() -> None:
    """Instead of a script a function may decide, from all that was asked."""

    def answer(asked: Asked) -> Answer:
        return Answer(text=f"{asked.model}: {asked.last_texts[0]}")

    with model_server(answer) as server:
        assert ask(server).json()["choices"][0]["message"]["content"] == "small: Hello"


def test_process_serves_and_records_into_a_file(tmp_path: Path) -> None:
    """`perdure models serve-script` is the same server in a process of its own; the file has what was asked."""
    (tmp_path / "answers.yaml").write_text("answers:\n- text: from a file\n  usage: {input: 3, output: 2}\n")
    with model_process(tmp_path / "answers.yaml", tmp_path) as server:
        assert ask(server).json()["usage"]["total_tokens"] == 5
    lines = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
    assert [line["body"]["messages"] for line in lines] == [[{"role": "user", "content": "Hello"}]]


def test_waiting_ends_with_its_limit() -> None:
    """Waiting for requests that do not come says so."""
    with model_server({}) as server, pytest.raises(SetupError, match="wait=1"):
        server.wait_for(1, timedelta(seconds=0.2))


@pytest.mark.parametrize(
    ("text", "said"),
    [("answers: [{txet: a}]", "answers.0.txet"), ("a: [", "cannot be read"), ("answers: [{status: 99}]", "status")],
)
def test_wrong_script_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """A script with a wrong word or value is refused before the server listens."""
    (tmp_path / "wrong.yaml").write_text(text)
    with pytest.raises(UserError, match=said):
        load_script(tmp_path / "wrong.yaml")
