"""Short commands as a person feels them, and what each process pays for its imports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from bench.home import PERDURE, Home
from bench.kit import ROOT, Figure, Samples, run

HELP_BUDGET_MS = 200.0

COMMANDS: dict[str, list[str | Path]] = {
    "bare Python": [sys.executable, "-I", "-c", "pass"],
    "perdure --help": [PERDURE, "--help"],
    "perdure jobs": [PERDURE, "jobs"],
}

IMPORTS = {
    "worker": "import worker",
    "API": "import perdure.api.serving",
    "supervisor": "import perdure.runtime.supervisor",
    "renderer": "import perdure.runtime.renderer_child",
    "CLI (help)": "import perdure.cli.main",
    "CLI (run)": "import perdure.cli.run",
}


def measure_commands(home: Home, runs: int, say: Callable[[str], None]) -> list[Figure]:
    """Run every command and import in turn, ``runs`` times; the first round only warms the disk's cache."""
    say("commands and imports")
    imports: dict[str, list[str | Path]] = {
        name: [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"]
        for name, code in IMPORTS.items()
    }
    samples = Samples()
    for number in range(-1, runs):
        if number >= 0:
            samples.begin()
        for name, argv in {**COMMANDS, **imports}.items():
            ended = run(argv, env=home.environ)
            if number >= 0:
                samples.add(**{name: ended.wall * 1000, f"{name} cpu": ended.cpu * 1000})
    budgets = {"perdure --help": HELP_BUDGET_MS}
    figures = []
    for name in COMMANDS:
        figures.append(samples.figure(name, f"`{name}`, wall", "ms", budget=budgets.get(name)))
        figures.append(samples.figure(f"{name} cpu", f"`{name}`, CPU", "ms"))
    for name in IMPORTS:
        figures.append(samples.figure(f"{name} cpu", f"imports of the {name}, CPU", "ms"))
    return figures
