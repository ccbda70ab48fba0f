"""A worker that can be held at any call of its effects and its ledger: ``python holdable.py DATA [PATIENCE_SECONDS]``.

While ``DATA/holds/<point>`` exists, whoever comes to the point writes its process into ``<point>.reached`` and waits.
Points are named as in ``killable.py``, without the count: ``effect.do[git.tag]:before``,
``ledger.note_job[gathering]:after``.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import worker
from perdure.effects.registry import default_effects
from perdure.runtime.ready import WORKER, tell_ready
from perdure.settings import read_settings
from perdure.store.database import PATIENCE
from perdure.store.ledger import Ledger
from tests.crash.killable import Wrapped


class Holder:
    """Lets calls through, or holds them while the test says so."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """``call``, with a gate before and after it."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self._pass(f"{name}:before")
            answer = call(*args, **kwargs)
            self._pass(f"{name}:after")
            return answer

        return wrapped

    def _pass(self, point: str) -> None:
        gate = self._folder / point
        if gate.exists():
            with (self._folder / f"{point}.reached").open("a") as reached:
                reached.write(f"{os.getpid()}\n")
            while gate.exists():
                time.sleep(0.01)


def main(data: Path, patience: timedelta) -> None:
    """Run the worker with every effect and the ledger behind the holder."""
    holder = Holder(data / "holds")

    def effect_name(kind: str) -> Callable[[str, tuple[Any, ...]], str]:
        return lambda method, _args: f"effect.{method}[{kind}]"

    def ledger_name(method: str, args: tuple[Any, ...]) -> str:
        about = args[0] if args else None
        tag = getattr(about, "kind", "") or getattr(about, "phase", "")
        return f"ledger.{method}[{tag}]" if tag else f"ledger.{method}"

    def open_ledger(url: str) -> Wrapped:
        return Wrapped(opened(url, patience=patience), ledger_name, holder)

    opened = Ledger.open
    effects = {kind: Wrapped(effect, effect_name(kind), holder) for kind, effect in default_effects().items()}
    worker.default_effects = lambda _named: effects
    worker.Ledger = type("Opened", (), {"open": staticmethod(open_ledger)})
    settings = read_settings(data=data)
    worker.main(settings, functools.partial(tell_ready, settings, WORKER))


if __name__ == "__main__":
    main(Path(sys.argv[1]), timedelta(seconds=float(sys.argv[2])) if sys.argv[2:] else PATIENCE)
