"""`perdure tools`: what agents may be given."""

from __future__ import annotations

import json
from collections.abc import Callable

from perdure.contracts.http import ToolView
from tests.cli.conftest import Ended
from tests.cli.world import World

Call = Callable[..., Ended]

VIEWS = [
    ToolView(
        name=name,
        version="1",
        description=f"Does {name}.\n\nMore about it.",
        effect_class=effect_class,  # type: ignore[arg-type]
        origin=origin,
        digest="ab" * 32,
        parameters={"properties": {"word": {"type": "string", "description": "Said."}}, "required": ["word"]},
        may_repeat=False,
        limit_seconds=120,
    )
    for name, effect_class, origin in (
        ("files.read", "read", "perdure"),
        ("files.edit", "workspace", "perdure"),
        ("acme.say", "external", "acme 1.4.0"),
    )
]


def test_tools_are_listed_with_what_they_may_change(call: Call, world: World) -> None:
    """One line each: name, what it may change, who ships it, what it does."""
    world.routes["GET /v1/tools"] = lambda query, body: VIEWS
    lines = call("tools", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "files.read", "files.edit", "acme.say"]
    assert "the outside" in lines[3] and "acme 1.4.0" in lines[3] and "Does acme.say." in lines[3]
    assert json.loads(call("tools", "list", "--json").out)[2]["digest"] == "ab" * 32


def test_one_tool_is_shown_with_its_arguments(call: Call, world: World) -> None:
    """Arguments with their types, and the definition's hash; an unknown name is told with the nearest."""
    world.routes["GET /v1/tools"] = lambda query, body: VIEWS
    shown = call("tools", "show", "files.edit").out
    assert "word  needed  Said." in shown and "abababababab" in shown
    ended = call("tools", "show", "files.edti")
    assert ended.code == 66 and "Did you mean 'files.edit'" in ended.err
