"""The history since the last release, as it is; where a release would be wrong, what to do instead."""

from pathlib import Path
from typing import Any

import pytest

from perdure.errors import StageFailed, UserError
from tests.rules.kit import ReleaseRun, make_repository, save, tag
from tests.support.repositories import git, make_project


def history(project: Path, tmp_path: Path, **inputs: Any) -> dict[str, Any]:
    """The value of git.history."""
    run = ReleaseRun(project, tmp_path, inputs)
    value: dict[str, Any] = run.run("git.history", {"repo": {"path": str(project)}, **inputs}).value
    return value


def refused(project: Path, tmp_path: Path, said: str, **inputs: Any) -> None:
    """The source raises a UserError that says ``said``."""
    with pytest.raises(UserError, match=said):
        history(project, tmp_path, **inputs)


def subjects(value: dict[str, Any]) -> list[str]:
    """Subjects of the range, newest first."""
    return [commit["subject"] for commit in value["commits"]]


def test_the_range_begins_after_the_last_release(tmp_path: Path) -> None:
    """Commits since the last release come newest first, with branch, head and what the remote has."""
    project = make_project(tmp_path)
    run = ReleaseRun(project.path, tmp_path)
    result = run.run("git.history", {"repo": {"path": str(project.path)}, "path": ".", "tag": "v{version}"})
    value = result.value
    assert result.summary == "2 commits since v1.2.0" and not result.findings
    assert subjects(value) == ["fix(api): an empty order is refused", "feat: bulk import"]
    assert (value["branch"], value["ref"]) == ("main", "refs/heads/main")
    assert value["head"] == git(project.path, "rev-parse", "HEAD")
    assert (value["last_tag"], value["last_version"], value["first_release"]) == ("v1.2.0", "1.2.0", False)
    assert value["last_tag_commit"] == git(project.path, "rev-parse", "v1.2.0^{commit}")
    assert (value["remote"], value["remote_url"]) == ("origin", str(project.remote))
    assert value["remote_refs"] == {
        "refs/heads/main": git(project.path, "rev-parse", "HEAD"),
        "refs/tags/v1.2.0": git(project.path, "rev-parse", "v1.2.0"),
    }


def test_the_highest_version_is_the_last_release_not_the_nearest_tag(tmp_path: Path) -> None:
    """A lower version tagged later (a moved back fix), moving, nightly and foreign tags do not count."""
    path = make_repository(tmp_path)
    save(path, "feat: a")
    tag(path, "v1.10.0", "v1.10.0-rc.1", "v1.9.0", "latest")
    save(path, "feat: b")
    tag(path, "v1.9.5", "v1", "v2.0.0-nightly.1", "app-v3.0.0")
    save(path, "feat: c")
    value = history(path, tmp_path)
    assert (value["last_tag"], value["last_candidate"]) == ("v1.10.0", "")
    assert subjects(value) == ["feat: c", "feat: b"]


def test_several_tags_on_a_commit_and_branches_beside_are_normal(tmp_path: Path) -> None:
    """A candidate, its final version and another package's tag share a commit; other branches are not read."""
    path = make_repository(tmp_path)
    save(path, "feat: begin")
    tag(path, "v1.0.0-rc.1", "v1.0.0", "app-1.0.0", "latest")
    git(path, "switch", "-qc", "aside")
    save(path, "feat!: aside")
    tag(path, "v3.0.0")
    git(path, "switch", "-q", "main")
    save(path, "fix: here")
    value = history(path, tmp_path, remote="")
    assert (value["last_tag"], value["last_candidate"], subjects(value)) == ("v1.0.0", "", ["fix: here"])


def test_a_candidate_above_the_last_release_is_told(tmp_path: Path) -> None:
    """A reachable release candidate is no last release, but the next one must not fall behind it."""
    path = make_repository(tmp_path)
    save(path, "feat: a")
    tag(path, "v1.0.0")
    save(path, "feat: b")
    tag(path, "v2.0.0-rc.1")
    value = history(path, tmp_path)
    assert (value["last_tag"], value["last_candidate"]) == ("v1.0.0", "2.0.0-rc.1")


def test_without_tags_it_is_the_first_release(tmp_path: Path) -> None:
    """No tag at all: the whole history is the range, and nothing is the last release."""
    path = make_repository(tmp_path)
    save(path, "feat: a")
    value = history(path, tmp_path)
    assert value["first_release"] and value["last_tag"] == "" and subjects(value) == ["feat: a"]


def test_an_unreachable_release_begins_at_the_merge_base_and_says_so(tmp_path: Path) -> None:
    """When no release is reachable the range begins where the branches part, never at the root in silence."""
    path = make_repository(tmp_path)
    save(path, "feat: a")
    base = save(path, "feat: b")
    git(path, "switch", "-q", "-c", "release")
    save(path, "chore: release")
    tag(path, "v1.2.0")
    git(path, "switch", "-q", "main")
    save(path, "feat: c")
    run = ReleaseRun(path, tmp_path)
    value = run.run("git.history", {"repo": str(path)}).value
    assert subjects(value) == ["feat: c"]
    assert (value["last_tag"], value["last_tag_commit"]) == ("v1.2.0", base)
    assert any("parts from v1.2.0" in finding for finding in run.findings)


def test_a_release_without_common_history_is_refused(tmp_path: Path) -> None:
    """A release on an unrelated branch is no base to compare with."""
    path = make_repository(tmp_path)
    save(path, "feat: a")
    tag(path, "v1.0.0")
    git(path, "switch", "-q", "--orphan", "other")
    save(path, "feat: b")
    refused(path, tmp_path, r"v1\.0\.0 cannot be compared with this branch \(they share no history\)")


def test_tags_on_trees_and_nested_tags_do_no_harm(tmp_path: Path) -> None:
    """A tag of a tag names its commit; a tag of a tree names none."""
    path = make_repository(tmp_path)
    commit = save(path, "feat: a", {"a": "1"})
    tag(path, "inner")
    git(path, "tag", "-a", "v1.0.0", "-m", "nested", "inner")
    git(path, "tag", "v9.0.0", "HEAD^{tree}")
    save(path, "feat: b")
    value = history(path, tmp_path)
    assert (value["last_tag"], value["last_tag_commit"]) == ("v1.0.0", commit)


def test_tags_that_match_nothing_stop_and_ask(tmp_path: Path) -> None:
    """The question names the form to give; with a version given the numbering begins there instead."""
    path = make_repository(tmp_path)
    save(path, "feat: a")
    tag(path, "app-1.0.0")
    refused(path, tmp_path, r"tag='app-\{version\}'")
    assert history(path, tmp_path, tag="app-{version}")["last_version"] == "1.0.0"
    value = ReleaseRun(path, tmp_path, {"version": "1.0.0"}).run("git.history", {"repo": str(path)}).value
    assert value["first_release"]


def test_no_repository(tmp_path: Path) -> None:
    """Outside a repository the message says how to begin one."""
    refused(tmp_path, tmp_path, "git init")


def test_an_empty_repository(tmp_path: Path) -> None:
    """A branch without a commit has nothing to release."""
    refused(make_repository(tmp_path), tmp_path, "has no commit yet")


def test_a_detached_head(tmp_path: Path) -> None:
    """Without a branch there is nothing to move; the message says how to check one out."""
    project = make_project(tmp_path)
    git(project.path, "switch", "-q", "--detach")
    refused(project.path, tmp_path, "HEAD is detached at .*git switch main")


def test_a_branch_that_is_not_there(tmp_path: Path) -> None:
    """A branch named wrongly is answered with the nearest one."""
    project = make_project(tmp_path)
    refused(project.path, tmp_path, "Did you mean 'main'", branch="mian")
    refused(project.path, tmp_path, "Known branches: main", branch="zzz")
    refused(project.path, tmp_path, "not a name git allows", branch="-x")


def test_a_dirty_checkout(tmp_path: Path) -> None:
    """Uncommitted changes to tracked files stop the release and are named; untracked files do not."""
    project = make_project(tmp_path)
    (project.path / "notes.txt").write_text("mine")
    assert history(project.path, tmp_path)["last_tag"] == "v1.2.0"
    (project.path / "orders.py").write_text("changed")
    refused(project.path, tmp_path, r"uncommitted changes to tracked files: orders\.py\. .*git stash")


def test_a_shallow_clone(tmp_path: Path) -> None:
    """A cut history is never answered from; the message says how to deepen it."""
    project = make_project(tmp_path)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project.path}", "cut")
    refused(tmp_path / "cut", tmp_path, "git fetch --unshallow --tags")


def test_nobody_to_commit_as(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name and an address the message says how to set them."""
    project = make_project(tmp_path)
    git(project.path, "config", "--unset", "user.email")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    refused(project.path, tmp_path, "Nobody to commit as: .*git config user.name")


def test_without_an_origin_the_release_stays_local_and_says_so(tmp_path: Path) -> None:
    """The default remote may be absent: a finding says that nothing is pushed."""
    project = make_project(tmp_path, remote=False)
    run = ReleaseRun(project.path, tmp_path, {"remote": "origin"})
    value = run.run("git.history", {"repo": str(project.path)}).value
    assert (value["remote"], value["remote_url"], value["remote_refs"]) == ("", "", {})
    assert run.findings == ["No remote 'origin' is configured: this release stays local."]


def test_local_only_asks_no_remote(tmp_path: Path) -> None:
    """remote='' is local only, without a word."""
    project = make_project(tmp_path)
    git(project.path, "remote", "set-url", "origin", str(tmp_path / "gone.git"))
    run = ReleaseRun(project.path, tmp_path, {"remote": ""})
    assert run.run("git.history", {"repo": str(project.path)}).value["remote"] == ""
    assert run.findings == []


def test_another_remote_must_be_configured(tmp_path: Path) -> None:
    """A remote that was asked for by name and is not there is an error."""
    refused(make_project(tmp_path).path, tmp_path, "no remote 'upstream'.*git remote add", remote="upstream")


def test_a_remote_that_does_not_answer(tmp_path: Path) -> None:
    """An unreachable remote stops the plan: its refs are the push's leases."""
    project = make_project(tmp_path)
    git(project.path, "remote", "set-url", "origin", str(tmp_path / "gone.git"))
    refused(project.path, tmp_path, r"gone\.git.* cannot be read: .*remote=''")


def test_a_branch_behind_its_remote(tmp_path: Path) -> None:
    """Commits on the remote that are not here would be thrown away by a leased push: pull first."""
    project = make_project(tmp_path)
    git(tmp_path, "clone", "-q", str(project.remote), "other")
    other = tmp_path / "other"
    git(other, "config", "user.name", "O")
    git(other, "config", "user.email", "o@example.org")
    save(other, "feat: o")
    git(other, "push", "-q", "origin", "main")
    refused(project.path, tmp_path, "origin/main .* has commits that main .* does not. Run `git pull origin main`")
    git(project.path, "fetch", "-q")
    refused(project.path, tmp_path, "git pull origin main")


def push_theirs(path: Path, message: str) -> str:
    """Somebody else's commit on the remote's main, of which this clone knows nothing yet; return its id."""
    other = path.parent / "other"
    git(path.parent, "clone", "-q", str(path.parent / f"{path.name}.git"), str(other))
    for key, value in (("user.name", "T"), ("user.email", "t@example.org")):
        git(other, "config", key, value)
    name = save(other, message)
    git(other, "push", "-q", "origin", "main")
    return name


def test_a_plan_that_leaves_the_branch_alone_begins_where_the_remote_is(tmp_path: Path) -> None:
    """A branch that is only behind is left as it is, and the plan holds what the remote has; fetching is asked for."""
    path = make_project(tmp_path).path
    before, theirs = git(path, "rev-parse", "main"), push_theirs(path, "feat: theirs")
    run = ReleaseRun(path, tmp_path, {"follow": "origin"})
    with pytest.raises(
        UserError, match=r"Run `git fetch --tags origin`, then try again: your branch and checkout stay"
    ):
        run.gather()
    git(path, "fetch", "-q", "origin")
    release = run.propose()
    assert release["base"] == theirs and "theirs" in [entry["text"] for entry in release["entries"]]
    assert f"main ({before[:7]}) is behind origin/main ({theirs[:7]}): this plan begins there" in run.findings[0]
    run.draft()
    assert git(path, "rev-parse", "main") == before
    with pytest.raises(UserError, match=r"git pull origin main.*way=pull-request plans from origin/main"):
        ReleaseRun(path, tmp_path, {"way": "push"}).gather()


def test_branches_that_have_parted_are_brought_together_by_a_person(tmp_path: Path) -> None:
    """A commit of ours that the remote lacks beside one of theirs: neither is left out."""
    path = make_project(tmp_path).path
    push_theirs(path, "feat: theirs")
    git(path, "fetch", "-q", "origin")
    save(path, "fix: ours")
    for inputs in ({}, {"follow": "origin"}):
        with pytest.raises(
            UserError, match=r"and the other way round. Bring them together \(`git pull --rebase origin"
        ):
            ReleaseRun(path, tmp_path, inputs).gather()


def test_a_release_that_only_the_remote_has(tmp_path: Path) -> None:
    """A newer release tag on the remote means that the last release is not known here: fetch first."""
    project = make_project(tmp_path)
    git(project.remote, "tag", "v1.4.0", "v1.2.0^{commit}")
    git(project.remote, "tag", "v1.0.0", "v1.2.0^{commit}")
    refused(project.path, tmp_path, r"does not know: v1\.4\.0\. Run `git fetch --tags origin`")
    git(project.path, "fetch", "-q", "--tags")
    assert history(project.path, tmp_path)["last_tag"] == "v1.4.0"


def test_a_path_outside_the_repository(tmp_path: Path) -> None:
    """A package's path stays inside the repository, relative or absolute."""
    project = make_project(tmp_path)
    refused(project.path, tmp_path, "leaves the repository", path="../other")
    refused(project.path, tmp_path, "lies outside of the repository", path=str(tmp_path))
    assert history(project.path, tmp_path, path=str(project.path))["path"] == ""


def test_a_linked_work_tree_is_read_like_any_other(tmp_path: Path) -> None:
    """A release can be made from a linked work tree on its own branch."""
    project = make_project(tmp_path)
    git(project.path, "worktree", "add", "-q", "-b", "next", str(tmp_path / "linked"))
    value = history(tmp_path / "linked", tmp_path)
    assert (value["branch"], value["last_tag"]) == ("next", "v1.2.0")


def test_crafted_tag_names_are_not_read(tmp_path: Path) -> None:
    """Names that git would not create (an option, control characters, a path upwards) are left out, not obeyed."""
    project = make_project(tmp_path)
    head = git(project.path, "rev-parse", "HEAD")
    tags = project.path / ".git" / "refs" / "tags"
    for name in ("-v9.9.9", "v9.9.9\x1b[2J", "v9.9.9~1", "v9.9.9.lock"):
        (tags / name).write_text(f"{head}\n")
    packed = project.path / ".git" / "packed-refs"
    packed.write_text(f"# pack-refs with: peeled\n{head} refs/tags/--upload-pack=touch\n")
    value = history(project.path, tmp_path)
    assert value["tags"] == ["v1.2.0"] and value["last_tag"] == "v1.2.0"
    packed.write_text(f"# pack-refs with: peeled\n{head} refs/tags/../../v9.9.9\n")
    with pytest.raises(StageFailed, match="dangerous"):
        history(project.path, tmp_path)


def test_nothing_that_a_repository_brings_runs(tmp_path: Path) -> None:
    """Hooks, filters and programs that a repository's configuration names do not run while its history is read."""
    project = make_project(tmp_path)
    canary = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {canary}\ncat\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "filter.x.clean", "diff.external", "gpg.program"):
        git(project.path, "config", key, str(program))
    (project.path / ".git" / "info" / "attributes").write_text("* filter=x diff=x\n")
    for hook in ("reference-transaction", "post-index-change", "fsmonitor-watchman"):
        (project.path / ".git" / "hooks" / hook).write_text(program.read_text())
        (project.path / ".git" / "hooks" / hook).chmod(0o755)
    run = ReleaseRun(project.path, tmp_path)
    assert run.propose()["version"] == "1.3.0"
    assert not canary.exists()
