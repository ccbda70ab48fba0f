"""``python -m perdure.tools.describe [name@version …]``: every tool as JSON, or the problem with code 1."""

from __future__ import annotations

import os
import sys

from pydantic import TypeAdapter

from perdure.contracts.agent_ports import Tool
from perdure.contracts.http import Problem, ToolView
from perdure.errors import SetupError
from perdure.tools.registry import default_tools


def describe(tool: Tool) -> ToolView:
    """Return a tool as people see it."""
    spec = tool.spec
    return ToolView(
        name=spec.name,
        version=spec.version,
        description=spec.description,
        effect_class=spec.effect_class,
        origin=getattr(tool, "origin", "unknown"),
        digest=spec.digest(),
        parameters=spec.parameters,
        may_repeat=spec.may_repeat,
        limit_seconds=spec.limit_seconds,
    )


def main(named: list[str]) -> int:
    """Write the listing to the real stdout; what a package prints while it is imported goes to stderr."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        views = [describe(tool) for tool in default_tools(named).values()]
    except SetupError as error:
        answer.write(
            Problem(kind="SetupError", message=error.message, exit_code=error.exit_code).model_dump_json().encode()
        )
        answer.close()
        return 1
    answer.write(TypeAdapter(list[ToolView]).dump_json(views))
    answer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
