"""Every tool by its name: those that come with Perdure, and users' that settings name with a version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from perdure.contracts.agent import EffectClass
from perdure.contracts.agent_ports import Tool
from perdure.entries import load_named
from perdure.errors import SetupError
from perdure.policy.names import suggest
from perdure.settings import Settings, read_named
from perdure.tools.base import ModelTool
from perdure.tools.guard import guard_tools


def shipped_tools() -> tuple[ModelTool[Any], ...]:
    """The tools that come with Perdure, in the order of the reference. Their modules are imported here."""
    from perdure.tools import (
        ask,
        calls,
        delegate,
        files_glob,
        files_grep,
        files_patch,
        files_read,
        files_write,
        git,
        http,
        memory,
        output,
        shell,
    )

    return (
        files_read.READ,
        files_glob.GLOB,
        files_grep.GREP,
        files_write.WRITE,
        files_write.EDIT,
        files_patch.PATCH,
        files_write.REMOVE,
        shell.RUN,
        git.GIT,
        http.GET,
        output.OUTPUT,
        calls.LOOK,
        calls.CANCEL,
        memory.READ,
        memory.WRITE,
        ask.ASK,
        delegate.DELEGATE_TOOL,
    )


def default_tools(named: Sequence[str] = ()) -> dict[str, Tool]:
    """Return every tool by name: the shipped ones, then those of ``named`` entry points, ``name@version`` each.

    An entry point that is not named is never imported, whatever is installed.

    Raises:
        SetupError: one is not installed, is there in another version, gives no tools, or takes a name that is taken.
    """
    found: dict[str, Tool] = {tool.spec.name: tool for tool in shipped_tools()}
    for entry in named:
        for tool in load_entry(entry):
            if tool.spec.name in found:
                raise SetupError(f"[tools]: {entry} brings {tool.spec.name!r}, and there is a tool of that name.")
            found[tool.spec.name] = tool
    for tool in found.values():
        _check_fallback(tool, found)
    return found


def _check_fallback(tool: Tool, tools: Mapping[str, Tool]) -> None:
    """A fallback runs without being asked about: it may do no more than the tool that was."""
    fallback = tool.traffic.fallback if isinstance(tool, ModelTool) else ""
    if not fallback:
        return
    what = f"[tools]: {tool.spec.name} falls back on {fallback!r}"
    if fallback not in tools:
        raise SetupError(f"{what}, and there is no such tool.{suggest(fallback, tools, 'tools')}")
    effects = get_args(EffectClass)
    if effects.index(tools[fallback].spec.effect_class) > effects.index(tool.spec.effect_class):
        raise SetupError(
            f"{what}, which may change more ({tools[fallback].spec.effect_class}) than it ({tool.spec.effect_class}). "
            "Name one that changes no more."
        )


def open_tools(settings: Settings) -> dict[str, Tool]:
    """Return every tool of an installation by name, as its settings name them, within its traffic.

    Raises:
        SetupError: as :func:`default_tools` says.
    """
    return guard_tools(default_tools(read_named(settings, "tools")))


def load_entry(named: str) -> list[Tool]:
    """Import the tools of one entry point, exactly in the version that was named. Raises ``SetupError``."""
    tools, origin, where = load_named("tools", named)
    if not tools or not all(_is_tool(tool) for tool in tools):
        raise SetupError(
            f"[tools]: {named} ({where}) gives no tools; expected a function with @tool, or a list of them."
        )
    return [_from(tool, origin) for tool in tools]


def _is_tool(tool: object) -> bool:
    return all(hasattr(tool, name) for name in ("spec", "target", "run", "probe"))


def _from(tool: Tool, origin: str) -> Tool:
    return replace(tool, origin=origin) if isinstance(tool, ModelTool) else tool
