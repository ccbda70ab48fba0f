"""Tools are listed without a user's package entering the process that holds the decision key."""

from __future__ import annotations

import httpx
from pydantic import TypeAdapter

from perdure.contracts.http import ToolView
from perdure.tools.registry import shipped_tools


def test_tools_are_listed_with_their_definitions(owner: httpx.Client) -> None:
    """Each shipped tool with what it may change, its schema and the hash that call records carry."""
    answer = owner.get("/v1/tools", timeout=60)  # a process is started
    listed = TypeAdapter(list[ToolView]).validate_json(answer.content)
    expected = [(tool.spec.name, tool.spec.effect_class, tool.spec.digest(), "perdure") for tool in shipped_tools()]
    assert [(view.name, view.effect_class, view.digest, view.origin) for view in listed] == expected
