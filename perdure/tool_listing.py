"""The tools that agents may be given, described by a process of its own: users' packages never enter the API's.

The API holds the key that signs decisions; the worker, which runs tools, does not.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Sequence

from pydantic import TypeAdapter, ValidationError

from perdure.contracts.http import Problem, ToolView
from perdure.errors import SetupError, UserError
from perdure.settings import Settings, read_named_tools

_LIMIT_SECONDS = 25
_MODULE = "perdure.tools.describe"


def list_tools(settings: Settings) -> list[ToolView]:
    """Return every tool: the shipped ones, then those that the settings name now."""
    return describe_tools(read_named_tools(settings))


def find_tools(settings: Settings, wanted: Collection[str]) -> Collection[str]:
    """Return the names of the tools that there are; users' are only looked for when ``wanted`` has more than shipped.

    Raises:
        UserError: it has, and users' tools cannot be loaded.
    """
    if not wanted:
        return ()
    from perdure.tools.registry import shipped_tools  # what tools need is loaded by who checks an agent's step

    shipped = {tool.spec.name for tool in shipped_tools()}
    if shipped.issuperset(wanted) or not read_named_tools(settings):
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
    argv = [sys.executable, "-P", "-E", "-m", _MODULE, *named]
    try:
        ended = subprocess.run(argv, env={}, cwd="/", capture_output=True, timeout=_LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise SetupError(
            f"Loading tools did not end within {_LIMIT_SECONDS} s. Look at [tools] in the settings file."
        ) from None
    try:
        if ended.returncode == 0:
            return TypeAdapter(list[ToolView]).validate_json(ended.stdout)
        problem = Problem.model_validate_json(ended.stdout)
    except ValidationError:
        said = ended.stderr.decode("utf-8", "replace").strip()[-500:]
        raise SetupError(f"Tools could not be described (exit code {ended.returncode}): {said}") from None
    raise SetupError(problem.message)
