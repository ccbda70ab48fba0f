"""What a step would do: a change, nothing, or what nobody can tell, which is never drawn as fine."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from perdure.contracts.plan import Forecast, PlannedEffect
from perdure.effects.base import EffectContext, EffectRequest
from perdure.effects.forecast import foresee
from perdure.effects.registry import default_effects
from tests.support.world import World


def would(world: World, kind: str, arguments: dict[str, Any], *, change: Any = lambda: None, **more: Any) -> Forecast:
    """The forecast of one step; ``change`` happens between its planning and the look."""
    effect = default_effects()[kind]
    draft = effect.plan(EffectRequest(id="x", arguments=arguments, runs_on="worker", **more), world.context())
    given = {"kind": kind, "version": 1, "summary": draft.summary, "body": draft.body, "target": draft.target}
    planned = PlannedEffect.model_validate({"id": "x", **given, "inverse": draft.inverse})
    change()

    def opening(_planned: PlannedEffect) -> nullcontext[EffectContext]:
        return nullcontext(world.context())

    (forecast,) = foresee([(effect, planned)], opening)
    return forecast


def test_each_step_says_what_it_would_do(world: World, tmp_path: Path) -> None:
    """By its probe; where somebody else was there, or nothing can be asked, nobody can tell."""
    for name in ("blue", "green"):
        (tmp_path / name).mkdir()
    link = tmp_path / "current"
    link.symlink_to("blue")
    there = {"path": str(link), "to": "green"}
    assert would(world, "files.link", there).would == "change"
    assert would(world, "files.link", {**there, "to": "blue"}).would == "nothing"

    def move() -> None:
        link.unlink()
        link.symlink_to("elsewhere")

    assert "somebody else" in (moved := would(world, "files.link", there, change=move)).detail
    assert moved.would == "unknown"
    untold = would(world, "shell.run", {"run": ["true"]}, undo="none_needed")
    assert (untold.would, untold.detail) == ("unknown", "the template gives no probe for this command")


def test_step_that_could_not_begin_now_is_not_drawn_as_a_change(world: World) -> None:
    """A step before it may make it possible: that cannot be told before it has happened."""
    asked = {"run": ["true"]}
    held = would(world, "shell.run", asked, probe=["false"], require=["false"], undo="none_needed")
    assert held.would == "unknown"
    assert held.detail.startswith("it could not begin now: `false` ended with 1")
