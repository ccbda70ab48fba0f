"""`perdure effects`: the kinds of change that templates may name."""

from __future__ import annotations

import json
from collections.abc import Callable

from perdure.contracts.http import EffectKindView
from tests.cli.conftest import Ended
from tests.cli.world import World

Call = Callable[..., Ended]

VIEWS = [
    EffectKindView(
        kind=kind,
        version=2,
        about=f"Undoes {kind}.\n\nMore about it.",
        takes="`with`: word.",
        always_reversible=built_in,
        settle_seconds=0 if built_in else 30,
        parks=not built_in,
        origin=origin,
    )
    for kind, built_in, origin in (("files.link", True, "perdure"), ("acme.ticket", False, "acme 1.4.0"))
]


def test_effects_are_listed_with_how_they_are_taken_back(call: Call, world: World) -> None:
    """One line each: kind, whether its undo is built in, who ships it."""
    world.routes["GET /v1/effects"] = lambda query, body: VIEWS
    lines = call("effects", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["KIND", "files.link", "acme.ticket"]
    assert "declared by the step" in lines[2] and "acme 1.4.0" in lines[2]
    assert json.loads(call("effects", "list", "--json").out)[1]["version"] == 2


def test_one_effect_is_shown_with_what_it_takes(call: Call, world: World) -> None:
    """What a step says, when a no counts, who finishes it; an unknown kind is told with the nearest."""
    world.routes["GET /v1/effects"] = lambda query, body: VIEWS
    shown = call("effects", "show", "acme.ticket").out
    assert "`with`: word." in shown and "30 s after" in shown and "Somebody outside" in shown
    ended = call("effects", "show", "acme.tiket")
    assert ended.code == 66 and "Did you mean 'acme.ticket'" in ended.err
