"""The registry of effects, and what holds for every kind in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta

import pytest

from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.canonical import canonical_bytes
from perdure.effects.base import Found
from perdure.effects.registry import default_effects
from perdure.testing.forge import Forge
from perdure.workspace.private import take_pack
from tests.support.records import Records, serve_records
from tests.support.world import Planned, World


@dataclass(frozen=True)
class Around:
    """Services beside the world."""

    forge: Forge
    records: Records


@pytest.fixture
def around(forge: Forge) -> Iterator[Around]:
    """A forge, and a service with records."""
    with serve_records() as records:
        yield Around(forge, records)


def _commit(world: World, _: Around) -> Planned:
    return world.plan_commit(world.draft({"VERSION": "1.3.0\n"}))


def _tag(world: World, _: Around) -> Planned:
    return world.plan("git.tag", {"repo": str(world.repo), "name": "v1", "at": world.ref("main"), "message": "m"})


def _push(world: World, _: Around) -> Planned:
    world.git("tag", "v1")
    return world.plan("git.push", {"repo": str(world.repo), "remote": "origin", "refs": ["v1"]})


def _write(world: World, _: Around) -> Planned:
    return world.plan("files.write", {"root": str(world.folder), "path": "x", "content": "y"})


def _run(world: World, _: Around) -> Planned:
    path = str(world.folder / "x")
    return world.plan(
        "shell.run", {"run": ["touch", path]}, undo=["rm", path], probe=["test", "-e", path], runs_on="worker"
    )


def _tag_merged(world: World, around: Around) -> Planned:
    draft = world.draft({"VERSION": "1.3.0\n"})
    world.git("push", "--quiet", "origin", f"{_objects(world, draft)}:refs/heads/perdure/x")
    planned = world.plan("git.tag_merged", {"name": "v1", "message": "m", "on": "main"}, draft=draft)
    around.forge.git.merge("main", "perdure/x", "squash")
    return planned


def _objects(world: World, draft: JsonDict) -> str:
    """Bring the draft's commit into the person's repository; return it."""
    take_pack(world.repo / ".git", world.blobs.get(BlobRef.model_validate(draft["pack"])))
    return str(draft["commit"])


def _release(world: World, around: Around) -> Planned:
    world.git("tag", "v1")
    world.git("push", "--quiet", "origin", "v1")
    forge = around.forge
    place = {"forge": "github", "api": forge.github, "project": forge.project}
    draft = world.draft({"VERSION": "1.3.0\n"})
    return world.plan("forge.release", {**place, "tag": "v1", "notes": "n", "assets": ["VERSION"]}, draft=draft)


def _link(world: World, _: Around) -> Planned:
    (world.folder / "green").mkdir()
    return world.plan("files.link", {"path": str(world.folder / "current"), "to": "green"})


def _request(world: World, around: Around) -> Planned:
    url = f"{around.records.url}/records/x"
    undo = {"method": "DELETE"}
    probe = {"http": url, "json": {"/a": 1}, "within": "1s"}
    return world.plan("http.request", {"url": url, "method": "PUT", "json": {"a": 1}}, probe=probe, undo=undo)


def _execute(world: World, _: Around) -> Planned:
    file = world.folder / "x.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE x (a)")
    arguments = {"database": str(file), "statement": "INSERT INTO x VALUES ($1)", "parameters": [1]}
    undo = {"statement": "DELETE FROM x WHERE a = 1", "rows": 1}
    return world.plan("sql.execute", arguments, probe="SELECT count(*) FROM x WHERE a = 1", undo=undo)


def _branch(world: World, _: Around) -> Planned:
    return world.plan("git.branch", {"repo": str(world.repo), "name": "stable", "at": "main"})


def _revert(world: World, _: Around) -> Planned:
    for name in ("wrong", "right"):  # the tree without the first is a new one; git touches an object that is there
        (world.repo / name).write_text("1\n")
        world.git("add", name)
        world.git("commit", "-m", f"feat: {name}")
    return world.plan("git.revert", {"repo": str(world.repo), "commit": world.ref("HEAD~1"), "branch": "main"})


PARKING = {"forge.pull_request"}
"""Finished by somebody outside, and not undone by us: `test_forge_pull_request.py` tries these."""

ADDING = {"sqlite.backup", "notify.send"}
"""Without a way back: `test_sql_execute.py` and `test_notify_send.py` try these."""

REMOTE = {"forge.release", "http.request"}
"""A "no" of these is not a no at once."""

MAKERS: dict[str, Callable[[World, Around], Planned]] = {
    "forge.release": _release,
    "git.tag_merged": _tag_merged,
    "git.commit": _commit,
    "git.branch": _branch,
    "git.revert": _revert,
    "git.tag": _tag,
    "git.push": _push,
    "files.write": _write,
    "shell.run": _run,
    "files.link": _link,
    "http.request": _request,
    "sql.execute": _execute,
}


def test_every_kind_is_tried_here() -> None:
    """A new kind of effect cannot be added without passing these tests."""
    assert set(default_effects()) == set(MAKERS) | PARKING | ADDING


@pytest.mark.parametrize("kind", MAKERS)
def test_effect_keeps_the_contract(world: World, around: Around, kind: str) -> None:
    """Plan → not done → do → done → verified → back → as before, with a body that can be hashed and replayed."""
    planned = MAKERS[kind](world, around)
    effect = planned.effect
    assert effect.kind == kind and effect.version >= 1
    assert (effect.settle > timedelta(0)) == (kind in REMOTE)
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
def test_planning_and_looking_change_nothing(world: World, around: Around, kind: str) -> None:
    """plan, check and probe only read."""
    planned = MAKERS[kind](world, around)
    places = [world.repo, world.remote]
    before = {path: path.lstat().st_mtime_ns for place in places for path in [place, *place.rglob("*")]}
    planned.check()
    planned.found()
    planned.inverse.check()
    planned.inverse.found()
    assert {path: path.lstat().st_mtime_ns for place in places for path in [place, *place.rglob("*")]} == before


@pytest.mark.parametrize("kind", ["git.commit", "git.tag", "git.push", "git.tag_merged", "shell.run"])
def test_every_process_of_do_is_noted(world: World, around: Around, kind: str) -> None:
    """What `do` starts on the host is told to the ledger before it begins, so that a later attempt can end it."""
    planned = MAKERS[kind](world, around)
    world.groups.clear()
    planned.do()
    assert world.groups and all(pgid > 1 for pgid, _ in world.groups)
