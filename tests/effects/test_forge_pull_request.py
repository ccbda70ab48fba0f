"""forge.pull_request and git.tag_merged: what is approved is what a protected branch holds, however it is merged."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

import pytest

from perdure.contracts.base import JsonDict
from perdure.contracts.canonical import canonical_bytes
from perdure.effects.base import Found
from perdure.effects.forge_pull_request import ForgePullRequest
from perdure.errors import EffectFailed, EffectUnknown, EffectWaiting, LookFailed, UserError
from perdure.testing.forge import Forge
from tests.support.world import Planned, World

FLAVOURS = ("github", "gitlab")
WHY = "A merged request cannot be unmerged."
BRANCH = "perdure/release-v1.3.0"
SOON = timedelta(seconds=4)

How = Literal["merge", "squash", "rebase"]


def plan(world: World, forge: Forge, flavour: str = "github", **more: Any) -> tuple[Planned, Planned]:
    """Plan the request for a draft, and the tag on what it becomes."""
    draft = world.draft({"VERSION": "1.3.0\n"})
    place = {"forge": flavour, "api": forge.api(flavour), "project": forge.project}
    arguments = {**place, "base": "main", "to": draft["commit"], "branch": BRANCH, "title": "Release 1.3.0"}
    limit = more.pop("limit", timedelta(minutes=1))
    request = world.plan(
        "forge.pull_request", {**arguments, **more}, draft=draft, irreversible=WHY, attempt_limit=limit
    )
    arguments = {"name": "v1.3.0", "message": "Orders 1.3.0", "on": "main"}
    return request, world.plan("git.tag_merged", arguments, draft=draft)


def open_request(planned: Planned) -> None:
    """Begin, as the applier does: it parks."""
    assert planned.found() is Found.not_done and planned.check() == []
    planned.do()
    with pytest.raises(EffectWaiting):
        planned.verify()


def the_request(forge: Forge) -> JsonDict:
    """The one request that there is."""
    (request,) = forge.requests.values()
    return request


def number_of(forge: Forge) -> int:
    """Its number."""
    (number,) = forge.requests
    return number


def withdraw(planned: Planned) -> str:
    """Take it back while it is not merged."""
    assert isinstance(planned.effect, ForgePullRequest)
    return planned.effect.withdraw(planned.body, planned.world.context())


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_each_way_of_merging_the_tree_is_done_and_tagged(world: World, guarded: Forge, flavour: str, how: How) -> None:
    """Merged, squashed or rebased: the branch holds the approved tree, and exactly that commit gets the tag."""
    request, tag = plan(world, guarded, flavour)
    open_request(request)
    assert request.found() is Found.waiting and request.check() == []
    assert the_request(guarded)["title"] == "Release 1.3.0"
    assert tag.found() is Found.not_done
    with pytest.raises(EffectFailed, match="nothing to tag"):
        tag.do()
    merged = guarded.merge(number_of(guarded), how)
    assert request.found() is Found.done and request.verify() == []
    assert world.ref(BRANCH, at=world.remote) == "", "our branch is not needed any more"
    tag.apply()
    assert world.ref("v1.3.0^{commit}", at=world.remote) == merged
    assert world.git("log", "-1", "--format=%T", merged, at=world.remote) == request.body["tree"]
    tag.inverse.apply()
    assert world.ref("v1.3.0", at=world.remote) == ""


def test_second_do_opens_nothing(world: World, guarded: Forge) -> None:
    """What is there is found: one branch, one request."""
    request, _ = plan(world, guarded)
    open_request(request)
    request.do()
    assert len(guarded.asked("POST")) == 1 and len(guarded.requests) == 1


def test_the_plan_names_all_that_is_reached_and_no_value(world: World, guarded: Forge) -> None:
    """The review shows the host and the secret's name; that merging is final needs the template's reason."""
    request, tag = plan(world, guarded)
    assert request.draft.ways_out == [guarded.url.removeprefix("http://"), "secret:forge-token"]
    assert request.draft.inverse.irreversible == WHY
    assert guarded.token.encode() not in canonical_bytes(request.body)
    tree = request.body["tree"][:7]
    assert tag.draft.summary == f"origin v1.3.0 → the commit on origin/main whose tree is {tree}"
    with pytest.raises(UserError, match="cannot be unmerged"):
        world.plan("forge.pull_request", {**_arguments(world, guarded)}, draft=world.draft({"VERSION": "2\n"}))


def _arguments(world: World, forge: Forge) -> JsonDict:
    place = {"forge": "github", "api": forge.github, "project": forge.project}
    draft = world.draft({"VERSION": "2\n"})
    return {**place, "base": "main", "to": draft["commit"], "branch": BRANCH, "title": "t"}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_merged_with_another_change_has_lapsed(world: World, guarded: Forge, flavour: str) -> None:
    """One more line came in with the merge: the branch does not hold the approved tree, and nothing is tagged."""
    request, tag = plan(world, guarded, flavour)
    open_request(request)
    guarded.merge(number_of(guarded), "squash", change="one more line\n")
    assert request.found() is Found.lapsed
    assert "does not hold the approved tree" in request.check()[0]
    with pytest.raises(EffectFailed):
        tag.do()


def test_a_merge_over_somebody_elses_commit_has_lapsed(world: World, guarded: Forge) -> None:
    """Our commit is below the merge, and the branch itself never held its tree: other code would carry the version."""
    request, tag = plan(world, guarded)
    open_request(request)
    guarded.git.commit("main", "other.txt", "theirs\n")
    guarded.merge(number_of(guarded), "merge")
    assert request.found() is Found.lapsed
    with pytest.raises(EffectFailed, match="nothing to tag"):
        tag.do()


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_closed_has_lapsed_and_leaves_nothing(world: World, guarded: Forge, flavour: str) -> None:
    """Somebody closed the request: lapsed, and withdrawing deletes our branch and may be done twice."""
    request, _ = plan(world, guarded, flavour)
    open_request(request)
    guarded.close(number_of(guarded))
    assert request.found() is Found.lapsed
    assert "closed" in withdraw(request)
    withdraw(request)
    assert world.ref(BRANCH, at=world.remote) == ""
    assert request.found() is Found.lapsed


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_withdrawing_closes_what_is_open_and_ours(world: World, guarded: Forge, flavour: str) -> None:
    """The open request is closed and our branch deleted; one that somebody pushed to is left to them."""
    request, _ = plan(world, guarded, flavour)
    open_request(request)
    theirs = guarded.git.commit(BRANCH, "more.txt", "theirs\n")
    assert request.found() is Found.lapsed and "somebody pushed" in request.check()[0]
    withdraw(request)
    assert world.ref(BRANCH, at=world.remote) == theirs
    world.git("update-ref", f"refs/heads/{BRANCH}", request.body["commit"], at=world.remote)
    withdraw(request)
    assert the_request(guarded)["state"] == "closed" and world.ref(BRANCH, at=world.remote) == ""


def test_moved_target_has_lapsed(world: World, guarded: Forge) -> None:
    """Somebody else's commit on main: what would be merged was not approved. One of the same tree is no move."""
    request, _ = plan(world, guarded)
    open_request(request)
    same = world.git("commit-tree", "-p", "main", "-m", "nothing", "main^{tree}", at=world.remote)
    world.git("update-ref", "refs/heads/main", same, at=world.remote)
    assert request.found() is Found.waiting
    guarded.git.commit("main", "other.txt", "theirs\n")
    assert request.found() is Found.lapsed
    assert "origin/main is" in request.check()[0]


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("way", ["500", "500 after", "die after", "late", "retry"])
def test_a_forge_in_trouble_ends_with_one_request(world: World, guarded: Forge, flavour: str, way: Any) -> None:
    """Broken before or after it opened the request, late or busy: one request, found again."""
    request, _ = plan(world, guarded, flavour)
    guarded.fail("POST", r"/(pulls|merge_requests)$", way, seconds=1)
    open_request(request)
    assert len(guarded.requests) == 1


def test_silence_and_wrong_tokens_cannot_be_told(world: World, guarded: Forge) -> None:
    """No answer and 401 say nothing about the world: unknown, with what to do."""
    request, _ = plan(world, guarded, limit=SOON)
    guarded.fail("GET", r"/pulls$", "500", times=99)
    with pytest.raises(EffectUnknown):
        request.do()
    guarded.faults.clear()
    world.secrets["forge-token"] = "old"
    assert request.found() is Found.unknown
    with pytest.raises(LookFailed, match="secrets/forge-token"):
        request.check()


def test_a_refused_branch_is_known_not_to_have_happened(world: World, guarded: Forge) -> None:
    """The remote takes no branch of ours: failed, with its reason, and nothing is open."""
    guarded.git.protect(BRANCH)
    request, _ = plan(world, guarded)
    with pytest.raises(EffectFailed, match="protected branch"):
        request.do()
    assert guarded.requests == {} and request.found() is Found.not_done


def test_a_taken_branch_name_gets_a_number(world: World, guarded: Forge) -> None:
    """Somebody's branch of that name is not touched: ours is called otherwise, as the plan says."""
    world.git("branch", BRANCH, "main", at=world.remote)
    request, _ = plan(world, guarded)
    assert request.body["branch"] == f"refs/heads/{BRANCH}-2"


def test_somebody_elses_tag_is_not_ours(world: World, guarded: Forge) -> None:
    """A tag of the name on the same commit with other words is foreign: neither overwritten nor deleted."""
    request, tag = plan(world, guarded)
    open_request(request)
    merged = guarded.merge(number_of(guarded), "squash")
    world.git("tag", "-a", "v1.3.0", "-m", "theirs", merged, at=world.remote)
    assert tag.found() is Found.foreign and tag.inverse.found() is Found.foreign
    assert "not the one of this plan" in tag.check()[0]
    theirs = world.ref("v1.3.0", at=world.remote)
    for one in (tag, tag.inverse):
        with pytest.raises((EffectFailed, EffectUnknown)):
            one.do()
    assert world.ref("v1.3.0", at=world.remote) == theirs


def test_behind_the_remote_is_said_when_planning(world: World, guarded: Forge) -> None:
    """A draft on an old main could never be merged to its tree: pull first."""
    guarded.git.commit("main", "other.txt", "theirs\n")
    with pytest.raises(UserError, match="git pull origin main"):
        plan(world, guarded)
