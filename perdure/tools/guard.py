"""Runs tools within their traffic: concurrency, rate and a circuit breaker for each tool and host.

Lives as long as the worker: counts begin anew after a restart, which only makes it ask a dead host once more.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from perdure.contracts.agent import ToolOutcome, ToolSpec
from perdure.contracts.agent_ports import Tool, ToolContext
from perdure.contracts.base import JsonDict
from perdure.errors import ToolFault, ToolUnavailable
from perdure.policy.names import suggest
from perdure.tools.base import ModelTool, Traffic

_MINUTE = 60.0
_PATIENCE = 0.2
"""Seconds between two looks whether a waiting call was stopped."""


@dataclass
class _Lane:
    """What goes on with one tool at one host."""

    running: int = 0
    begun: deque[float] = field(default_factory=deque)
    """When the calls of the last minute began."""
    failures: int = 0
    """In a row, because nobody answered."""
    closed_until: float = 0.0
    is_trying: bool = False
    """One call is finding out whether the host answers again."""


class Guard:
    """Runs calls of many threads. ``clock`` counts seconds, like ``time.monotonic``."""

    def __init__(self, tools: Mapping[str, Tool], clock: Callable[[], float] = time.monotonic) -> None:
        # One that is guarded already would be counted twice, here without its host.
        self._tools = {name: tool.tool if isinstance(tool, GuardedTool) else tool for name, tool in tools.items()}
        self._clock = clock
        self._lanes: dict[tuple[str, str], _Lane] = {}
        self._changed = threading.Condition()

    def run(self, name: str, arguments: JsonDict, context: ToolContext) -> ToolOutcome:
        """Run a tool, or its declared fallback while nobody answers it; the outcome then says that it is degraded.

        Raises:
            ToolFault: as the tool raises it; also when there is no such tool, its host is left alone, or no place for
                the call was free within its limit.
        """
        tool = self._tool(name)
        host, traffic = _host_of(tool, arguments), _traffic_of(tool)
        lane = self._lane(name, host)
        where = f"{name} on {host}" if host else name
        if not self._may_try(lane):
            return self._stand_in(where, lane, traffic, arguments, context)
        try:
            with self._place(lane, traffic, where, context):
                outcome = tool.run(arguments, context)
        except ToolUnavailable as trouble:
            self._note_failure(lane, traffic)
            if not traffic.fallback:
                raise
            return self._fall_back(where, trouble.message, traffic.fallback, arguments, context)
        except BaseException:
            self._note_answer(lane, was_answered=False)
            raise
        self._note_answer(lane, was_answered=True)
        return outcome

    def degraded(self) -> list[str]:
        """Which tools are left alone now, one sentence each, sorted."""
        with self._changed:
            now = self._clock()
            closed = [(key, lane) for key, lane in self._lanes.items() if lane.closed_until > now]
        return sorted(
            f"{name}{f' on {host}' if host else ''} is left alone: nobody answered {lane.failures} times in a row."
            for (name, host), lane in closed
        )

    def _tool(self, name: str) -> Tool:
        if name not in self._tools:
            raise ToolFault(f"There is no tool {name!r}.{suggest(name, self._tools, 'tools')}")
        return self._tools[name]

    def _lane(self, name: str, host: str) -> _Lane:
        with self._changed:
            return self._lanes.setdefault((name, host), _Lane())

    def _may_try(self, lane: _Lane) -> bool:
        """Whether the host is asked: it answers as far as is known, or this call is the one that finds out."""
        with self._changed:
            if not lane.closed_until:
                return True
            if lane.is_trying or lane.closed_until > self._clock():
                return False
            lane.is_trying = True
            return True

    def _stand_in(
        self, where: str, lane: _Lane, traffic: Traffic, arguments: JsonDict, context: ToolContext
    ) -> ToolOutcome:
        seconds = max(0, round(lane.closed_until - self._clock()))
        why = f"{where} found nobody answering {lane.failures} times in a row and is left alone for {seconds} s"
        if not traffic.fallback:
            raise ToolFault(f"{why}. Go on with something else meanwhile.")
        return self._fall_back(where, why, traffic.fallback, arguments, context)

    def _fall_back(self, where: str, why: str, fallback: str, arguments: JsonDict, context: ToolContext) -> ToolOutcome:
        outcome = self._tool(fallback).run(arguments, context)
        degraded = f"{fallback} stood in for {where}: {why}"[:300]
        return outcome.model_copy(update={"degraded": degraded, "text": f"[{degraded}]\n{outcome.text}"})

    @contextmanager
    def _place(self, lane: _Lane, traffic: Traffic, where: str, context: ToolContext) -> Iterator[None]:
        """Hold one of the places that there are at once, and one of this minute."""
        deadline = self._clock() + context.limit.total_seconds()
        with self._changed:
            while (wait := self._wait(lane, traffic)) > 0:
                if context.is_stopped():
                    raise ToolFault(f"{where} was stopped while it waited for its turn.")
                if self._clock() >= deadline:
                    raise ToolFault(f"{where} is busy: no turn came within {context.limit}. Try later.")
                self._changed.wait(min(wait, _PATIENCE))
            lane.running += 1
            lane.begun.append(self._clock())
        try:
            yield
        finally:
            with self._changed:
                lane.running -= 1
                self._changed.notify_all()

    def _wait(self, lane: _Lane, traffic: Traffic) -> float:
        """Seconds after which to look again; 0: it may begin."""
        now = self._clock()
        while lane.begun and lane.begun[0] <= now - _MINUTE:
            lane.begun.popleft()
        if traffic.per_minute and len(lane.begun) >= traffic.per_minute:
            return max(0.001, lane.begun[0] + _MINUTE - now)
        return _PATIENCE if lane.running >= traffic.concurrency else 0.0

    def _note_failure(self, lane: _Lane, traffic: Traffic) -> None:
        with self._changed:
            lane.failures += 1
            lane.is_trying = False
            if lane.failures >= traffic.failures:
                lane.closed_until = self._clock() + traffic.rest.total_seconds()

    def _note_answer(self, lane: _Lane, *, was_answered: bool) -> None:
        with self._changed:
            lane.is_trying = False
            if was_answered:
                lane.failures, lane.closed_until = 0, 0.0


@dataclass(frozen=True)
class GuardedTool:
    """A tool that runs within its traffic; all else is the tool's own."""

    tool: Tool
    guard: Guard

    @property
    def spec(self) -> ToolSpec:
        """Its definition."""
        return self.tool.spec

    @property
    def origin(self) -> str:
        """Who ships it."""
        return getattr(self.tool, "origin", "unknown")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the secrets that it is given."""
        return getattr(self.tool, "secrets", ())

    def target(self, arguments: JsonDict) -> str:
        """What a call touches."""
        return self.tool.target(arguments)

    def run(self, arguments: JsonDict, context: ToolContext) -> ToolOutcome:
        """Run it, or what stands in for it; see :meth:`Guard.run`."""
        return self.guard.run(self.tool.spec.name, arguments, context)

    def probe(self, arguments: JsonDict, context: ToolContext) -> ToolOutcome | None:
        """What became of an earlier attempt."""
        return self.tool.probe(arguments, context)


def guard_tools(tools: Mapping[str, Tool], clock: Callable[[], float] = time.monotonic) -> dict[str, Tool]:
    """Return the same tools within their traffic, by name; one guard holds all of them."""
    guard = Guard(tools, clock)
    return {name: GuardedTool(tool, guard) for name, tool in tools.items()}


def _host_of(tool: Tool, arguments: JsonDict) -> str:
    return tool.host_of(arguments) if isinstance(tool, ModelTool) else ""


def _traffic_of(tool: Tool) -> Traffic:
    return tool.traffic if isinstance(tool, ModelTool) else Traffic()
