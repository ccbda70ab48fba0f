"""git.tag: an annotated tag of exactly the approved bytes, deleted only while it is ours."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from perdure.effects.base import Found
from perdure.effects.git_refs import log_environment
from perdure.effects.git_tag import tag_bytes
from perdure.errors import EffectFailed, UserError
from perdure.workspace.git import open_repository
from perdure.workspace.writing import open_writer
from tests.support.world import AT, WHO, Planned, World


def plan_tag(world: World, name: str = "v1.3.0", message: str = "Notes\n\n- one\n", **more: Any) -> Planned:
    arguments = {"repo": str(world.repo), "name": name, "at": world.ref("main"), "message": message}
    return world.plan("git.tag", arguments, **more)


def test_tag_is_made_once_and_taken_back(world: World) -> None:
    """The tag is annotated, names the commit, the tagger and the message; its inverse leaves no trace of the ref."""
    planned = plan_tag(world)
    assert planned.draft.summary == f"v1.3.0 → {world.ref('main')[:7]}"
    planned.apply()
    assert world.ref("v1.3.0") == planned.body["new"]
    shown = world.git("cat-file", "-p", "v1.3.0")
    assert f"object {world.ref('main')}\ntype commit\ntag v1.3.0\ntagger {WHO[0]} <{WHO[1]}>" in shown
    assert shown.endswith("\n\nNotes\n\n- one")
    assert world.git("fsck", "--strict") == ""
    planned.inverse.apply()
    assert world.ref("v1.3.0") == ""


def test_tag_is_fixed_when_planned(world: World) -> None:
    """Tagger and time are the draft's: planned twice it has one id."""
    draft = world.draft({"VERSION": "1.3.0\n"})
    arguments = {"name": "v1.3.0", "at": draft["commit"], "message": "m"}
    first, second = (world.plan("git.tag", arguments, draft=draft) for _ in range(2))
    assert first.body == second.body
    assert str(int(AT.timestamp())).encode() in world.blobs.get(first.draft.artifacts[0])


def test_second_do_changes_nothing(world: World) -> None:
    """A tag that is there as approved is done; doing it again is refused."""
    planned = plan_tag(world)
    planned.apply()
    with pytest.raises(EffectFailed):
        planned.do()
    assert planned.found() is Found.done


def test_tag_of_somebody_else_is_neither_overwritten_nor_deleted(world: World) -> None:
    """The same name at another object is foreign in both directions."""
    planned = plan_tag(world)
    world.git("tag", "v1.3.0")
    theirs = world.ref("v1.3.0")
    for direction in (planned, planned.inverse):
        assert direction.found() is Found.foreign
        assert direction.check() != []
        with pytest.raises(EffectFailed):
            direction.do()
    assert world.ref("v1.3.0") == theirs


def test_tag_that_moves_at_the_last_moment_is_kept(world: World) -> None:
    """Between the last look and the deletion the ref is compared once more, by git's own lock."""
    planned = plan_tag(world)
    planned.apply()
    world.git("tag", "--force", "v1.3.0")
    theirs = world.ref("v1.3.0")
    who = log_environment(planned.body["who"])
    with open_writer(open_repository(world.repo), world.context().runner, who) as writer:
        for old, new in ((planned.body["new"], "0" * 40), ("0" * 40, planned.body["new"])):
            with pytest.raises(EffectFailed):
                writer.move_ref("refs/tags/v1.3.0", old, new, "race")
    assert world.ref("v1.3.0") == theirs


def test_packed_tag_is_taken_back_too(world: World) -> None:
    """A tag that git packed meanwhile is deleted from the packed refs; the others stay."""
    world.git("tag", "v1.0.0")
    planned = plan_tag(world)
    planned.apply()
    world.git("pack-refs", "--all")
    planned.inverse.apply()
    assert world.ref("v1.3.0") == "" and world.ref("v1.0.0") != ""
    assert not (world.repo / ".git/packed-refs").is_symlink()


def test_taking_back_what_never_happened_is_seen_as_done(world: World) -> None:
    """An undo of a tag that is not there finds nothing to do."""
    assert plan_tag(world).inverse.found() is Found.done


def test_tag_of_a_commit_that_is_not_there_is_refused(world: World) -> None:
    """A tag never names what does not exist, even if planned before its commit."""
    draft = world.draft({"VERSION": "1.3.0\n"})
    planned = world.plan("git.tag", {"name": "v1.3.0", "at": draft["commit"], "message": "m"}, draft=draft)
    assert planned.check() == []
    with pytest.raises(EffectFailed, match="is not in"):
        planned.do()
    assert world.ref("v1.3.0") == ""


def test_existing_tag_is_refused_when_planned(world: World) -> None:
    """A version that was tagged before is not planned again."""
    world.git("tag", "v1.3.0")
    with pytest.raises(UserError, match="exists already"):
        plan_tag(world)


@pytest.mark.parametrize(
    "name",
    [
        "-d",
        "a..b",
        "a b",
        "v1\n",
        "x.lock",
        "/abs",
        "a//b",
        "@{1}",
        "v1~2",
        "a\\b",
        "..",
        "refs/heads/main",
        "a/.b",
        "v1:x",
    ],
)
def test_crafted_names_never_reach_git(world: World, name: str) -> None:
    """A name that git does not allow, or could read as an option or a path, is refused."""
    with pytest.raises(UserError):
        plan_tag(world, name)
    assert world.git("tag", "--list") == ""


def test_tag_stands_for_nothing_else(world: World) -> None:
    """A ref that points at another ref is not moved: the write would land elsewhere."""
    planned = plan_tag(world)
    world.git("symbolic-ref", "refs/tags/v1.3.0", "refs/heads/elsewhere")
    with pytest.raises(EffectFailed, match="stands for"):
        planned.do()
    assert world.ref("refs/heads/elsewhere") == ""


def test_message_bytes_are_kept() -> None:
    """What was shown is what is tagged: blank lines and signs inside stay, outer line ends do not."""
    who = {"name": "A", "email": "a@b", "at": datetime.fromisoformat("2026-11-30T10:00:00+00:00").isoformat()}
    data = tag_bytes("v1", "0" * 40, "\n# title\n\n  indented é\n\n", who)
    assert data.endswith("\n\n# title\n\n  indented é\n".encode())


def test_nobody_to_tag_is_said(world: World) -> None:
    """Without an identity the message says which commands set one."""
    world.git("config", "--unset", "user.name")
    with pytest.raises(UserError, match=r"git config user\.name"):
        plan_tag(world)
