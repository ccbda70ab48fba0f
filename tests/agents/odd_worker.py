"""A worker whose tools are odd in ways that tests need, under names that templates know: ``python odd_worker.py DATA``.

``shell.run`` has a grace of one second · ``memory.read`` finds nobody answering, and ``memory.cached`` stands in ·
``memory.write`` is external, slow and given a secret, which it tries to leave everywhere.
"""

from __future__ import annotations

import functools
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import worker
from perdure.contracts.agent_ports import Tool, ToolContext
from perdure.errors import ToolUnavailable
from perdure.runtime.ready import WORKER, tell_ready
from perdure.settings import read_settings
from perdure.tools.base import Traffic
from perdure.tools.decorator import tool
from perdure.tools.guard import guard_tools
from perdure.tools.registry import default_tools
from perdure.tools.shell import RUN


@tool(
    "memory.read",
    effect="read",
    host=lambda **_: "board.example.org",
    traffic=Traffic(failures=2, rest=timedelta(hours=1), fallback="memory.cached"),
)
def read_board(key: str = "") -> str:
    """Read the board."""
    raise ToolUnavailable("board.example.org does not answer.")


@tool("memory.cached", effect="read")
def read_cache(key: str = "") -> str:
    """Read what the board said yesterday."""
    return f"yesterday's {key}"


@tool("memory.write", touches=lambda key, **_: f"board:{key}", secrets=["board-token"])
def write_board(key: str, text: str, context: ToolContext) -> str:
    """Write to the board."""
    token = context.secrets["board-token"]
    if text == "hang":  # the test kills the worker meanwhile
        time.sleep(600)
    if text == "break":
        raise ValueError(f"refused with {token}")
    return f"wrote {text} as {token}\n" + f"{token} " * 2000


def odd_tools() -> dict[str, Tool]:
    """Every tool, within its traffic."""
    odd: dict[str, Tool] = {one.spec.name: one for one in (read_board, read_cache, write_board)}
    impatient = replace(RUN, spec=RUN.spec.model_copy(update={"grace_seconds": 1}))
    return guard_tools({**default_tools(), **odd, RUN.spec.name: impatient})


def main(data: Path) -> None:
    """Run the worker; all but its tools is as it always is."""
    worker.open_tools = lambda _settings: odd_tools()
    settings = read_settings(data=data)
    worker.main(settings, functools.partial(tell_ready, settings, WORKER))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
