"""The registry of effects, and what holds for every kind in it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from perdure.contracts.canonical import canonical_bytes
from perdure.effects.base import Found
from perdure.effects.registry import default_effects
from tests.support.world import Planned, World


def _commit(world: World) -> Planned:
    return world.plan_commit(world.draft({"VERSION": "1.3.0\n"}))


def _tag(world: World) -> Planned:
    return world.plan("git.tag", {"repo": str(world.repo), "name": "v1", "at": world.ref("main"), "message": "m"})


def _push(world: World) -> Planned:
    world.git("tag", "v1")
    return world.plan("git.push", {"repo": str(world.repo), "remote": "origin", "refs": ["v1"]})


def _write(world: World) -> Planned:
    return world.plan("files.write", {"root": str(world.folder), "path": "x", "content": "y"})


def _run(world: World) -> Planned:
    path = str(world.folder / "x")
    return world.plan(
        "shell.run", {"run": ["touch", path]}, undo=["rm", path], probe=["test", "-e", path], runs_on="worker"
    )


MAKERS: dict[str, Callable[[World], Planned]] = {
    "git.commit": _commit,
    "git.tag": _tag,
    "git.push": _push,
    "files.write": _write,
    "shell.run": _run,
}


def test_every_kind_is_tried_here() -> None:
    """A new kind of effect cannot be added without passing these tests."""
    assert set(default_effects()) == set(MAKERS)


@pytest.mark.parametrize("kind", MAKERS)
def test_effect_keeps_the_contract(world: World, kind: str) -> None:
    """Plan → not done → do → done → verified → back → as before, with a body that can be hashed and replayed."""
    planned = MAKERS[kind](world)
    effect = planned.effect
    assert effect.kind == kind and effect.version >= 1 and effect.settle == timedelta(0)
    for body in (planned.body, planned.inverse.body):
        canonical_bytes(body)
    assert planned.draft.summary and planned.draft.target and planned.draft.inverse.summary
    assert planned.draft.inverse.kind == kind and planned.draft.inverse.version == effect.version
    planned.apply()
    assert planned.inverse.found() is Found.not_done
    planned.inverse.apply()
    assert planned.found() is Found.not_done, "undone means as before: it could be done again"
    planned.apply()


@pytest.mark.parametrize("kind", MAKERS)
def test_planning_and_looking_change_nothing(world: World, kind: str) -> None:
    """plan, check and probe only read."""
    planned = MAKERS[kind](world)
    places = [world.repo, world.remote]
    before = {path: path.lstat().st_mtime_ns for place in places for path in [place, *place.rglob("*")]}
    planned.check()
    planned.found()
    planned.inverse.check()
    planned.inverse.found()
    assert {path: path.lstat().st_mtime_ns for place in places for path in [place, *place.rglob("*")]} == before


@pytest.mark.parametrize("kind", ["git.commit", "git.tag", "git.push", "shell.run"])
def test_every_process_of_do_is_noted(world: World, kind: str) -> None:
    """What `do` starts on the host is told to the ledger before it begins, so that a later attempt can end it."""
    planned = MAKERS[kind](world)
    world.groups.clear()
    planned.do()
    assert world.groups and all(pgid > 1 for pgid, _ in world.groups)
