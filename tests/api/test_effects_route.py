"""Kinds of effect are listed without a user's package entering the process that holds the decision key."""

from __future__ import annotations

import httpx
from pydantic import TypeAdapter

from perdure.contracts.http import EffectKindView
from perdure.effects.registry import shipped_effects


def test_effects_are_listed_with_how_they_are_undone(owner: httpx.Client) -> None:
    """Each shipped kind with its version, and whether its undo is built in."""
    answer = owner.get("/v1/effects", timeout=60)  # a process is started
    listed = TypeAdapter(list[EffectKindView]).validate_json(answer.content)
    expected = [(one.kind, one.version, one.always_reversible, "perdure") for one in shipped_effects()]
    assert [(view.kind, view.version, view.always_reversible, view.origin) for view in listed] == expected
