"""SIGKILL of the worker in the middle of an application: how long until the next effect begins."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from bench.home import Home
from bench.kit import Figure, Samples, started_at, wait_until

START_BUDGET_SECONDS = 2.0

_RESPAWN = "the supervisor waits longer each time a worker dies within a minute"

_SLOW = """\
cd "$(dirname "$0")" || exit 9
echo $$ >> began
while [ ! -e go ]; do sleep 0.02; done
touch slow-done
"""


def measure_kills(home: Home, runs: int, say: Callable[[str], None]) -> list[Figure]:
    """Kill the worker while the first of three effects is being done; its supervisor starts the next worker."""
    samples = Samples()
    for number in range(runs):
        say(f"kill {number + 1} of {runs}")
        samples.begin()
        _kill(home, number, samples)
    return [
        samples.figure(
            "start",
            "SIGKILL: new worker's start to next effect",
            "s",
            budget=START_BUDGET_SECONDS,
            note="the killed effect is probed and done again before the next one begins",
        ),
        samples.figure("kill", "SIGKILL to next effect, supervised", "s"),
        samples.figure("respawn", "  of it: kill → new process", "ms", note=_RESPAWN),
        samples.figure("ready", "  of it: new process → polls", "ms"),
        samples.figure("again", "  of it: polls → killed effect begun again", "ms"),
        samples.figure("next", "  of it: begun again → next effect", "ms"),
    ]


def _kill(home: Home, number: int, samples: Samples) -> None:
    folder = home.folder / f"crash-{number}"
    folder.mkdir()
    (folder / "slow").write_text(_SLOW)
    job_id = home.submit("crash", folder, name=str(number), folder=str(folder))
    home.ledger.wait(job_id, "job.phase", phase="waiting")
    home.approve(home.digest(job_id))
    wait_until(lambda: _lines(folder / "began"), "the first effect to begin")
    worker, ready = home.pid("worker"), home.data / "run" / "worker.ready"
    (folder / "go").touch()
    killed = time.time()
    os.kill(worker, signal.SIGKILL)
    successor = wait_until(lambda: _other_than(home, worker), "a new worker")
    started = started_at(successor)
    wait_until(lambda: _says(ready, successor), "the new worker to poll")
    polls = ready.stat().st_mtime
    again = home.ledger.wait(job_id, "effect.receipt", index=0)
    second = home.ledger.wait(job_id, "effect.intent", index=1)
    home.ledger.wait(job_id, "job.phase", phase="done")
    samples.add(
        start=second.seen - started,
        kill=second.seen - killed,
        respawn=(started - killed) * 1000,
        ready=(polls - started) * 1000,
        again=(again.seen - polls) * 1000,
        next=(second.seen - again.seen) * 1000,
    )
    wait_until(lambda: home.state.phase == "ready", "the installation to be whole again")


def _other_than(home: Home, pid: int) -> int:
    now = home.pid("worker")
    return now if now != pid else 0


def _says(ready: Path, pid: int) -> bool:
    return ready.exists() and ready.read_text("ascii").strip() == str(pid)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
