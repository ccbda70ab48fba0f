"""git.branch and git.revert: a branch is made or moved once, a commit is taken back by one that the review shows."""

from __future__ import annotations

import pytest

from perdure.contracts.plan import FileChange
from perdure.effects.base import Found
from perdure.errors import EffectFailed, UserError
from tests.support.world import Planned, World


def branch(world: World, name: str = "stable", **more: object) -> Planned:
    return world.plan("git.branch", {"repo": str(world.repo), "name": name, "at": "main", **more})


def revert(world: World, commit: str, name: str = "main") -> Planned:
    return world.plan("git.revert", {"repo": str(world.repo), "commit": commit, "branch": name})


def commit(world: World, path: str, text: str, subject: str) -> str:
    """Commit one file as the person would."""
    (world.repo / path).write_text(text)
    world.git("add", path)
    world.git("commit", "-m", subject)
    return world.ref("HEAD")


def test_branch_is_made_and_taken_back(world: World) -> None:
    """At the commit that a name meant when the plan was made; its undo deletes it while it is ours."""
    planned = branch(world)
    planned.apply()
    assert world.ref("refs/heads/stable") == world.ref("main")
    planned.inverse.apply()
    assert world.ref("refs/heads/stable") == ""


def test_branch_that_is_there_is_moved_only_when_said(world: World) -> None:
    """It goes back to where it was; one that is checked out is refused."""
    world.git("branch", "stable")
    old = world.ref("stable")
    commit(world, "new", "1\n", "feat: new")
    with pytest.raises(UserError, match="move: true"):
        branch(world)
    planned = branch(world, move=True)
    planned.apply()
    assert world.ref("stable") == world.ref("main") != old
    planned.inverse.apply()
    assert world.ref("stable") == old
    with pytest.raises(UserError, match="checked out"):
        branch(world, "main", move=True)


def test_branch_of_somebody_else_is_left_alone(world: World) -> None:
    """Moved meanwhile it is foreign both ways."""
    planned = branch(world)
    commit(world, "new", "1\n", "feat: new")
    world.git("branch", "stable")
    theirs = world.ref("stable")
    for direction in (planned, planned.inverse):
        assert direction.found() is Found.foreign and direction.check() != []
        with pytest.raises(EffectFailed):
            direction.do()
    assert world.ref("stable") == theirs


def test_name_that_is_nothing_is_told(world: World) -> None:
    """Neither an id, nor a branch or tag that is here."""
    for at in ("nowhere", "f" * 40, "refs/heads/x"):
        with pytest.raises(UserError, match="expected the id of a commit"):
            branch(world, at=at)


def test_revert_takes_back_what_a_commit_did_and_nothing_after_it(world: World) -> None:
    """The checkout follows, the review has its diff, and the undo puts the branch back."""
    bad = commit(world, "VERSION", "9.9.9\n", "feat: too early")
    later = commit(world, "other", "kept\n", "feat: other")
    planned = revert(world, bad)
    (change,) = [FileChange.model_validate(one) for one in planned.body["changes"]]
    assert change.path == "VERSION" and change.new is not None
    assert world.blobs.get(change.new) == b"1.2.0\n"
    assert f"takes back {bad[:7]} feat: too early" in planned.draft.summary
    planned.apply()
    assert (world.repo / "VERSION").read_text() == "1.2.0\n"
    assert (world.repo / "other").read_text() == "kept\n"
    assert world.git("log", "-1", "--format=%s %P") == f'Revert "feat: too early" {later}'
    assert world.git("status", "--porcelain") == ""
    planned.inverse.apply()
    assert (world.ref("main"), (world.repo / "VERSION").read_text()) == (later, "9.9.9\n")


def test_same_revert_has_one_id(world: World) -> None:
    """Planned twice at one time it is the same commit."""
    bad = commit(world, "VERSION", "9.9.9\n", "feat: too early")
    assert revert(world, bad).body["new"] == revert(world, bad).body["new"]


def test_what_cannot_be_reverted_is_told_before_the_review(world: World) -> None:
    """Conflicts, what is taken back already, a first commit, one that is not on the branch."""
    bad = commit(world, "VERSION", "9.9.9\n", "feat: too early")
    commit(world, "VERSION", "9.9.10\n", "fix: on top")
    with pytest.raises(UserError, match="conflicts in VERSION"):
        revert(world, bad)
    world.git("revert", "--no-edit", "HEAD")
    world.git("revert", "--no-edit", bad)
    with pytest.raises(UserError, match="taken back already"):
        revert(world, bad)
    first = world.git("rev-list", "--max-parents=0", "HEAD")
    with pytest.raises(UserError, match="first commit"):
        revert(world, first)
    world.git("branch", "old", first)
    with pytest.raises(UserError, match="not on the branch"):
        revert(world, bad, "old")
