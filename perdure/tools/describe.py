"""``python -m perdure.tools.describe [name@version …]``: every tool as JSON, or the problem with code 1."""

from __future__ import annotations

import sys

from perdure.contracts.agent_ports import Tool
from perdure.contracts.http import ToolView
from perdure.describing import write_description
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
    """Write the listing."""
    return write_description(ToolView, lambda: [describe(tool) for tool in default_tools(named).values()])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
