"""``perdure up`` to ready, and what every process takes when nothing happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.home import PERDURE, Home, home_environment, home_folder
from bench.kit import Figure, Samples, children_of, memory_mb, run
from perdure.runtime.state import read_state

UP_BUDGET_SECONDS = 4.0
REST_SECONDS = 5.0


def measure_up(runs: int, say: Callable[[str], None]) -> list[Figure]:
    """Bring new installations up, down, and up again."""
    cold, again = Samples(), Samples()
    for number in range(runs):
        say(f"up {number + 1} of {runs}")
        with home_folder() as folder:
            _up(folder, cold)
            run([PERDURE, "down"], env=home_environment(folder))
            _up(folder, again)
    return [
        cold.figure("up", "`perdure up` to ready, new folder", "s", budget=UP_BUDGET_SECONDS),
        *(cold.figure(name, f"  of it: begun → {name} ready", "ms") for name in ("temporal", "worker", "api")),
        again.figure("up", "`perdure up` to ready, second time", "s", budget=UP_BUDGET_SECONDS),
        *(again.figure(name, f"  of it: begun → {name} ready", "ms") for name in ("temporal", "worker", "api")),
    ]


def measure_rest(home: Home, say: Callable[[str], None]) -> list[Figure]:
    """Memory of each process of an installation that has worked and rests."""
    say(f"resting {REST_SECONDS:.0f} s")
    time.sleep(REST_SECONDS)
    figures = [_memory("supervisor", home.state.pid)]
    for name in ("temporal", "worker", "api"):
        pid = home.pid(name)
        figures.append(_memory(name, pid))
        figures += [_memory(f"{name}'s renderer", child) for child in children_of(pid)]
    total = Figure("at rest: all together", "MB RSS", [sum(figure.median for figure in figures)])
    return [*figures, total]


def _memory(name: str, pid: int) -> Figure:
    rss, pss = memory_mb(pid)
    return Figure(f"at rest: {name}", "MB RSS", [rss], note=f"{pss:.0f} MB PSS")


def _up(folder: Path, samples: Samples) -> None:
    samples.begin()
    begun, ready = time.perf_counter(), {}
    stop = threading.Event()
    thread = threading.Thread(target=lambda: ready.update(_watch_ready(folder / "data", begun, stop)))
    thread.start()
    ended = run([PERDURE, "up"], env=home_environment(folder))
    stop.set()
    thread.join()
    samples.add(up=ended.wall, **{name: (ready[name] - begun) * 1000 for name in ("temporal", "worker", "api")})


def _watch_ready(data: Path, begun: float, stop: threading.Event) -> dict[str, float]:
    """When each process was ready for the first time, as the supervisor wrote it."""
    seen: dict[str, float] = {}
    while not (stopping := stop.wait(0.005)) or len(seen) < 3:
        state = read_state(data)
        for process in state.processes if state else ():
            if process.ready:
                seen.setdefault(process.name, time.perf_counter())
        if stopping:
            return seen
    return seen
