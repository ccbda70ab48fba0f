"""git.push: all refs or none, each only from where the plan saw it; counted by the remote's own hook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.base import JsonDict
from perdure.effects.base import Found
from perdure.effects.git_push import host_of
from perdure.effects.git_target import push_arguments
from perdure.errors import EffectFailed, EffectUnknown, LookFailed, UserError
from perdure.workspace.git import open_repository
from perdure.workspace.remotes import Remote, find_remote, read_remote_refs, without_secrets
from tests.support.world import Planned, World


def make_hook(world: World, name: str, script: str) -> None:
    hook = world.remote / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)


def prepare(world: World, **more: Any) -> tuple[Planned, Planned, Planned]:
    """A commit, a tag and a push of both, planned together as a release does."""
    draft = world.draft({"VERSION": "1.3.0\n"})
    commit = world.plan_commit(draft)
    tag = world.plan("git.tag", {"name": "v1.3.0", "at": draft["commit"], "message": "m"}, draft=draft)
    earlier = [("git.commit", commit.body), ("git.tag", tag.body)]
    arguments = {"remote": "origin", "refs": ["main", "v1.3.0"], **more}
    return commit, tag, world.plan("git.push", arguments, draft=draft, earlier=earlier)


def test_release_is_pushed_once_and_taken_back(world: World) -> None:
    """Branch and tag arrive together with the ids of the plan, once; the way back leaves the remote as before."""
    make_hook(world, "post-receive", "cat >> witness")
    base = world.ref("main", at=world.remote)
    commit, tag, push = prepare(world)
    assert push.draft.summary == "origin main, v1.3.0"
    commit.apply()
    tag.apply()
    push.apply()
    assert world.ref("main", at=world.remote) == commit.body["new"]
    assert world.ref("v1.3.0", at=world.remote) == tag.body["new"]
    push.inverse.apply()
    tag.inverse.apply()
    commit.inverse.apply()
    assert world.ref("main", at=world.remote) == base
    assert world.ref("v1.3.0", at=world.remote) == ""
    lines = (world.remote / "witness").read_text().splitlines()
    assert len(lines) == 4, "two refs there, two refs back"


def test_second_do_changes_nothing(world: World) -> None:
    """A push that is done is seen as done, and pushing again is stopped by its own leases."""
    make_hook(world, "post-receive", "cat >> witness")
    for planned in prepare(world):
        planned.apply()
    planned.do()  # git refuses the stale lease; the remote shows everything new: done, and nothing happened twice
    assert len((world.remote / "witness").read_text().splitlines()) == 2


def test_moved_remote_is_drift_and_is_not_overwritten(world: World) -> None:
    """Somebody pushed since the plan: named, and the lease keeps their commit."""
    commit, tag, push = prepare(world)
    commit.apply()
    tag.apply()
    other = world.git("commit-tree", "-p", commit.body["old"], "-m", "theirs", f"{commit.body['old']}^{{tree}}")
    world.git("push", "--quiet", "origin", f"{other}:refs/heads/main")
    assert push.found() is Found.foreign
    assert push.check() == [f"origin/main is {other[:7]}; expected {commit.body['old'][:7]}."]
    with pytest.raises(EffectUnknown):
        push.do()
    assert world.ref("main", at=world.remote) == other
    assert world.ref("v1.3.0", at=world.remote) == "", "atomic: the tag alone does not arrive"


def test_refused_push_is_known_not_to_have_happened(world: World) -> None:
    """The remote refuses after the tag was made here: proven not done, with the remote's own words."""
    make_hook(world, "pre-receive", "echo 'releases are frozen' >&2; exit 1")
    commit, tag, push = prepare(world)
    commit.apply()
    tag.apply()
    with pytest.raises(EffectFailed, match="refused the push: remote: releases are frozen") as refused:
        push.do()
    assert "\n" not in refused.value.message and "pre-receive hook declined" in refused.value.message
    assert push.found() is Found.not_done


def test_one_refused_ref_refuses_all(world: World) -> None:
    """A remote that takes the branch and not the tag gets neither."""
    make_hook(world, "update", 'case "$1" in refs/tags/*) echo no tags >&2; exit 1;; esac')
    commit, tag, push = prepare(world)
    commit.apply()
    tag.apply()
    with pytest.raises(EffectFailed, match="no tags"):
        push.do()
    assert world.ref("main", at=world.remote) == commit.body["old"]


def test_remote_that_does_not_answer_is_unknown(world: World) -> None:
    """An unreachable remote proves nothing: the probe says unknown, and the check says why."""
    _, _, push = prepare(world)
    world.remote.rename(world.folder / "gone")
    assert push.found() is Found.unknown
    with pytest.raises(LookFailed, match=r"cannot be looked at.*looked at again by itself"):
        push.check()


def test_lease_of_the_plan_is_what_was_seen_in_gather(world: World) -> None:
    """Old ids come from the gathered remote refs, not from a look at planning time."""
    seen = {"refs/heads/main": world.ref("main")}
    _, _, push = prepare(world, lease=seen)
    assert push.body["refs"][0]["old"] == seen["refs/heads/main"]
    assert push.body["refs"][1]["old"] == "0" * 40
    with pytest.raises(UserError, match="expected object ids"):
        prepare(world, lease={"refs/heads/main": "abc"})


def test_push_never_loses_commits_of_others(world: World) -> None:
    """The remote is ahead: refused when planned, with the command that catches up."""
    other = world.git("commit-tree", "-p", "HEAD", "-m", "theirs", "HEAD^{tree}")
    world.git("push", "--quiet", "origin", f"{other}:refs/heads/main")
    with pytest.raises(UserError, match="git pull origin main"):
        prepare(world)


def test_url_is_fixed_when_planned(world: World) -> None:
    """A remote that is pointed elsewhere after the plan is drift; what is pushed to is the planned URL."""
    _, _, push = prepare(world)
    assert push.body["url"] == str(world.remote)
    world.git("remote", "set-url", "origin", "/elsewhere.git")
    assert "means /elsewhere.git now" in push.check()[0]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://user:hunter2@example.org/o.git", "https://example.org/o.git"),
        ("https://ghp_token@example.org/o.git", "https://example.org/o.git"),
        ("ssh://git:pw@example.org:22/o.git", "ssh://git@example.org:22/o.git"),
        ("git@example.org:team/o.git", "git@example.org:team/o.git"),
        ("git://example.org/o.git", "git://example.org/o.git"),
        ("../remote.git", None),
        ("ext::sh -c 'touch canary'", UserError),
        ("http://example.org/o.git", UserError),
        ("ftp://example.org/o.git", UserError),
        ("--upload-pack=touch canary", UserError),
        ("fd::3", UserError),
        ("sub/inside.git", UserError),
        (".git/inside.git", UserError),
        ("https://example.org/o.git\nx", UserError),
    ],
)
def test_urls_are_resolved_without_user_info(world: World, url: str, expected: str | type[Exception] | None) -> None:
    """Only file, https, ssh and git; no password enters a plan; nothing that lies inside the repository."""
    world.git("config", "remote.origin.url", url)
    repository = open_repository(world.repo)
    if isinstance(expected, type):
        with pytest.raises(expected):
            find_remote(repository, "origin")
        return
    remote = find_remote(repository, "origin")
    assert remote is not None
    assert remote.url == (expected or str(world.remote))
    assert "hunter2" not in repr(remote) and "ghp_token" not in repr(remote)


def test_push_url_and_rewrites_are_honoured(world: World) -> None:
    """pushurl goes before url, insteadOf is applied with the longest match, several push URLs are refused."""
    world.git("config", "remote.up.url", "short:o.git")
    world.git("config", "url.https://example.org/.insteadOf", "short:")
    world.git("config", "url.ssh://git@push.example.org/.pushInsteadOf", "short:")
    found = find_remote(open_repository(world.repo), "up")
    assert found is not None and found.url == "ssh://git@push.example.org/o.git"
    world.git("config", "remote.up.pushurl", "https://other.example.org/o.git")
    found = find_remote(open_repository(world.repo), "up")
    assert found is not None and found.url == "https://other.example.org/o.git"
    world.git("config", "--add", "remote.up.pushurl", "https://second.example.org/o.git")
    with pytest.raises(UserError, match="2 URLs"):
        find_remote(open_repository(world.repo), "up")
    assert find_remote(open_repository(world.repo), "none") is None


def test_password_of_the_url_never_shows(world: World) -> None:
    """What git says is cleaned of the configured user info."""
    remote = Remote("o", "https://example.org/o.git", "https://u:hunter2@example.org/o.git")
    said = without_secrets("fatal: https://u:hunter2@example.org/o.git and hunter2", remote)
    assert "hunter2" not in said and "fatal" in said


def test_host_of_a_url() -> None:
    """The reviewer sees which host is reached."""
    assert host_of("https://example.org:8443/o.git") == "example.org"
    assert host_of("git@example.org:team/o.git") == "example.org"
    assert host_of("/srv/o.git") == ""


def test_arguments_name_exact_ids() -> None:
    """Every ref is leased on its old id and pushed by its new id; empty means absent."""
    refs: list[JsonDict] = [
        {"ref": "refs/heads/main", "old": "a" * 40, "new": "b" * 40},
        {"ref": "refs/tags/v1", "old": "0" * 40, "new": "c" * 40},
        {"ref": "refs/tags/v0", "old": "d" * 40, "new": "0" * 40},
    ]
    args = push_arguments("/r.git", refs)
    assert "--atomic" in args and "--no-verify" in args
    assert f"--force-with-lease=refs/heads/main:{'a' * 40}" in args
    assert "--force-with-lease=refs/tags/v1:" in args
    assert args[-3:] == [f"{'b' * 40}:refs/heads/main", f"{'c' * 40}:refs/tags/v1", ":refs/tags/v0"]
    assert args[args.index("--") + 1] == "/r.git"


def test_wrong_refs_are_named(world: World) -> None:
    """A ref that is nowhere, or is both a branch and a tag, is refused."""
    world.git("tag", "both")
    world.git("branch", "both")
    for refs, message in ((["nope"], "no branch or tag"), (["both"], "a branch and a tag"), ([], "expected a list")):
        with pytest.raises(UserError, match=message):
            world.plan("git.push", {"repo": str(world.repo), "remote": "origin", "refs": refs})
    with pytest.raises(UserError, match="git remote add upstream"):
        world.plan("git.push", {"repo": str(world.repo), "remote": "upstream", "refs": ["main"]})


def test_remote_refs_are_read_whole(world: World) -> None:
    """Branches and tags of the remote by full name, tags unpeeled."""
    world.git("tag", "-a", "v1.0.0", "-m", "m")
    world.git("push", "--quiet", "origin", "v1.0.0")
    remote = find_remote(open_repository(world.repo), "origin")
    assert remote is not None
    expected = {"refs/heads/main": world.ref("main"), "refs/tags/v1.0.0": world.ref("v1.0.0")}
    assert read_remote_refs(remote) == expected


def test_settings_of_the_person_are_used_and_of_the_repository_not(world: World, tmp_path: Path) -> None:
    """Credentials come from the user's own configuration; the repository's helper and ssh program are not looked at."""
    from perdure.workspace.remotes import connection

    world.git("config", "--global", "credential.helper", "store")
    world.git("config", "--global", "core.hooksPath", "/home/hooks")
    world.git("config", "credential.helper", "!touch canary")
    world.git("config", "core.sshCommand", "touch canary")
    remote = Remote("o", "https://example.org/o.git", "https://u:hunter2@example.org/o.git")
    with connection(remote) as (folder, env):
        text = Path(env["GIT_CONFIG_GLOBAL"]).read_text()
        assert "store" in text and "canary" not in text and "/home/hooks" not in text
        assert "canary" not in (folder / "config").read_text()
        assert "hunter2" in text and Path(env["GIT_CONFIG_GLOBAL"]).stat().st_mode & 0o777 == 0o600
        assert not any("hunter2" in value for value in env.values())
    assert not folder.exists()


def test_remote_that_falls_silent_after_the_push_is_no_broken_promise(world: World) -> None:
    """Pushed, and the remote answers no more: verifying says that it cannot tell, and nothing is taken back for it."""
    commit, tag, push = prepare(world)
    commit.apply()
    tag.apply()
    push.do()
    world.remote.rename(world.folder / "gone")
    with pytest.raises(EffectUnknown):
        push.effect.verify(push.body, world.context())
