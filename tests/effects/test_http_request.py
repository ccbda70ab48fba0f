"""http.request: one request, told by a request, taken back by a request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from perdure.contracts.base import BlobRef, JsonDict
from perdure.effects.base import EffectContext, Found
from perdure.effects.http_address import choose_for
from perdure.effects.http_call import NotSent
from perdure.errors import EffectFailed, EffectNotBegun, EffectUnknown, UserError
from tests.support.records import Records, serve_records
from tests.support.world import Planned, World


@pytest.fixture
def records() -> Iterator[Records]:
    """A service that holds one record."""
    with serve_records() as served:
        served.held["ada"] = {"plan": "silver"}
        yield served


def upgrade(world: World, records: Records, **more: Any) -> Planned:
    """Set a record's plan; told by reading it, taken back by setting it as it was."""
    url = f"{records.url}/records/ada"
    arguments = {"url": url, "method": "PATCH", "json": {"plan": "gold"}, **more.pop("arguments", {})}
    options: JsonDict = {
        "probe": {"http": url, "json": {"/plan": "gold"}, "before": {"json": {"/plan": "silver"}}, "within": "1s"},
        "undo": {"method": "PATCH", "json": {"plan": "silver"}},
    }
    return world.plan("http.request", arguments, **{**options, **more})


def keyed(planned: Planned, key: str = "k" * 32) -> EffectContext:
    return replace(planned.world.context(), key=key)


def test_request_is_sent_once_and_taken_back(world: World, records: Records) -> None:
    """Plan, do, told by the probe, undone by the declared request; each is sent once."""
    planned = upgrade(world, records)
    planned.apply()
    assert records.held["ada"] == {"plan": "gold"}
    assert planned.inverse.found() is Found.not_done
    planned.inverse.apply()
    assert records.held["ada"] == {"plan": "silver"}
    assert len(records.asked("PATCH")) == 2


def test_plan_shows_what_is_sent(world: World, records: Records) -> None:
    """Method, URL, size and digest stand in the summary; content, headers and hosts in the plan."""
    planned = upgrade(world, records, arguments={"headers": {"X-Run": "7"}})
    body = planned.body
    assert planned.draft.summary.startswith(f"PATCH {records.url}/records/ada · 16 bytes sha256:")
    assert body["content"]["text"] == '{"plan": "gold"}' and body["headers"]["X-Run"] == "7"
    assert planned.draft.ways_out == [records.url.removeprefix("http://")]
    assert planned.draft.inverse.summary.startswith("PATCH ")


def test_every_attempt_sends_the_same_key(world: World, records: Records) -> None:
    """A server that honours the key does a repeated request once; another header's name, or none, can be asked for."""
    lines = {"url": f"{records.url}/lines", "json": {"n": 1}}
    planned = world.plan("http.request", lines, irreversible="A line cannot be taken away.")
    for _ in range(2):
        planned.effect.do(planned.body, keyed(planned))
    assert records.lines == [{"n": 1}]
    assert {sent["idempotency-key"] for sent in records.headers} == {"k" * 32}
    for given, name in (("X-Request-Id", "x-request-id"), (False, "")):
        other = world.plan("http.request", {**lines, "key_header": given}, undo="none_needed")
        other.effect.do(other.body, keyed(other))
        assert "idempotency-key" not in records.headers[-1]
        assert not name or records.headers[-1][name] == "k" * 32


@pytest.mark.parametrize(("fault", "is_done"), [("cut after", True), ("cut", False), ("503", False)])
def test_cut_connection_is_told_by_the_probe(world: World, records: Records, fault: str, is_done: bool) -> None:
    """Nobody answers: the probe says whether it happened; a no counts once the server had its time."""
    planned = upgrade(world, records)
    records.faults.append(fault)
    if is_done:
        assert "although" in planned.do()["found"]
    else:
        with pytest.raises(EffectFailed, match=r"plan instead of|at /plan"):
            planned.do()
    assert len(records.asked("PATCH")) == 1


def test_cut_connection_without_a_probe_is_unknown(world: World, records: Records) -> None:
    """It is never sent again by itself."""
    planned = upgrade(world, records, probe=None)
    records.faults.append("cut after")
    with pytest.raises(EffectUnknown):
        planned.do()
    assert planned.found() is Found.unknown and len(records.asked("PATCH")) == 1


def test_repeatable_request_is_sent_again(world: World, records: Records) -> None:
    """PUT and DELETE mean the same twice (RFC 9110); other methods when the step says so."""
    url = f"{records.url}/records/bob"
    put = world.plan("http.request", {"url": url, "method": "PUT", "json": {}}, undo={"method": "DELETE"})
    records.faults += ["cut", "503"]
    put.do()
    assert len(records.asked("PUT")) == 3
    records.faults.append("cut")
    upgrade(world, records, arguments={"repeatable": True}).do()
    assert len(records.asked("PATCH")) == 2


def test_server_that_says_later_is_asked_later(world: World, records: Records) -> None:
    """429 with Retry-After is a rate limit: the same request goes again when the server said."""
    records.faults.append("429")
    upgrade(world, records).apply()
    assert len(records.asked("PATCH")) == 2


def test_what_was_never_sent_was_not_done(world: World, records: Records) -> None:
    """A refused connection needs no probe: nothing left this machine."""
    planned = world.plan("http.request", {"url": "http://127.0.0.1:1/x"}, undo="none_needed")
    with pytest.raises(EffectNotBegun, match=r"127\.0\.0\.1:1"):
        planned.do()


def test_unexpected_answers_are_judged(world: World, records: Records) -> None:
    """4xx is a refusal; another 2xx or value than expected cannot be called done or not done by the answer alone."""
    gone = upgrade(world, records, arguments={"url": f"{records.url}/records/nobody"})
    with pytest.raises(EffectFailed, match="answers 404 instead of a 2xx"):
        gone.do()
    other = upgrade(world, records, arguments={"expect": {"status": 200, "json": {"/plan": "platinum"}}})
    with pytest.raises(EffectUnknown, match='has "gold" at /plan instead of "platinum"'):
        other.do()
    records.faults.append("302")
    with pytest.raises(EffectFailed, match="Redirects are not followed"):
        upgrade(world, records).do()


def test_probe_tells_four_things(world: World, records: Records) -> None:
    """As it shall be: done. As before: not done. Neither: somebody else's. No useful answer: cannot be told."""
    planned = upgrade(world, records)
    assert planned.found() is Found.not_done
    records.held["ada"] = {"plan": "gold"}
    assert planned.found() is Found.done
    records.held["ada"] = {"plan": "bronze"}
    assert planned.found() is Found.foreign
    assert "not as before" in planned.check()[0]
    assert "not as before" in planned.inverse.check()[0]
    records.token = "let me see"
    assert planned.found() is Found.unknown


def test_required_answers_are_preconditions(world: World, records: Records) -> None:
    """Every `require` is asked; what does not answer as it must is drift, with what it said."""
    url = f"{records.url}/records/ada"
    holds = {"http": url, "json": {"/plan": "silver"}}
    planned = upgrade(world, records, require=[holds, {"http": f"{records.url}/records/gate"}])
    assert planned.draft.requires[0].endswith('2xx, /plan = "silver"')
    assert ["gate answers 404" in problem for problem in planned.check()] == [True]
    records.held["gate"] = {}
    assert planned.check() == []


def test_secret_goes_into_a_header_and_nowhere_else(world: World, records: Records) -> None:
    """By name in the plan, by value in the request; not in answers that are kept, not to another host."""
    records.token, world.secrets["api-token"] = "hunter2hunter2", "hunter2hunter2"
    planned = upgrade(world, records, arguments={"bearer": "api-token", "json": {"plan": "gold", "note": "a"}})
    records.held["ada"]["echo"] = "hunter2hunter2"
    assert planned.draft.ways_out[-1] == "secret:api-token"
    result = planned.apply()
    kept = world.blobs.get(BlobRef.model_validate(result["answer"]))
    assert b"[secret]" in kept
    assert "hunter2" not in repr(planned.draft) + repr(result) + kept.decode()
    with serve_records() as elsewhere:
        other = upgrade(world, records, arguments={"bearer": "api-token"}, undo={"url": f"{elsewhere.url}/records/ada"})
        with pytest.raises(EffectFailed):
            other.inverse.do()
        assert [sent.get("authorization") for sent in elsewhere.headers] == [None]


def test_unknown_secret_sends_nothing(world: World, records: Records) -> None:
    """Nothing leaves before every secret is there."""
    planned = upgrade(world, records, arguments={"bearer": "api-token"}, probe=None)
    with pytest.raises(EffectNotBegun, match="api-token"):
        planned.do()
    assert records.log == []


@pytest.mark.parametrize(
    ("url", "private", "addresses", "chosen"),
    [
        ("http://127.0.0.1:80/", False, [], "127.0.0.1"),
        ("https://api.example.org/", False, ["93.184.216.34"], "93.184.216.34"),
        ("https://api.example.org/", False, ["93.184.216.34", "10.0.0.1"], None),
        ("https://api.example.org/", False, ["169.254.169.254"], None),
        ("https://orders.internal/", True, ["10.0.0.7"], "10.0.0.7"),
    ],
)
def test_name_leads_to_public_addresses(url: str, private: bool, addresses: list[str], chosen: str | None) -> None:
    """What stands in the URL was read by the reviewer; a name must not turn out to be this machine or its network."""
    if chosen is None:
        with pytest.raises(EffectNotBegun, match="private: true"):
            choose_for(url, private=private, ask=lambda *_: addresses)
    else:
        assert choose_for(url, private=private, ask=lambda *_: addresses) == chosen


def test_name_that_is_not_known_sends_nothing() -> None:
    """No address: nothing was sent."""

    def nothing(*_: Any) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(NotSent, match="no such name"):
        choose_for("https://api.example.org/", private=False, ask=nothing)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "GET"}, "expected one of POST"),
        ({"headers": {"Authorization": "Bearer x"}}, "Name a secret"),
        ({"headers": {"Host": "x"}}, "set by Perdure"),
        ({"headers": {"X": "a\r\nY: b"}}, "cannot be sent"),
        ({"url": "ftp://x/"}, "expected a URL"),
        ({"url": "https://me:secret@x/"}, "name a secret"),
        ({"url": "http://api.example.org/", "bearer": "t"}, "unencrypted"),
        ({"text": "x"}, "not both"),
        ({"metod": "PUT"}, "Did you mean 'method'"),
        ({"expect": {"status": "ok"}}, "expected a number like 200"),
        ({"expect": {"json": {"plan": 1}}}, "JSON pointer"),
        ({"expect": {"json": {"/rate": 0.5}}}, "fraction"),
    ],
)
def test_wrong_steps_say_what_was_expected(world: World, records: Records, arguments: JsonDict, message: str) -> None:
    """Before the review, in words."""
    with pytest.raises(UserError, match=message):
        upgrade(world, records, arguments=arguments)


def test_way_back_is_declared(world: World, records: Records) -> None:
    """A request, none needed, or why there is none."""
    with pytest.raises(UserError, match="none_needed"):
        upgrade(world, records, undo=None)
    with pytest.raises(UserError, match="takes no 'bearer'"):
        upgrade(world, records, undo={"bearer": "x"})
    assert upgrade(world, records, undo=None, irreversible="It was sent.").draft.inverse.body is None
