"""git.commit: exactly the approved commit, moved to by compare-and-swap, the checkout brought along safely."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.effects.base import Found
from perdure.errors import EffectFailed, UserError
from tests.support.world import FILES, World

CHANGES: dict[str, str | None] = {
    "VERSION": "1.3.0\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.3.0\n",
    "new/notes.txt": "n\n",
}


def state(world: World) -> dict[str, str]:
    """Every file of the checkout."""
    root = world.repo
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def test_commit_is_applied_once_and_taken_back(world: World) -> None:
    """The branch, the index and the files are as approved; its inverse puts all of them back as before."""
    base = world.ref("main")
    draft = world.draft({**CHANGES, "src/app.py": None})
    planned = world.plan_commit(draft)
    assert planned.draft.summary == "4 files +4 −2"
    planned.apply()
    assert world.ref("main") == world.ref("HEAD") == draft["commit"]
    assert world.git("status", "--porcelain") == ""
    assert state(world) == {k: v for k, v in CHANGES.items() if v is not None}
    assert "perdure: git.commit" in world.git("reflog", "show", "main")
    assert "perdure: git.commit" in world.git("reflog", "show", "HEAD")
    planned.inverse.apply()
    assert world.ref("main") == base
    assert world.git("status", "--porcelain") == ""
    assert state(world) == FILES
    assert world.git("fsck", "--strict") == ""


def test_same_draft_has_the_same_id(world: World) -> None:
    """The same content, message, person and time give the same commit: a draft made twice is one plan."""
    assert world.draft(CHANGES)["commit"] == world.draft(CHANGES)["commit"]


def test_second_do_changes_nothing(world: World) -> None:
    """A commit that is done is seen as done; doing it again is refused by the moved branch."""
    planned = world.plan_commit(world.draft(CHANGES))
    planned.apply()
    with pytest.raises(EffectFailed, match="main is"):
        planned.do()
    assert planned.found() is Found.done


def test_applying_needs_only_the_blob_store(world: World) -> None:
    """The drafting workspace may be gone: the plan's blobs hold every new object."""
    draft = world.draft({"VERSION": "1.3.0\n"})
    before = set((world.repo / ".git/objects").rglob("*"))
    planned = world.plan_commit(draft)
    assert set((world.repo / ".git/objects").rglob("*")) == before, "planning only reads"
    planned.apply()


def test_moved_branch_is_drift(world: World) -> None:
    """A branch that went elsewhere since the plan is foreign, and nothing is written."""
    planned = world.plan_commit(world.draft(CHANGES))
    world.git("commit", "--quiet", "--allow-empty", "--message=other")
    other = world.ref("main")
    assert planned.found() is Found.foreign
    assert planned.check() == [f"main is {other[:7]}; expected {planned.body['old'][:7]}."]
    with pytest.raises(EffectFailed):
        planned.do()
    assert world.ref("main") == other


def test_branch_that_moves_at_the_last_moment_is_not_overwritten(world: World) -> None:
    """Between the last look and the move the branch is compared once more, by git's own lock."""
    from perdure.effects.git_refs import log_environment
    from perdure.workspace.git import open_repository
    from perdure.workspace.writing import open_writer

    planned = world.plan_commit(world.draft(CHANGES))
    body = planned.body
    world.git("commit", "--quiet", "--allow-empty", "--message=other")
    other = world.ref("main")
    with open_writer(open_repository(world.repo), world.context().runner, log_environment(body["who"])) as writer:
        writer.run("unpack-objects", "-q", stdin=world.blobs.get(planned.draft.artifacts[0]))
        with pytest.raises(EffectFailed, match="expected"):
            writer.move_ref("refs/heads/main", body["old"], body["new"], "race")
    assert world.ref("main") == other


def test_commit_below_later_work_counts_as_done_but_is_not_taken_back(world: World) -> None:
    """Somebody built on our commit: it did happen, and moving the branch back would lose their work."""
    planned = world.plan_commit(world.draft(CHANGES))
    planned.apply()
    world.git("commit", "--quiet", "--allow-empty", "--message=on top")
    assert planned.found() is Found.done
    assert planned.verify() == []
    back = planned.inverse
    assert back.found() is Found.foreign
    assert back.check() != []
    with pytest.raises(EffectFailed):
        back.do()


@pytest.mark.parametrize("change", ["edited", "staged", "untracked", "merging"])
def test_checkout_that_is_not_clean_is_not_touched(world: World, change: str) -> None:
    """Uncommitted, staged or untracked work in the way, or an unfinished merge, stops the commit before it begins."""
    planned = world.plan_commit(world.draft(CHANGES))
    if change == "untracked":
        (world.repo / "new").mkdir()
        (world.repo / "new/notes.txt").write_text("mine\n")
    elif change == "merging":
        (world.repo / ".git/MERGE_HEAD").write_text(world.ref("main") + "\n")
    else:
        (world.repo / "src/app.py").write_text("mine\n")
        if change == "staged":
            world.git("add", "src/app.py")
    before = state(world)
    sentences = " ".join(planned.check())
    expected = {"untracked": "new/notes.txt is there", "merging": "MERGE_HEAD"}.get(
        change, "Uncommitted changes in src"
    )
    assert expected in sentences
    assert state(world) == before


def test_work_elsewhere_does_not_stop_taking_back(world: World) -> None:
    """Taking back touches the changed paths only: a person's work in other files stays and is no obstacle."""
    planned = world.plan_commit(world.draft(CHANGES))
    planned.apply()
    (world.repo / "src/app.py").write_text("mine\n")
    planned.inverse.apply()
    assert (world.repo / "src/app.py").read_text() == "mine\n"
    assert (world.repo / "VERSION").read_text() == "1.2.0\n"


def test_staged_work_is_not_lost_by_taking_back(world: World) -> None:
    """A person staged another content for a changed path: it is named, and their index stays as it is."""
    planned = world.plan_commit(world.draft(CHANGES))
    planned.apply()
    (world.repo / "VERSION").write_text("staged\n")
    world.git("add", "VERSION")
    (world.repo / "VERSION").write_text("1.3.0\n")
    staged = world.git("ls-files", "--stage", "VERSION")
    assert planned.inverse.check() == ["VERSION has a staged change of its own. Commit it or unstage it."]
    planned.inverse.do()
    assert world.git("ls-files", "--stage", "VERSION") == staged


@pytest.mark.parametrize("done", [[], ["VERSION"], ["VERSION", "CHANGELOG.md"], ["index"]])
def test_crash_between_branch_and_checkout_is_repaired(world: World, done: list[str]) -> None:
    """Killed after the branch moved, with some files written: verify brings the rest along and only that."""
    draft = world.draft(CHANGES)
    planned = world.plan_commit(draft)
    planned.apply()
    # Put the world as a kill would have left it: the branch moved, these paths written, the others not.
    world.git("read-tree", draft["base"]) if "index" not in done else None
    for path, text in FILES.items():
        if path not in done and path in CHANGES:
            (world.repo / path).write_text(text)
    (world.repo / "new/notes.txt").unlink()
    (world.repo / "new").rmdir()
    assert planned.found() is Found.done
    assert planned.verify() == []
    assert world.git("status", "--porcelain") == ""
    assert (world.repo / "new/notes.txt").read_text() == "n\n"


def test_foreign_change_met_while_repairing_is_left_alone(world: World) -> None:
    """A file that holds neither the old nor the new content is somebody's: it is named, never overwritten."""
    draft = world.draft(CHANGES)
    planned = world.plan_commit(draft)
    planned.apply()
    (world.repo / "VERSION").write_text("mine\n")
    (world.repo / "CHANGELOG.md").write_text(FILES["CHANGELOG.md"])
    problems = planned.verify()
    assert len(problems) == 1 and "VERSION holds something else" in problems[0]
    assert (world.repo / "VERSION").read_text() == "mine\n"
    assert (world.repo / "CHANGELOG.md").read_text() == CHANGES["CHANGELOG.md"]


def test_locked_index_is_reported_and_repaired_later(world: World) -> None:
    """A git command of the person holds the index: the commit stands, the rest is said, and verify finishes it."""
    planned = world.plan_commit(world.draft(CHANGES))
    lock = world.repo / ".git/index.lock"
    lock.touch()
    planned.do()
    assert any("index" in problem for problem in planned.verify())
    lock.unlink()
    assert planned.verify() == []
    assert world.git("status", "--porcelain") == ""


def test_links_are_never_written_through(world: World, tmp_path: Path) -> None:
    """A folder of the checkout turned into a link leads no write outside."""
    outside = tmp_path / "outside"
    outside.mkdir()
    planned = world.plan_commit(world.draft({"src/app.py": "new\n", "new/notes.txt": "n\n"}))
    (world.repo / "new").symlink_to(outside)
    assert any("link" in sentence for sentence in planned.check())
    planned.do()
    assert list(outside.iterdir()) == []
    assert any("link" in sentence for sentence in planned.verify())


@pytest.mark.parametrize("name", ["objects", "refs/heads", "logs/refs/heads", "index"])
def test_git_folder_with_links_is_not_written(world: World, tmp_path: Path, name: str) -> None:
    """A git directory whose parts are links elsewhere is refused before anything is written there."""
    planned = world.plan_commit(world.draft(CHANGES))
    place, moved = world.repo / ".git" / name, tmp_path / "moved"
    place.rename(moved)
    place.symlink_to(moved)
    before = {path: path.stat().st_mtime_ns for path in [moved, *moved.rglob("*")]}
    with pytest.raises(EffectFailed, match="symbolic link"):
        planned.do()
    assert {path: path.stat().st_mtime_ns for path in [moved, *moved.rglob("*")]} == before


def test_branch_in_a_linked_worktree_is_brought_along_there(world: World) -> None:
    """The checkout that has the branch is the one that follows, wherever it is."""
    world.git("switch", "--quiet", "--create", "other")
    linked = world.folder / "linked"
    world.git("worktree", "add", "--quiet", str(linked), "main")
    draft = world.draft(CHANGES)
    planned = world.plan_commit(draft)
    assert planned.body["repository"] == str(linked)
    planned.apply()
    assert world.git("status", "--porcelain", at=linked) == ""
    assert (linked / "VERSION").read_text() == "1.3.0\n"
    assert (world.repo / "VERSION").read_text() == "1.2.0\n"


def test_branch_that_is_not_checked_out_moves_alone(world: World) -> None:
    """A branch that no work tree shows is moved without touching any file; checked out meanwhile, it is drift."""
    world.git("branch", "stable")
    planned = world.plan_commit(world.draft(CHANGES), branch="stable")
    before = state(world)
    planned.apply()
    assert state(world) == before and world.git("status", "--porcelain") == ""
    planned.inverse.apply()
    world.git("switch", "--quiet", "stable")
    assert planned.check() == [f"stable was checked out in {world.repo} since."]


def test_switched_checkout_is_drift(world: World) -> None:
    """The person switched to another branch since the plan: stop, do not guess."""
    planned = world.plan_commit(world.draft(CHANGES))
    world.git("switch", "--quiet", "--create", "elsewhere")
    assert planned.check() == [f"{world.repo} is no longer on main."]


def test_line_ends_of_the_checkout_follow_its_rules(world: World) -> None:
    """Where the repository checks text out with CRLF, the files that come along have CRLF and the status is clean."""
    world.git("config", "core.autocrlf", "true")
    for path in FILES:
        (world.repo / path).unlink()
    world.git("checkout", "--quiet", "--", ".")
    assert (world.repo / "VERSION").read_bytes() == b"1.2.0\r\n"
    planned = world.plan_commit(world.draft(CHANGES))
    planned.apply()
    assert (world.repo / "VERSION").read_bytes() == b"1.3.0\r\n"
    assert world.git("status", "--porcelain") == ""
    planned.inverse.apply()
    assert (world.repo / "VERSION").read_bytes() == b"1.2.0\r\n"


def test_modes_and_links_are_brought_along(world: World) -> None:
    """An executable stays executable, a file's other permissions stay, and a link is made as a link."""
    (world.repo / "VERSION").chmod(0o640)
    (world.repo / "src/app.py").chmod(0o755)
    world.git("commit", "--quiet", "--all", "--message=mode")
    planned = world.plan_commit(world.draft({"VERSION": "2\n", "src/app.py": "x\n"}))
    planned.apply()
    assert (world.repo / "VERSION").stat().st_mode & 0o777 == 0o640
    assert (world.repo / "src/app.py").stat().st_mode & 0o111 == 0o111
    assert world.git("status", "--porcelain") == ""


def test_filtered_path_is_refused_when_planned(world: World) -> None:
    """A path that only a filter program could check out is refused, because such programs never run."""
    (world.repo / ".gitattributes").write_text("VERSION filter=lfs\n")
    world.git("add", "--all")
    world.git("commit", "--quiet", "--message=attributes")
    with pytest.raises(UserError, match="filter program"):
        world.plan_commit(world.draft(CHANGES))


def test_sparse_path_is_named(world: World) -> None:
    """A path outside of a sparse checkout is named instead of appearing in it."""
    planned = world.plan_commit(world.draft({"src/app.py": "x\n"}))
    world.git("update-index", "--skip-worktree", "src/app.py")
    assert any("sparse checkout" in sentence for sentence in planned.check())


def test_wrong_arguments_are_named(world: World) -> None:
    """What the step got wrong is said with what was expected."""
    draft = world.draft(CHANGES)
    good = {"branch": "main", "from": draft["base"], "to": draft["commit"]}
    wrong = [
        ({**good, "brnch": "x"}, "Did you mean 'branch'"),
        ({**good, "branch": "../main"}, "not a name git allows"),
        ({**good, "to": draft["base"]}, "applies the draft's commit"),
        ({**good, "from": "HEAD"}, "expected a whole commit id"),
    ]
    for arguments, message in wrong:
        with pytest.raises(UserError, match=message):
            world.plan("git.commit", arguments, draft=draft)
    with pytest.raises(UserError, match="no repository"):
        world.plan("git.commit", good)


def test_repository_replaced_since_is_drift(world: World) -> None:
    """Another repository at the same path is not the one that was approved."""
    planned = world.plan_commit(world.draft(CHANGES))
    body = {**planned.body, "identity": "/elsewhere/.git"}
    assert "is another repository now" in planned.effect.check(body, world.context())[0]
    assert planned.effect.probe(body, world.context()).found is Found.foreign


def test_sha256_repository_works(world: World) -> None:
    """Repositories with SHA-256 ids are released like any other."""
    repo = world.repo
    repo.rename(world.folder / "old")
    repo.mkdir()
    world.git("init", "--quiet", "--initial-branch=main", "--object-format=sha256")
    (repo / "VERSION").write_text("1.2.0\n")
    world.git("add", "--all")
    world.git("commit", "--quiet", "--message=x")
    draft = world.draft({"VERSION": "1.3.0\n"})
    assert len(draft["commit"]) == 64
    planned = world.plan_commit(draft)
    planned.apply()
    tag = world.plan("git.tag", {"name": "v1.3.0", "at": draft["commit"], "message": "m"}, draft=draft)
    tag.apply()
    tag.inverse.apply()
    planned.inverse.apply()
    assert world.git("status", "--porcelain") == ""
