"""``perdure tools``: what agents may be given, and what each of it may change."""

from __future__ import annotations

import json

import click

from perdure.cli.catalog import TOOLS
from perdure.cli.lazy import CONTEXT, LazyGroup
from perdure.cli.paper import Row, Span
from perdure.cli.session import Session, command
from perdure.contracts.http import ToolView
from perdure.errors import NotFound
from perdure.policy.names import suggest

_TONES = {"read": "good", "workspace": "title", "external": "warn"}


@click.group(
    "tools",
    cls=LazyGroup,
    sections=TOOLS,
    context_settings=CONTEXT,
    examples=[
        ("perdure tools list", "what there is, and what it may change"),
        ("perdure tools show files.edit", "its arguments"),
    ],
)
def tools() -> None:
    """Tools that a template may give to an agent: shipped ones, and those that the settings file names with a version.

    A tool reads, changes the job's private workspace, or is external; one that does not say counts as external.
    """


@command("list", examples=[("perdure tools list --json", "with schemas and the hash of each definition")])
def list_tools(session: Session) -> None:
    """List the tools that agents may be given."""
    found = _read(session)
    if session.as_json:
        session.answer(found)
        return
    rows: list[Row] = [
        [(one.name, "title"), _effect(one), one.origin, one.description.split("\n\n")[0]] for one in found
    ]
    session.paper.table(rows, header=("NAME", "MAY CHANGE", "FROM", "WHAT IT DOES"), shrink=3)


@command("show", examples=[("perdure tools show http.get", "arguments first, then its definition's hash")])
@click.argument("name")
def show_tool(session: Session, name: str) -> None:
    """Show one tool: what it does, its arguments, and the hash of its definition that call records carry."""
    found = _read(session)
    one = next((tool for tool in found if tool.name == name), None)
    if one is None:
        raise NotFound(f"There is no tool {name!r}.{suggest(name, [tool.name for tool in found], 'tools')}")
    if session.as_json:
        session.answer(one)
        return
    paper = session.paper
    paper.line((one.name, "title"), f"  {one.version}  ", _effect(one), f"  from {one.origin}")
    paper.line(one.description)
    for argument, schema in one.parameters.get("properties", {}).items():
        needed = "needed" if argument in one.parameters.get("required", []) else "optional"
        about = {key: value for key, value in schema.items() if key != "description"}
        paper.line(
            ("  " + argument, "title"), f"  {needed}  {schema.get('description', '')} ", (json.dumps(about), "dim")
        )
    paper.line(("definition ", "dim"), (one.digest[:12], "digest"))


def _read(session: Session) -> list[ToolView]:
    with session.door() as door:
        return door.get("/v1/tools", list[ToolView])


def _effect(tool: ToolView) -> Span:
    words = {"read": "nothing", "workspace": "the workspace", "external": "the outside"}
    return words[tool.effect_class], _TONES[tool.effect_class]
