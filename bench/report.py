"""One table, one JSON file, and the committed page with the last quiet run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.kit import NOISY, ROOT, Figure

FOLDER = Path(__file__).parent
PAGE = FOLDER / "RESULTS.md"

HEADINGS = ("", "median", "min", "max", "n", "budget", "kept", "noise", "")
_RIGHT = (False, True, True, True, True, True, False, False, False)

Rooms = Mapping[str, Sequence[Figure]]


def table(rooms: Rooms) -> str:
    """All figures as one Markdown table, a heading row for each room."""
    rows: list[tuple[str, ...]] = [HEADINGS, tuple("---:" if right else "---" for right in _RIGHT)]
    for room, figures in rooms.items():
        rows.append((f"**{room}**", *("" for _ in HEADINGS[1:])))
        rows += [_row(figure) for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(_line(row, widths) for row in rows)


def machine() -> dict[str, Any]:
    """What it was measured on."""
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "git": subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2],
        "load": round(os.getloadavg()[0], 2),
        "commit": _commit(),
    }


def is_quiet(rooms: Rooms) -> bool:
    """Whether no run had to share its core."""
    return all(figure.noise <= NOISY for figures in rooms.values() for figure in figures)


def write_json(rooms: Rooms, about: Mapping[str, Any], now: datetime) -> Path:
    """Write every single run to ``results/<date>.json``."""
    path = FOLDER / "results" / f"{now:%Y-%m-%d-%H%M%S}.json"
    path.parent.mkdir(exist_ok=True)
    figures = {room: [figure.to_json() for figure in found] for room, found in rooms.items()}
    whole = {"at": now.astimezone(UTC).isoformat(), "machine": about, "quiet": is_quiet(rooms), "figures": figures}
    path.write_text(json.dumps(whole, indent=2) + "\n")
    return path


def write_page(rooms: Rooms, about: Mapping[str, Any], now: datetime) -> None:
    """Write the committed page."""
    where = f"{about['cpu']}, {about['cores']} cores, Linux {about['kernel']}"
    with_what = f"Python {about['python']}, git {about['git']}"
    busy = (
        ""
        if is_quiet(rooms)
        else "\n**Other work ran on this machine: CPU times, sizes and counts hold, wall times less.**\n"
    )
    PAGE.write_text(
        f"# Figures\n\n`make bench` on {now:%d %B %Y} at commit {about['commit']}: {where}; {with_what}; "
        f"load {about['load']} when it began.\n{busy}\n"
        "n: runs; noise: wall over CPU time of a loop that only computes, just before each run (1.0: a quiet machine; "
        "empty: no time is measured).\n\n"
        f"{table(rooms)}\n"
    )


def _row(figure: Figure) -> tuple[str, ...]:
    verdict = {None: "", True: "✓", False: "✗"}[figure.kept]
    unit = f" {figure.unit}" if figure.unit else ""
    return (
        figure.name,
        f"{_number(figure.median)}{unit}",
        _number(min(figure.values)),
        _number(max(figure.values)),
        str(len(figure.values)),
        "" if figure.budget is None else f"{_number(figure.budget)}{unit}",
        verdict,
        f"{figure.noise:.1f}{' (noisy)' if figure.noise > NOISY else ''}" if figure.noise else "",
        figure.note,
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    if row[0] == "---":
        return "| " + " | ".join("-" * (width - 1) + cell[-1] for cell, width in zip(row, widths, strict=True)) + " |"
    cells = [
        cell.rjust(width) if _RIGHT[column] else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "| " + " | ".join(cells) + " |"


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"


def _cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown CPU")


def _commit() -> str:
    found = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or "unknown"
