"""A worker that SIGKILLs itself at one point: ``python killable.py DATA POINT``. The worker's own code is untouched.

A point is ``<port>.<method>[<kind>]#<nth call>:<before|after>``, for example ``effect.do[git.tag]#1:after``.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import worker
from perdure.effects.registry import default_effects
from perdure.runtime.ready import WORKER, tell_ready
from perdure.settings import read_settings
from perdure.store.agents import Agents
from perdure.store.ledger import Ledger
from perdure.store.schedule_ledger import Schedules
from perdure.tools.registry import default_tools

_POINT = re.compile(r"(?P<call>[a-z_.]+)(?:\[(?P<kind>[a-z._]+)\])?#(?P<nth>\d+):(?P<when>before|after)")


class Killer:
    """Counts calls and dies at the one that was asked for."""

    def __init__(self, point: str) -> None:
        match = _POINT.fullmatch(point)
        assert match is not None, f"no such point: {point}"
        self._name = match["call"] + (f"[{match['kind']}]" if match["kind"] else "")
        self._nth, self._when = int(match["nth"]), match["when"]
        self._calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """``call``, with death before or after it when it is the one."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self._calls[name] += 1
                mine = name == self._name and self._calls[name] == self._nth
            if mine and self._when == "before":
                die()
            answer = call(*args, **kwargs)
            if mine:
                die()
            return answer

        return wrapped


def die() -> None:
    """End like a power cut: no handler, no flush, no atexit."""
    os.kill(os.getpid(), signal.SIGKILL)


class Wrapped:
    """A port whose methods pass through the killer."""

    def __init__(self, port: Any, name_of: Callable[[str, tuple[Any, ...]], str], killer: Killer) -> None:
        self._port, self._name_of, self._killer = port, name_of, killer

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._port, method)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._killer.wrap(self._name_of(method, args), found)(*args, **kwargs)

        return call


def main(data: Path, point: str) -> None:
    """Run the worker with every effect and the ledger behind the killer."""
    killer = Killer(point)

    def effect_name(kind: str) -> Callable[[str, tuple[Any, ...]], str]:
        return lambda method, _args: f"effect.{method}[{kind}]"

    def tool_name(name: str) -> Callable[[str, tuple[Any, ...]], str]:
        return lambda method, _args: f"tool.{method}[{name}]"

    def ledger_name(method: str, args: tuple[Any, ...]) -> str:
        kind = getattr(args[0], "kind", "") if args else ""
        return f"ledger.{method}[{kind}]" if kind else f"ledger.{method}"

    effects = {kind: Wrapped(effect, effect_name(kind), killer) for kind, effect in default_effects().items()}
    tools = {name: Wrapped(tool, tool_name(name), killer) for name, tool in default_tools().items()}
    worker.open_tools = lambda _settings: tools
    worker.Agents = lambda database: Wrapped(Agents(database), lambda method, _args: f"agents.{method}", killer)
    worker.Schedules = lambda database: Wrapped(
        Schedules(database), lambda method, _args: f"schedules.{method}", killer
    )
    open_ledger = Ledger.open
    worker.default_effects = lambda _named: effects
    worker.Ledger = type(
        "Opened", (), {"open": staticmethod(lambda url: Wrapped(open_ledger(url), ledger_name, killer))}
    )
    settings = read_settings(data=data)
    worker.main(settings, functools.partial(tell_ready, settings, WORKER))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
