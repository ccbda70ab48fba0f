"""A monorepo's release on a real server: one commit, a tag a package, one push; edited, approved, taken back."""

from __future__ import annotations

from pathlib import Path

from perdure.contracts.job import JobPhase
from tests.rules.kit import save
from tests.rules.packages_kit import NPM, NPM_TAGS, make_workspace
from tests.support.installation import Installation
from tests.support.repositories import Project, add_remote, git
from tests.support.waits import asked_again
from tests.support.witnesses import receipts

MAIN = "refs/heads/main"
CORE, APP = "refs/tags/@x/core@2.0.0", "refs/tags/@x/app@1.1.0"


def make_project(folder: Path) -> Project:
    """Three public packages with releases behind them, core broken since and tool mended, and a counting remote."""
    path = make_workspace(folder, NPM, *NPM_TAGS)
    remote = add_remote(path, "main", *NPM_TAGS)
    save(path, "feat(core)!: drop v1", {"packages/core/a.js": "1"})
    save(path, "fix(tool): a crash", {"packages/tool/a.js": "1"})
    return Project(path, remote)


def test_three_packages_in_one_push(working: Installation, tmp_path: Path) -> None:
    """Two changed packages and a dependant are reviewed, edited by name, released by one push, and taken back whole."""
    project = make_project(tmp_path)
    before = git(project.path, "rev-parse", "main")
    job = working.waiting(working.run("release-packages", project.path))
    shown = working.review(job)
    assert [view.effect.id for view in shown.effects] == ["commit", "tag.core", "tag.app", "tag.tool", "push"]
    assert shown.title == "@x/core 1.0.0 → 2.0.0, @x/app 1.0.0 → 1.0.1, @x/tool 1.0.0 → 1.0.1"
    assert any("by path and scope" in finding for finding in shown.findings)

    changes = {
        "version": {"app": "1.1.0"},
        "entries": [{"op": "add", "package": "app", "section": "Added", "text": "It"}],
    }
    wrong = {"version": {"core": "1.0.0"}}
    refused = working.door.post(
        f"/v1/plans/{job.digest}/decisions",
        json={"kind": "request_changes", "decision_id": "d-wrong", "changes": wrong},
    )
    assert (refused.status_code, "@x/core: Version 1.0.0 is not above" in refused.text) == (422, True)
    working.decide(job.digest, "request_changes", changes=changes)
    again = asked_again(working, job, job.digest)
    assert [view.effect.summary.split(" ")[0] for view in working.review(again).effects[1:4]] == [
        "@x/core@2.0.0",
        "@x/app@1.1.0",
        "@x/tool@1.0.1",
    ]
    working.decide(again.digest, "approve")
    working.done(job)
    path, remote = project.path, project.remote
    assert git(path, "rev-list", "--count", f"{before}..main") == "1"
    assert {name: git(path, "cat-file", "-t", f"refs/tags/{name}") for name in ("@x/core@2.0.0", "@x/app@1.1.0")} == {
        "@x/core@2.0.0": "tag",
        "@x/app@1.1.0": "tag",
    }
    assert "depends on @x/core 2.0.0" in git(path, "tag", "-l", "--format=%(contents)", "@x/app@1.1.0")
    assert git(remote, "rev-parse", MAIN) == git(path, "rev-parse", "main")
    assert [len(project.pushes(ref)) for ref in (MAIN, CORE, APP)] == [1, 1, 1]
    assert (remote / "calls").read_text().count("push") == 1, "one push carries all of it"
    assert git(path, "status", "--porcelain") == ""

    undo = working.approve(working.undo(job))
    working.wait(undo, JobPhase.done)
    assert receipts(working, undo) == [
        f"do undo-{name} done" for name in ("push", "tag.tool", "tag.app", "tag.core", "commit")
    ]
    assert git(path, "rev-parse", "main") == before
    assert git(remote, "rev-parse", "main") == git(path, "rev-parse", f"{NPM_TAGS[0]}^{{commit}}")
    assert git(path, "tag") == git(remote, "tag") == "\n".join(sorted(NPM_TAGS))


def test_a_remote_that_takes_one_ref_takes_none(working: Installation, tmp_path: Path) -> None:
    """When the remote refuses a single tag nothing stays, here or there: the push is atomic and the rest is undone."""
    project = make_project(tmp_path)
    hook = project.remote / "hooks" / "update"
    hook.write_text('#!/bin/sh\ncase "$1" in *@x/app@*) exit 1;; esac\n')
    hook.chmod(0o755)
    before = git(project.path, "rev-parse", "main")
    job = working.approve(working.run("release-packages", project.path))
    working.wait(job, JobPhase.failed)
    assert git(project.path, "rev-parse", "main") == before
    assert git(project.path, "tag") == git(project.remote, "tag") == "\n".join(sorted(NPM_TAGS))
    assert git(project.remote, "rev-parse", "main") == git(project.path, "rev-parse", f"{NPM_TAGS[0]}^{{commit}}")
