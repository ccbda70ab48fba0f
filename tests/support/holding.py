"""Hold a worker exactly where a test wants to interfere, and let it go again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.forked import Forked
from tests.support.installation import ROOT, Installation, wait_until

_SCRIPT = ROOT / "tests" / "crash" / "holdable.py"


def start_holdable(home: Installation, *, patience_seconds: float | None = None) -> Forked:
    """Start a worker that can be held; wait until it polls. ``patience_seconds``: it waits so long for the ledger."""
    folder = home.settings.data / "holds"
    folder.mkdir(exist_ok=True)
    ready = home.settings.socket.parent / "worker.ready"
    ready.unlink(missing_ok=True)
    argv = [str(_SCRIPT), str(home.settings.data)]
    argv += [] if patience_seconds is None else [str(patience_seconds)]
    process = Forked(argv, home.environ, home.settings.logs / f"worker-{len(home.workers)}.log")
    home.workers.append(process)
    wait_until(
        lambda: ready.exists() or process.poll() is not None, "a worker that can be held", explain=home.worker_log
    )
    return process


def ensure_holdable(home: Installation) -> None:
    """Start one, unless the last worker is one and lives."""
    living = [process for process in home.workers if process.poll() is None]
    if not any(str(_SCRIPT) in process.args for process in living):
        start_holdable(home)


def newest_log(home: Installation) -> str:
    """All that the worker that was started last has written."""
    return (home.settings.logs / f"worker-{len(home.workers) - 1}.log").read_text(errors="replace")


@dataclass
class Hold:
    """One closed gate in the worker's way."""

    gate: Path
    home: Installation

    def wait(self, count: int = 1) -> list[int]:
        """Wait until so many calls have come to the point; return the worker processes they are in."""
        reached = self.gate.with_name(f"{self.gate.name}.reached")

        def are_there() -> list[int] | None:
            found = reached.read_text().split() if reached.exists() else []
            return [int(process) for process in found] if len(found) >= count else None

        found: list[int] = wait_until(are_there, f"{count} at {self.gate.name}", explain=self.home.worker_log)
        return found

    def release(self) -> None:
        """Open the gate; may be called twice."""
        self.gate.unlink(missing_ok=True)


@contextmanager
def held(home: Installation, point: str) -> Iterator[Hold]:
    """Close the gate at ``point`` until it is released, at the latest at the end of the block."""
    gate = home.settings.data / "holds" / point
    gate.with_name(f"{point}.reached").unlink(missing_ok=True)
    gate.touch()
    hold = Hold(gate, home)
    try:
        yield hold
    finally:
        hold.release()
