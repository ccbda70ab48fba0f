"""Numbers and how far to trust them: figures, a loop that tells a noisy machine, CPU and memory of processes."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
NOISY = 1.25
"""A loop that only computes and takes this much more wall time than CPU time was waiting for somebody else."""

_LOOPS = 400_000
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Figure:
    """One measured quantity over several runs. ``budget`` is the largest median that keeps the promise."""

    name: str
    unit: str
    values: list[float] = field(default_factory=list)
    budget: float | None = None
    note: str = ""
    noise: float = 0.0
    """Median of wall over CPU of the calibration loop just before each run; 1: a quiet machine, 0: nothing is timed."""

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def kept(self) -> bool | None:
        """Whether the budget holds; ``None`` without one."""
        return None if self.budget is None else self.median <= self.budget

    def to_json(self) -> dict[str, Any]:
        """Everything, the single runs too."""
        spread = {"median": self.median, "min": min(self.values), "max": max(self.values)}
        return {**vars(self), **spread, "kept": self.kept}


class Samples:
    """Collects runs of several quantities that are measured together, and the noise before each run."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}
        self._noise: list[float] = []

    def begin(self) -> None:
        """Call before each run."""
        self._noise.append(calibrate())

    def add(self, **values: float) -> None:
        """Note one run's quantities."""
        for name, value in values.items():
            self._values.setdefault(name, []).append(value)

    def __getitem__(self, name: str) -> list[float]:
        return self._values[name]

    def figure(self, key: str, name: str, unit: str, *, budget: float | None = None, note: str = "") -> Figure:
        """The quantity ``key`` as a figure."""
        return Figure(name, unit, self._values[key], budget, note, statistics.median(self._noise or [0.0]))

    @property
    def names(self) -> list[str]:
        """What was added, in order."""
        return list(self._values)


def calibrate() -> float:
    """Wall over CPU time of a fixed loop: 1 when nobody else wants this core."""
    wall, cpu = time.perf_counter(), time.process_time()
    total = 0
    for number in range(_LOOPS):
        total += number
    return (time.perf_counter() - wall) / max(time.process_time() - cpu, 1e-6)


@dataclass(frozen=True)
class Ran:
    """One command's end."""

    wall: float
    cpu: float
    """User and system seconds, of its children too."""
    output: str


def run(argv: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path | None = None) -> Ran:
    """Run a command to its end. Raises ``RuntimeError`` with what it wrote when it fails."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run([str(word) for word in argv], env=env, cwd=cwd, capture_output=True, text=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 3):  # 3: `perdure run --detach` left a job that waits
        raise RuntimeError(f"{' '.join(map(str, argv))} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(wall, cpu, ended.stdout)


def environment(home: Path, **more: str) -> dict[str, str]:
    """What measured processes get: nothing of this shell but its path, and bytecode is written as users have it."""
    keep = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    fixed = {"HOME": str(home), "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    return {**keep, **fixed, **more}


def wait_until(look: Callable[[], T], what: str, *, limit: float = 90.0, pause: float = 0.002) -> T:
    """Look until there is something to return. Raises ``RuntimeError`` after ``limit`` seconds."""
    deadline = time.perf_counter() + limit
    while not (found := look()):
        if time.perf_counter() > deadline:
            raise RuntimeError(f"waited {limit:.0f} s for {what}")
        time.sleep(pause)
    return found


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident and proportional memory of a process in MB (10^6 bytes)."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 / 1e6 for line in rollup[1:]}
    return sizes["Rss"], sizes["Pss"]


def cpu_seconds(pid: int, *, children: bool = False) -> float:
    """User and system time that a process has used; with ``children`` those too that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11 : 15 if children else 13]) / _TICK


def started_at(pid: int) -> float:
    """When a process was started, by the clock of ``time.time``; exact to a kernel tick (10 ms)."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / _TICK
    return time.time() - age


def children_of(pid: int) -> list[int]:
    """Child processes, by the kernel's own list."""
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text("ascii").split()]


def scratch() -> Path:
    """A new folder with a path short enough for a Unix socket beneath it."""
    return Path(tempfile.mkdtemp(prefix="perdure-bench-"))
