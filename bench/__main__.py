"""``python -m bench [ROOM …] [--runs N] [--page]``: measure and print one table."""

from __future__ import annotations

import argparse
import compileall
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from bench import report
from bench.agents.room import TURNS, measure_agents
from bench.commands import measure_commands
from bench.crashes import measure_kills
from bench.home import Home, running_home
from bench.kit import ROOT, Figure
from bench.releases import measure_releases
from bench.sizes import measure_huge_diff, measure_parked
from bench.starting import measure_rest, measure_up

ROOMS = {
    "up": "Bringing it up",
    "release": "A release",
    "kill": "After SIGKILL of the worker",
    "rest": "At rest",
    "sizes": "Sizes",
    "agents": "Agents",
    "commands": "Commands and imports",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the chosen rooms; 1 when a budget was not kept on a quiet machine."""
    options = _parse(arguments)
    now, about = datetime.now(UTC), report.machine()
    for part in ("perdure", "workflows", "activities", "worker.py"):
        _compile(part)
    rooms = _measure(options.rooms or list(ROOMS), options.runs, options.turns)
    print(report.table(rooms))
    quiet = report.is_quiet(rooms)
    print(f"\nAll runs: {report.write_json(rooms, about, now).relative_to(ROOT)}")
    if not quiet:
        print("This machine was busy with something else: trust CPU times and sizes, not wall times.")
    if options.page:
        report.write_page(rooms, about, now)
    broken = [figure.name for figures in rooms.values() for figure in figures if figure.kept is False]
    if broken:
        print(f"Over budget: {', '.join(broken)}")
    return 1 if broken and quiet else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Perdure with real processes.")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"what to measure: {', '.join(ROOMS)}; default: all")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of all that varies (default 5)")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help=f"of one agent (default {TURNS})")
    parser.add_argument("--page", action="store_true", help="write bench/RESULTS.md too")
    options = parser.parse_args(arguments)
    if unknown := set(options.rooms) - set(ROOMS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(ROOMS)}")
    return options


def _measure(wanted: Sequence[str], runs: int, turns: int) -> dict[str, list[Figure]]:
    """Measure room by room; those that need an installation share one."""
    found: dict[str, list[Figure]] = {}
    with ExitStack() as stack:
        homes: list[Home] = []

        def home() -> Home:
            if not homes:
                _say("bringing an installation up")
                homes.append(stack.enter_context(running_home()))
            return homes[0]

        measures: dict[str, Callable[[], list[Figure]]] = {
            "up": lambda: measure_up(runs, _say),
            "release": lambda: measure_releases(home(), runs, _say),
            "kill": lambda: measure_kills(home(), runs, _say),
            "rest": lambda: measure_rest(home(), _say),
            "sizes": lambda: [*measure_huge_diff(home(), _say), *measure_parked(home(), runs, _say)],
            "agents": lambda: measure_agents(home(), min(runs, 3), _say, turns=turns),
            "commands": lambda: measure_commands(home(), runs, _say),
        }
        for room, measure in measures.items():
            if room in wanted:
                found[ROOMS[room]] = measure()
    return found


def _compile(part: str) -> None:
    """As an installation does, so that no measured process compiles."""
    path = ROOT / part
    done = compileall.compile_dir(path, quiet=1) if path.is_dir() else compileall.compile_file(path, quiet=1)
    if not done:
        raise SystemExit(f"{path} does not compile")


def _say(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
