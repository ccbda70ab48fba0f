"""Traffic of tools: how many at once and a minute, and leaving alone what does not answer."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import Tool
from perdure.errors import ToolFault, ToolUnavailable
from perdure.testing.tools import ToolBench
from perdure.tools.base import Traffic
from perdure.tools.decorator import tool
from perdure.tools.guard import Guard, guard_tools


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Service:
    """A thing behind a tool that answers or does not."""

    def __init__(self) -> None:
        self.is_up = True
        self.asked: list[str] = []

    def tools(self, traffic: Traffic) -> dict[str, Tool]:
        @tool("svc.get", effect="read", host=lambda host: host, traffic=traffic)
        def get(host: str) -> str:
            """Ask the service."""
            self.asked.append(host)
            if not self.is_up:
                raise ToolUnavailable(f"{host} did not answer.")
            return "fresh"

        @tool("svc.cached", effect="read")
        def cached(host: str) -> str:
            """Give an old answer."""
            return f"old answer of {host}"

        return {one.spec.name: one for one in (get, cached)}


def ask(guard: Guard, bench: ToolBench, host: str = "a.test") -> ToolOutcome:
    return guard.run("svc.get", {"host": host}, bench.context())


def test_what_does_not_answer_is_left_alone_for_a_while(bench: ToolBench) -> None:
    """After so many failures in a row nobody asks any more; after the rest one call finds out."""
    service, clock = Service(), Clock()
    guard = Guard(service.tools(Traffic(failures=3, rest=timedelta(seconds=30))), clock)
    service.is_up = False
    for _ in range(3):
        with pytest.raises(ToolUnavailable):
            ask(guard, bench)
    with pytest.raises(ToolFault, match=r"3 times in a row and is left alone for 30 s\. Go on with something else"):
        ask(guard, bench)
    assert len(service.asked) == 3
    assert guard.degraded() == ["svc.get on a.test is left alone: nobody answered 3 times in a row."]
    clock.now += 31
    with pytest.raises(ToolUnavailable):
        ask(guard, bench)
    with pytest.raises(ToolFault, match="left alone"):
        ask(guard, bench)
    clock.now += 31
    service.is_up = True
    assert ask(guard, bench).text == "fresh"
    assert (ask(guard, bench).text, guard.degraded()) == ("fresh", [])


def test_each_host_is_counted_for_itself(bench: ToolBench) -> None:
    """One host that is down leaves the others alone; a good answer begins the count anew."""
    service, clock = Service(), Clock()
    guard = Guard(service.tools(Traffic(failures=2)), clock)
    for is_up in (False, True, False):
        service.is_up = is_up
        if is_up:
            ask(guard, bench)
        else:
            with pytest.raises(ToolUnavailable):
                ask(guard, bench)
    assert guard.degraded() == []
    with pytest.raises(ToolUnavailable):
        ask(guard, bench)
    service.is_up = True
    assert ask(guard, bench, "b.test").text == "fresh"
    assert guard.degraded() == ["svc.get on a.test is left alone: nobody answered 2 times in a row."]


def test_a_declared_fallback_stands_in_and_is_told(bench: ToolBench) -> None:
    """Its outcome says for the model and the review that it is no fresh answer."""
    service = Service()
    guard = Guard(service.tools(Traffic(failures=1, fallback="svc.cached")), Clock())
    service.is_up = False
    for asked in (1, 1):
        outcome = ask(guard, bench)
        assert outcome.text.endswith("old answer of a.test")
        assert outcome.degraded.startswith("svc.cached stood in for svc.get on a.test")
        assert len(service.asked) == asked


def test_faults_that_are_answers_close_nothing(bench: ToolBench) -> None:
    """Only nobody answering counts: a refusal of the arguments is an answer."""

    @tool("picky", effect="read", traffic=Traffic(failures=1))
    def picky(word: str) -> str:
        """Refuse."""
        raise ToolFault("not that word")

    guard = Guard({"picky": picky}, Clock())
    for _ in range(3):
        with pytest.raises(ToolFault, match="not that word"):
            guard.run("picky", {"word": "x"}, bench.context())
    assert guard.degraded() == []


def test_no_more_run_at_once_than_may(bench: ToolBench) -> None:
    """Further calls wait for a place; each runs in the end."""
    lock, now, most = threading.Lock(), [0], [0]
    together = threading.Barrier(2, timeout=30)

    @tool("slow", effect="read", traffic=Traffic(concurrency=2))
    def slow(number: int) -> str:
        """Be there with one other."""
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait()
        with lock:
            now[0] -= 1
        return str(number)

    guard, ended = Guard({"slow": slow}), []
    calls = [
        threading.Thread(target=lambda n=n: ended.append(guard.run("slow", {"number": n}, bench.context()).text))
        for n in range(8)
    ]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert sorted(ended) == [str(n) for n in range(8)]
    assert most[0] == 2


def test_no_more_begin_a_minute_than_may(bench: ToolBench) -> None:
    """The third call of a minute waits until it is over, or says that it found no turn; a stopped one ends."""
    service, clock = Service(), Clock()
    guard = Guard(service.tools(Traffic(per_minute=2)), clock)
    bench.limit = timedelta(0)
    ask(guard, bench)
    clock.now += 10
    ask(guard, bench)
    with pytest.raises(ToolFault, match="no turn came within"):
        ask(guard, bench)
    assert ask(guard, bench, "b.test").text == "fresh"
    bench.limit, bench.is_stopped = timedelta(minutes=1), lambda: True
    with pytest.raises(ToolFault, match="was stopped"):
        ask(guard, bench)
    clock.now += 51
    assert ask(guard, bench).text == "fresh"


def test_unknown_tool_is_told_with_the_nearest(bench: ToolBench) -> None:
    """A model that mistypes a tool can mend it."""
    with pytest.raises(ToolFault, match=r"no tool 'svc\.gte'\. Did you mean 'svc\.get'"):
        Guard(Service().tools(Traffic()), Clock()).run("svc.gte", {}, bench.context())


def test_tools_of_an_installation_are_within_their_traffic(bench: ToolBench) -> None:
    """What the worker is given is guarded, and is the same tool in all else."""
    service = Service()
    tools = service.tools(Traffic(failures=1, fallback="svc.cached"))
    guarded = guard_tools(tools, Clock())
    assert guarded["svc.get"].spec == tools["svc.get"].spec
    assert guarded["svc.get"].target({"host": "a.test"}) == "tool:svc.get"
    service.is_up = False
    for _ in range(2):
        assert bench.call(guarded["svc.get"], host="a.test").degraded
    assert len(service.asked) == 1


def test_tools_that_are_guarded_already_are_counted_once(bench: ToolBench) -> None:
    """A guard over an installation's tools still counts each host for itself."""
    service, clock = Service(), Clock()
    guard = Guard(guard_tools(service.tools(Traffic(failures=1)), clock), clock)
    service.is_up = False
    with pytest.raises(ToolUnavailable):
        ask(guard, bench)
    service.is_up = True
    assert ask(guard, bench, "b.test").text == "fresh"
    assert guard.degraded() == ["svc.get on a.test is left alone: nobody answered 1 times in a row."]
