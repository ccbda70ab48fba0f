"""Agents: what a turn takes beside a bare loop and a loop by hand on Temporal, in the same pass on the same server."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack

from bench.agents.load import Load
from bench.agents.runs import ModelLog, Ours, Ran, floor, measure, measure_crowd, model, prepare
from bench.histories import History, read_histories
from bench.home import Home, new_id
from bench.kit import Figure, Samples, cpu_seconds, started_at, wait_until
from bench.sizes import stored_kb

TURNS = 100
CROWD, CROWD_TURNS = 50, 10

OVERHEAD_RATIO = 1.3
CPU_BUDGET_MS = 40
EVENTS_BUDGET, HISTORY_BUDGET_KB, PAYLOAD_BUDGET_KB = 13, 2, 16
GROWTH_BUDGET = 1.1
RESUME_BUDGET_SECONDS = 2.0

_SAY = "turns of one read of 20 KB; the model answers at once"


def measure_agents(home: Home, runs: int, say: Callable[[str], None], *, turns: int = TURNS) -> list[Figure]:
    """One agent of ``turns`` turns, a killed worker ``runs`` times, fifty agents at once; each with its floors."""
    with ExitStack() as stack:
        folder = home.folder / "agents"
        folder.mkdir()
        log = stack.enter_context(model(folder))
        ours = prepare(home, log, turns)
        address = home.state.temporal.address if home.state.temporal else ""
        database = folder / "by-hand.db"
        places = [log.url, str(ours.repository)]
        bare, bare_pid = stack.enter_context(floor("bare", folder, places))
        hand, hand_pid = stack.enter_context(floor("by_hand", folder, [*places, address, str(database)]))
        for begin, pid in ((bare, bare_pid), (hand, hand_pid), (ours.begin, home.pid("worker"))):
            measure(log, begin, Load(new_id(), 3), pid)
        samples = Samples()
        samples.begin()
        say(f"{turns} turns by a bare loop")
        without = measure(log, bare, Load(new_id(), turns), bare_pid)
        say(f"{turns} turns by hand on Temporal")
        by_hand = measure(log, hand, Load(new_id(), turns), hand_pid)
        say(f"{turns} turns by Perdure")
        figures = _one_agent(home, log, ours, turns, without, by_hand, samples)
        figures += _crowd(log, ours, hand, say)
        return [*figures, *_killed(home, log, ours, runs, say)]


def _one_agent(
    home: Home, log: ModelLog, ours: Ours, turns: int, without: Ran, by_hand: Ran, samples: Samples
) -> list[Figure]:
    load, before = Load(new_id(), turns), stored_kb(home.data)
    found = measure(log, ours.begin, load, home.pid("worker"))
    after = stored_kb(home.data)
    ours.wait(load.run)
    stored = sum(after.values()) - sum(before.values())
    samples.add(
        bare=without.overhead_ms, hand=by_hand.overhead_ms, ours=found.overhead_ms,
        ratio=found.overhead_ms / by_hand.overhead_ms,
        bare_cpu=without.cpu_ms, hand_cpu=by_hand.cpu_ms, ours_cpu=found.cpu_ms,
        hand_growth=by_hand.growth, ours_growth=found.growth,
        hand_cpu_growth=by_hand.cpu_growth, ours_cpu_growth=found.cpu_growth,
        stored=stored / turns, request=found.largest_bytes / 1000,
    )  # fmt: skip
    about = f"{turns} {_SAY}"
    return [
        samples.figure("ours", "a turn of an agent", "ms", note=about),
        samples.figure("hand", "  by hand on Temporal", "ms", note="sends the whole conversation each turn"),
        samples.figure("bare", "  by a bare loop", "ms", note="keeps nothing"),
        samples.figure("ratio", "a turn, over one by hand", "", budget=OVERHEAD_RATIO),
        samples.figure("ours_cpu", "worker CPU a turn", "ms", budget=CPU_BUDGET_MS),
        samples.figure("hand_cpu", "  by hand on Temporal", "ms"),
        samples.figure("bare_cpu", "  by a bare loop", "ms"),
        samples.figure("ours_growth", "last turns over first ones", "", budget=max(GROWTH_BUDGET, by_hand.growth)),
        samples.figure("hand_growth", "  by hand on Temporal", ""),
        samples.figure(
            "ours_cpu_growth",
            "worker CPU, last turns over first ones",
            "",
            budget=max(GROWTH_BUDGET, by_hand.cpu_growth),
        ),
        samples.figure("hand_cpu_growth", "  by hand on Temporal", ""),
        samples.figure("stored", "ledger and blobs a turn", "KB", note="of which 20 are the result"),
        samples.figure("request", "largest request", "KB", note="window of 200,000 tokens"),
        *_history_figures(_read(home, ours.jobs[load.run]), turns),
    ]


def _history_figures(histories: list[History], turns: int) -> list[Figure]:
    agents = [history for history in histories if history.workflow_id.startswith("agent/")]
    events = sum(len(history.events) for history in agents) / (turns + 2)
    size = sum(history.size_bytes for history in agents) / (turns + 2) / 1000
    largest = max(history.largest_payload_bytes for history in agents) / 1000
    return [
        Figure("history events a turn", "events", [events], EVENTS_BUDGET),
        Figure("history a turn", "KB", [size], HISTORY_BUDGET_KB),
        Figure("largest payload of the agent", "KB", [largest], PAYLOAD_BUDGET_KB),
    ]


def _crowd(log: ModelLog, ours: Ours, hand: Callable[..., None], say: Callable[[str], None]) -> list[Figure]:
    samples = Samples()
    samples.begin()
    say(f"{CROWD} agents at once by hand on Temporal")
    by_hand = measure_crowd(log, hand, [Load(new_id(), CROWD_TURNS, is_held=True) for _ in range(CROWD)])
    say(f"{CROWD} agents at once by Perdure")
    loads = [Load(new_id(), CROWD_TURNS, is_held=True) for _ in range(CROWD)]
    found = measure_crowd(log, ours.begin, loads)
    for load in loads:
        ours.wait(load.run)
    samples.add(ours=found, hand=by_hand, ratio=found / by_hand)
    about = f"{CROWD} × {CROWD_TURNS} turns, begun together; all end well"
    return [
        samples.figure("ours", f"{CROWD} agents at once", "s", note=about),
        samples.figure("hand", "  by hand on Temporal", "s"),
        samples.figure("ratio", f"{CROWD} agents, over by hand", "", budget=OVERHEAD_RATIO),
    ]


def _killed(home: Home, log: ModelLog, ours: Ours, runs: int, say: Callable[[str], None]) -> list[Figure]:
    """SIGKILL in the middle of a run: from the next worker's start to its first request."""
    samples = Samples()
    for number in range(runs):
        say(f"an agent's worker killed, {number + 1} of {runs}")
        wait_until(lambda: home.state.phase == "ready", "the installation to be whole")
        samples.begin()
        load = Load(new_id(), 30)
        ours.begin([load])
        wait_until(lambda load=load: log.last_turn(load.run) >= 15, "the run's middle")  # type: ignore[misc]
        worker, killed = home.pid("worker"), time.time()
        os.kill(worker, signal.SIGKILL)
        successor = wait_until(lambda worker=worker: _other(home, worker), "a new worker")  # type: ignore[misc]
        started = started_at(successor)
        first = wait_until(
            lambda load=load, started=started: [r.at for r in log.of(load.run) if r.at > started],  # type: ignore[misc]
            "the next request",
        )[0]
        used = cpu_seconds(successor)
        ours.wait(load.run)
        samples.add(start=first - started, kill=first - killed, cpu=used)
    return [
        samples.figure("start", "SIGKILL: new worker's start to next request", "s", budget=RESUME_BUDGET_SECONDS),
        samples.figure("cpu", "  of it: CPU of the new worker", "s"),
        samples.figure("kill", "SIGKILL to next request, supervised", "s"),
    ]


def _other(home: Home, pid: int) -> int:
    now = home.pid("worker")
    return now if now != pid else 0


def _read(home: Home, job_id: str) -> list[History]:
    temporal = home.state.temporal
    if temporal is None:
        raise RuntimeError("no embedded server")
    return asyncio.run(read_histories(temporal.address, job_id))
