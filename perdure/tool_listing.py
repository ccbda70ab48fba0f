"""The tools that agents may be given, described by a process of its own: users' packages never enter the API's.

The API holds the key that signs decisions; the worker, which runs tools, does not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from perdure.contracts.http import ToolView
from perdure.describing import describe_apart
from perdure.errors import SetupError, UserError
from perdure.settings import Settings, read_named

_MODULE = "perdure.tools.describe"


def list_tools(settings: Settings) -> list[ToolView]:
    """Return every tool: the shipped ones, then those that the settings name now."""
    return describe_tools(read_named(settings, "tools"))


def find_tools(settings: Settings, wanted: Collection[str]) -> Collection[str]:
    """Return the names of the tools that there are; users' are only looked for when ``wanted`` has more than shipped.

    Raises:
        UserError: it has, and users' tools cannot be loaded.
    """
    if not wanted:
        return ()
    from perdure.tools.registry import shipped_tools  # what tools need is loaded by who checks an agent's step

    shipped = {tool.spec.name for tool in shipped_tools()}
    if shipped.issuperset(wanted) or not read_named(settings, "tools"):
        return shipped
    try:
        return {view.name for view in list_tools(settings)}
    except SetupError as error:
        raise UserError(error.message) from error


def describe_tools(named: Sequence[str] = ()) -> list[ToolView]:
    """Return every tool: the shipped ones, then those of the entry points ``named`` with their versions.

    Raises:
        SetupError: one cannot be loaded; says which and what to do.
    """
    return describe_apart(_MODULE, "tools", ToolView, named)
