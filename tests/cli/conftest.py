"""A world to talk to, and ways to call the command."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perdure.cli.main import run_line
from tests.cli.terminal import Terminal
from tests.cli.world import World, serve

NOT_OURS = {"NO_COLOR", "FORCE_COLOR", "PAGER", "LESS", "COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE"}
"""What a test's terminal does not inherit; the last one would make each start compile the library again."""


@dataclass(frozen=True)
class Ended:
    """How one call ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@pytest.fixture
def data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The installation's folder: short, because a Unix socket's path is; the environment points to it."""
    folder = tmp_path_factory.mktemp("w")
    monkeypatch.setenv("PERDURE_DATA", str(folder))
    for name in ("PERDURE_TOKEN", "PERDURE_API", "TEMPORAL_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def world(data: Path) -> Iterator[World]:
    """A world with its server at the installation's socket."""
    world = World()
    server = serve(world, data / "run" / "api.sock")
    yield world
    server.shutdown()
    server.server_close()


@pytest.fixture
def call(data: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Call the command line in this process, its output a pipe."""

    def line(*args: str) -> Ended:
        code = run_line(list(args))
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return line


@pytest.fixture
def terminal(data: Path) -> Iterator[Callable[..., Terminal]]:
    """Call the command line on a terminal."""
    opened: list[Terminal] = []

    def line(*args: str, columns: int = 80, cwd: Path | None = None, **env: str) -> Terminal:
        inherited = {key: value for key, value in os.environ.items() if key not in NOT_OURS}
        environment = {**inherited, "TERM": "xterm-256color", "PYTHONPATH": str(Path.cwd()), **env}
        opened.append(Terminal(*args, env=environment, columns=columns, cwd=cwd))
        return opened[-1]

    yield line
    for one in opened:
        one.__exit__(None, None, None)
