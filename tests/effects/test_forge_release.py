"""forge.release: one release with exactly its notes and assets, through every way in which a server can fail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from perdure.contracts.canonical import canonical_bytes
from perdure.effects.base import Found
from perdure.errors import EffectFailed, EffectUnknown, LookFailed, UserError
from perdure.testing.forge import Forge
from tests.support.world import Planned, World

NOTES = "### Added\n\n- Bulk import.\n"
FLAVOURS = ("github", "gitlab")
SOON = timedelta(seconds=4)


def push_tag(world: World) -> str:
    """Make v1.3.0 and push it."""
    world.git("tag", "-a", "v1.3.0", "-m", "v1.3.0")
    world.git("push", "--quiet", str(world.remote), "v1.3.0")
    return world.ref("v1.3.0")


def plan(world: World, forge: Forge, flavour: str, *, limit: timedelta = timedelta(minutes=1), **more: Any) -> Planned:
    """Plan a release with the two files of the draft."""
    draft = world.draft({"VERSION": "1.3.0\n"})
    arguments = {"forge": flavour, "api": forge.api(flavour), "project": forge.project, "tag": "v1.3.0", "notes": NOTES}
    arguments = {**arguments, "assets": ["VERSION", "src/*.py"], "repo": str(world.repo), **more}
    return world.plan("forge.release", arguments, draft=draft, attempt_limit=limit)


def only_release(forge: Forge) -> dict[str, Any]:
    """The release that there is."""
    (release,) = forge.releases.values()
    return release


def files(forge: Forge) -> dict[str, bytes]:
    """Every whole file that the forge keeps."""
    return {one["name"]: one["data"] for one in forge.assets.values() if one["name"]}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_release_is_made_once_read_back_and_taken_back(world: World, forge: Forge, flavour: str) -> None:
    """Name, notes and both assets arrive, a second do changes nothing, and undo leaves the forge as before."""
    push_tag(world)
    planned = plan(world, forge, flavour, name="Orders 1.3.0")
    assert planned.draft.summary.startswith("acme/orders v1.3.0 on 127.0.0.1")
    planned.apply()
    release = only_release(forge)
    assert (release["name"], release["notes"], release["draft"]) == ("Orders 1.3.0", NOTES, False)
    assert files(forge) == {"VERSION": b"1.3.0\n", "app.py": b"print('hi')\n"}
    made = len(forge.asked("POST")) + len(forge.asked("PUT"))
    planned.do()
    assert len(forge.asked("POST")) + len(forge.asked("PUT")) == made
    planned.inverse.apply()
    assert (forge.releases, files(forge)) == ({}, {})
    assert world.ref("v1.3.0", at=world.remote), "the tag is another effect's"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_token_reaches_only_the_header(world: World, forge: Forge, flavour: str) -> None:
    """The body names the secret; neither body nor errors nor the log of paths hold its value."""
    push_tag(world)
    planned = plan(world, forge, flavour)
    planned.apply()
    host = forge.url.removeprefix("http://")
    assert planned.draft.ways_out == [host, "secret:forge-token"]
    assert forge.token.encode() not in canonical_bytes(planned.body)
    assert not [line for line in forge.log if forge.token in line]


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("way", ["500", "500 after", "die after", "late", "retry"])
def test_a_server_in_trouble_ends_with_one_release(world: World, forge: Forge, flavour: str, way: Any) -> None:
    """Late, broken before or after it did it, dead after it did it, busy: it is looked at and made whole, once."""
    push_tag(world)
    planned = plan(world, forge, flavour)
    forge.fail("POST", r"/releases$", way, seconds=1)
    forge.fail("POST" if flavour == "github" else "PUT", r"(assets|generic/.*)$", way, seconds=1)
    planned.apply()
    assert only_release(forge)["draft"] is False
    assert files(forge) == {"VERSION": b"1.3.0\n", "app.py": b"print('hi')\n"}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_an_upload_that_is_cut_is_sent_again(world: World, forge: Forge, flavour: str) -> None:
    """Half an asset is not taken for the asset: what the cut left is removed, and the whole file arrives."""
    push_tag(world)
    planned = plan(world, forge, flavour)
    forge.fail("POST" if flavour == "github" else "PUT", r"(assets|generic/.*)$", "cut")
    planned.apply()
    assert files(forge) == {"VERSION": b"1.3.0\n", "app.py": b"print('hi')\n"}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_silence_is_in_doubt_and_later_found(world: World, forge: Forge, flavour: str) -> None:
    """A server that stays broken after it made the release: do cannot know, the probe finds ours unfinished."""
    push_tag(world)
    planned = plan(world, forge, flavour, limit=SOON)
    forge.fail("POST" if flavour == "github" else "PUT", r"(assets|generic/.*)$", "500", times=99)
    with pytest.raises(EffectUnknown):
        planned.do()
    assert planned.found() is Found.not_done and planned.check() == []
    forge.faults.clear()
    planned.do()
    assert planned.found() is Found.done


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_somebody_elses_release_is_left_alone(world: World, forge: Forge, flavour: str) -> None:
    """A release under the tag with other notes is foreign: named, not touched, and never deleted by undo."""
    push_tag(world)
    planned = plan(world, forge, flavour)
    forge.add_release("v1.3.0", "hands off", author="mallory")
    assert planned.found() is Found.foreign and planned.inverse.found() is Found.foreign
    assert "mallory" in planned.check()[0]
    for one in (planned, planned.inverse):
        with pytest.raises(EffectFailed, match="left alone"):
            one.do()
    assert only_release(forge)["notes"] == "hands off"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_another_asset_of_the_name_is_not_ours(world: World, forge: Forge, flavour: str) -> None:
    """The release is ours and a file in it is not: foreign, by its SHA-256."""
    push_tag(world)
    planned = plan(world, forge, flavour)
    planned.apply()
    next(one for one in forge.assets.values() if one["name"] == "VERSION")["data"] = b"9.9.9\n"
    assert planned.found() is Found.foreign
    assert "VERSION" in planned.check()[0]


def test_content_is_hashed_where_the_server_tells_no_digest(world: World, forge: Forge) -> None:
    """An older GitHub tells only sizes: the file is read back and hashed."""
    push_tag(world)
    forge.tells_digests = False
    planned = plan(world, forge, "github")
    planned.apply()
    next(one for one in forge.assets.values() if one["name"] == "VERSION")["data"] = b"1.3.1\n"
    assert planned.found() is Found.foreign


def test_a_release_that_others_added_to_is_not_deleted(world: World, forge: Forge) -> None:
    """Files that CI attached since keep the release: done all the same, and undo says what is in the way."""
    push_tag(world)
    planned = plan(world, forge, "github")
    planned.apply()
    forge.add_asset(only_release(forge)["id"], "orders.deb", b"built by CI")
    assert planned.found() is Found.done
    assert "orders.deb" in planned.inverse.check()[0]
    with pytest.raises(EffectFailed):
        planned.inverse.do()
    assert len(forge.releases) == 1


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_wrong_token_says_what_to_do(world: World, forge: Forge, flavour: str) -> None:
    """401: it cannot be told, nothing is begun, and the message names the file that needs a valid token."""
    push_tag(world)
    planned = plan(world, forge, flavour)
    world.secrets["forge-token"] = "expired-t0ken"
    assert planned.found() is Found.unknown
    with pytest.raises(LookFailed, match=r"\(401\).*secrets/forge-token.*looked at again") as caught:
        planned.check()
    assert "expired-t0ken" not in caught.value.message
    with pytest.raises(EffectFailed, match="401"):
        planned.do()
    world.secrets.clear()
    with pytest.raises(LookFailed, match="No secret named 'forge-token'"):
        planned.check()
    assert forge.releases == {}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_server_that_wants_a_pause_is_no_drift(world: World, forge: Forge, flavour: str) -> None:
    """Too many requests: the check cannot look now, and says when to come back; what it would find is not told."""
    push_tag(world)
    planned = plan(world, forge, flavour)
    forge.fail("GET", r"/releases", "retry", seconds=90, times=9)
    with pytest.raises(LookFailed, match="says to come back in 90 s") as caught:
        planned.check()
    assert caught.value.after_seconds == 90


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_tag_must_be_this_plans(world: World, forge: Forge, flavour: str) -> None:
    """Without the tag, or with another object under it, no release is made: a forge would make a tag by itself."""
    planned = plan(world, forge, flavour)
    with pytest.raises(EffectFailed, match="has no tag"):
        planned.do()
    push_tag(world)
    planned.body["tag_object"] = "5" * 40
    with pytest.raises(EffectFailed, match="expected 5555555"):
        planned.do()
    assert forge.releases == {}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_retry_after_beyond_the_limit_is_not_waited_for(world: World, forge: Forge, flavour: str) -> None:
    """ "Come back in an hour" does not hold the worker for an hour: it is in doubt, and says so."""
    push_tag(world)
    planned = plan(world, forge, flavour, limit=SOON)
    forge.fail("POST", r"/releases$", "retry", times=99, seconds=3600)
    with pytest.raises(EffectUnknown, match="come back in 3600 s"):
        planned.do()


def test_draft_and_pre_release_are_kept(world: World, forge: Forge) -> None:
    """A draft stays a draft until a person publishes it; a pre-release is marked as one."""
    push_tag(world)
    planned = plan(world, forge, "github", draft=True, prerelease=True)
    planned.apply()
    assert (only_release(forge)["draft"], only_release(forge)["prerelease"]) == (True, True)
    with pytest.raises(UserError, match="GitLab has no draft"):
        plan(world, forge, "gitlab", draft=True)


def test_a_draft_made_twice_is_cleaned_up(world: World, forge: Forge) -> None:
    """A first draft whose answer was lost and that turns up later does not stay beside the release."""
    push_tag(world)
    planned = plan(world, forge, "github")
    for _ in range(2):
        forge.add_release("v1.3.0", NOTES, draft=True)
    planned.apply()
    assert only_release(forge)["draft"] is False


def test_assets_are_built_once_in_the_sandbox(world: World, forge: Forge) -> None:
    """What the build made when planning is uploaded; a build that fails, and a pattern without files, say so."""
    push_tag(world)
    build = ["sh", "-c", "mkdir dist && cp VERSION dist/orders-1.3.0.txt"]
    plan(world, forge, "github", assets=["dist/*"], build=build).apply()
    assert files(forge) == {"orders-1.3.0.txt": b"1.3.0\n"}
    with pytest.raises(UserError, match="ended with 3"):
        plan(world, forge, "github", assets=["dist/*"], build=["sh", "-c", "exit 3"])
    with pytest.raises(UserError, match="no file is 'dist"):
        plan(world, forge, "github", assets=["dist/*"])
    with pytest.raises(UserError, match="leaves the repository"):
        plan(world, forge, "github", assets=["../secret"])


def test_place_follows_from_the_remote(world: World) -> None:
    """Public forges are known by their host; what does not follow is asked for; a token never travels unencrypted."""
    for url, api, project in (
        ("https://github.com/acme/orders.git", "https://api.github.com", "acme/orders"),
        ("git@gitlab.com:acme/shop/orders.git", "https://gitlab.com/api/v4", "acme/shop/orders"),
        ("ssh://git@gitlab.acme.example/acme/orders", "https://gitlab.acme.example/api/v4", "acme/orders"),
    ):
        world.git("remote", "set-url", "origin", url)
        body = world.plan("forge.release", {"repo": str(world.repo), "tag": "v1"}).body
        assert (body["api"], body["project"], body["secret"]) == (api, project, "forge-token")
    planned = {"repo": str(world.repo), "tag": "v1", "forge": "github", "project": "acme/orders"}
    for api, said in (
        ("http://forge.example.org/api/v3", "unencrypted"),
        ("https://me:pw@forge.example.org", "name or password"),
        ("ftp://forge.example.org", "expected a URL"),
    ):
        with pytest.raises(UserError, match=said):
            world.plan("forge.release", {**planned, "api": api})


def test_a_redirect_leads_the_token_nowhere(world: World, forge: Forge) -> None:
    """A project that has moved answers with another address: named, not followed."""
    push_tag(world)
    planned = plan(world, forge, "github")
    forge.moved_to = "https://elsewhere.example.org/api"
    assert planned.found() is Found.unknown
    with pytest.raises(LookFailed, match="Redirects are not followed"):
        planned.check()
