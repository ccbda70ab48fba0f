"""What a template says about tools, against the tools that there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from perdure.contracts.template import Place, Template
from perdure.contracts.template_agents import DraftStep
from perdure.policy.names import suggest

_SIGNS = frozenset("*?")


def named_tools(template: Template) -> set[str]:
    """Return every tool that a template names, in its steps and in their permissions; patterns left out."""
    return {name for _, name in _named(template)}


def check_tools(template: Template, tools: Collection[str]) -> Iterator[tuple[Place, str]]:
    """Give each name of a tool that does not exist, with its place and the nearest name.

    A rule about a tool that is not there would guard nothing, so it is refused as well.
    """
    for place, name in _named(template):
        if name not in tools:
            yield place, f"There is no tool {name!r}.{suggest(name, tools, 'tools')}"


def _named(template: Template) -> Iterator[tuple[Place, str]]:
    for position, step in enumerate(template.draft.steps if template.draft else []):
        yield from _of_step(("draft", "steps", position), step)


def _of_step(place: Place, step: DraftStep) -> Iterator[tuple[Place, str]]:
    for position, name in enumerate(step.tools):
        yield (*place, "tools", position), name
    for position, rule in enumerate(step.permissions):
        if not _SIGNS & set(rule.tool):
            yield (*place, "permissions", position, "tool"), rule.tool
