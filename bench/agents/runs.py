"""Runs the work load by each of the three, and looks from outside: the model's log, ``/proc``, the ledger's pages."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO

import httpx

from bench.agents.load import Load, write_parts
from bench.home import Home
from bench.kit import ROOT, cpu_seconds, wait_until
from bench.projects import git

EDGE = 50
"""So many first and last turns are compared; of a shorter run a third."""
_TICK = 0.01
"""Seconds: less of CPU time is not told apart."""


@dataclass(frozen=True)
class Request:
    """One line of the model's log."""

    at: float
    turn: int
    size_bytes: int
    run: str
    is_summary: bool


@dataclass
class ModelLog:
    """The scripted model as seen from outside."""

    url: str
    path: Path
    requests: list[Request] = field(default_factory=list)
    _read: int = 0

    def of(self, run: str) -> list[Request]:
        """The requests of a run so far, summaries not counted."""
        with self.path.open() as file:
            file.seek(self._read)
            while (line := file.readline()).endswith("\n"):
                at, turn, size, name, summary = line.split()
                self.requests.append(Request(float(at), int(turn), int(size), name, summary == "1"))
                self._read = file.tell()
        return [request for request in self.requests if request.run == run and not request.is_summary]

    def last_turn(self, run: str) -> int:
        """The turn that was asked last; -1 before the first."""
        return max((request.turn for request in self.of(run)), default=-1)

    def hold(self) -> None:
        """Hold first and last answers again."""
        self._post("hold")

    def begin(self) -> None:
        """Let the first answers go that are held."""
        self._post("begin")

    def end(self) -> None:
        """Let the last answers go that are held."""
        self._post("end")

    def _post(self, what: str) -> None:
        httpx.post(f"{self.url}/{what}", verify=False).raise_for_status()


@dataclass(frozen=True)
class Ran:
    """One run as it was measured."""

    gaps_ms: list[float]
    """From one turn's request to the next one's: the model answers at once, so all of it is overhead."""
    cpu_ms: float
    """Of the process that asks, for one turn."""
    cpu_growth: float
    """Of the process that asks: the last turns over the first ones."""
    largest_bytes: int
    asked_twice: int

    @property
    def overhead_ms(self) -> float:
        """Mean of a turn."""
        return statistics.mean(self.gaps_ms)

    @property
    def growth(self) -> float:
        """Median of the last turns over the first ones."""
        edge = edge_of(len(self.gaps_ms))
        return statistics.median(self.gaps_ms[-edge:]) / statistics.median(self.gaps_ms[:edge])


Begin = Callable[[Sequence[Load]], None]


def measure(log: ModelLog, begin: Begin, load: Load, pid: int) -> Ran:
    """Begin one run and follow it to its last request; CPU is counted from the first request on."""
    begin([load])
    wait_until(lambda: log.of(load.run), f"the first request of {load.run}", pause=0.005)
    edge = edge_of(load.turns)
    before, first, last, after = (_cpu_at(log, load, pid, turn) for turn in (0, edge, load.turns - edge, load.turns))
    found = {request.turn: request for request in reversed(log.of(load.run)) if request.turn <= load.turns}
    ordered = [found[turn] for turn in sorted(found)]
    gaps = [(later.at - earlier.at) * 1000 for earlier, later in pairwise(ordered)]
    twice = len([request for request in log.of(load.run) if request.turn <= load.turns]) - len(found)
    growth = (after - last) / max(first - before, _TICK)
    largest = max(request.size_bytes for request in ordered)
    return Ran(gaps, (after - before) * 1000 / load.turns, growth, largest, twice)


def edge_of(turns: int) -> int:
    """How many first and last turns of a run are compared."""
    return max(1, min(EDGE, turns // 3))


def _cpu_at(log: ModelLog, load: Load, pid: int, turn: int) -> float:
    what = f"turn {turn} of {load.run}"
    wait_until(lambda: log.last_turn(load.run) >= turn, what, limit=1200, pause=0.01)
    return cpu_seconds(pid)


def measure_crowd(log: ModelLog, begin: Begin, loads: Sequence[Load]) -> float:
    """Begin many runs together; return the seconds from there until the last of them asked its last.

    No run ends before: what follows an agent's end (checks, a plan) is nobody's turn.
    """
    log.hold()
    begin(loads)
    wait_until(lambda: all(log.of(load.run) for load in loads), "all first requests", limit=300)
    log.begin()
    released = time.time()
    wait_until(lambda: all(log.last_turn(load.run) >= load.turns for load in loads), "all last turns", limit=600)
    ends = [next(r.at for r in log.of(load.run) if r.turn == load.turns) for load in loads]
    log.end()
    return max(ends) - released


@contextmanager
def model(folder: Path) -> Iterator[ModelLog]:
    """The scripted model as a process."""
    path = folder / "model.log"
    path.touch()
    with _process(["bench.agents.model", str(path)], folder) as process:
        assert process.stdout is not None
        yield ModelLog(process.stdout.readline().strip(), path)


@contextmanager
def floor(name: str, folder: Path, arguments: Sequence[str]) -> Iterator[tuple[Begin, int]]:
    """A floor as a process that takes loads; gives how to begin some, and its pid."""
    with _process([f"bench.agents.{name}", *arguments], folder) as process:
        assert process.stdin is not None
        stdin: IO[str] = process.stdin

        def begin(loads: Sequence[Load]) -> None:
            for load in loads:
                stdin.write(f"{load.run} {load.turns} {int(load.is_held)}\n")
            stdin.flush()

        yield begin, process.pid


@contextmanager
def _process(words: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    with ExitStack() as stack:
        errors = stack.enter_context((folder / f"{words[0]}.log").open("w"))
        argv = [sys.executable, "-m", *words]
        process = stack.enter_context(
            subprocess.Popen(
                argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1
            )
        )
        try:
            yield process
        finally:
            process.kill()


@dataclass
class Ours:
    """Perdure's agents on one installation: jobs of the template ``agent``."""

    home: Home
    repository: Path
    jobs: dict[str, str] = field(default_factory=dict)
    """Job's id by the run's name."""

    def begin(self, loads: Sequence[Load]) -> None:
        """Start a job for each."""
        for load in loads:
            check = ["sh", "-c", "test -e NO*"]  # its whole name in the task would look like the note to the model
            about = {"repo": str(self.repository), "name": load.run, "task": load.task, "check": check}
            self.jobs[load.run] = self.home.submit("agent", self.repository, **about)

    def wait(self, run: str) -> None:
        """Until its plan waits for a person: the agent has ended well."""
        self.home.ledger.wait(self.jobs[run], "job.phase", phase="waiting", limit=120)


def prepare(home: Home, log: ModelLog, parts: int) -> Ours:
    """Name the model in the settings, and make the repository with all that is read."""
    text = (
        '[models]\ndefault = "scripted"\n[models.scripted]\nprovider = "compatible"\n'
        f'base_url = "{log.url}/v1"\nmodel = "scripted"\nwindow = 200000\n'
        'price = {input = "1.00 USD", output = "2.00 USD"}\n'
    )
    (home.data / "config.toml").write_text(text)
    repository = home.folder / "parts"
    write_parts(repository, parts)
    git(repository, "init", "-q", "-b", "main")
    git(repository, "config", "user.name", "Mara Maintainer")
    git(repository, "config", "user.email", "mara@example.org")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "feat: begin")
    return Ours(home, repository)
