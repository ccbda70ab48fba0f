"""Commits and tags are signed where git is configured to, when their bytes are fixed; git itself verifies them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.effects.base import Found
from perdure.errors import EffectFailed, UserError
from perdure.testing.forge import Forge
from perdure.workspace.git import open_repository
from perdure.workspace.signing import find_signer
from tests.effects.test_forge_pull_request import number_of, open_request
from tests.effects.test_forge_pull_request import plan as plan_request
from tests.effects.test_git_tag import plan_tag
from tests.support.world import WHO, World

NAME, EMAIL = WHO


def sign_with(world: World, *settings: tuple[str, str]) -> None:
    """Configure git as a person does who signs everything."""
    for key, value in (("commit.gpgSign", "true"), ("tag.gpgSign", "true"), *settings):
        world.git("config", "--global", key, value)


@pytest.fixture
def ssh_key(world: World) -> Path:
    """A key without a passphrase, and the file of allowed signers that git verifies with."""
    key = world.folder / "home" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    allowed = world.folder / "home" / "allowed"
    allowed.write_text(f"{EMAIL} {key.with_suffix('.pub').read_text()}")
    world.git("config", "--global", "gpg.ssh.allowedSignersFile", str(allowed))
    return key


@pytest.fixture
def gpg_key(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An OpenPGP key of the committer without a passphrase, in the user's own key ring."""
    ring = world.folder / "home" / ".gnupg"
    ring.mkdir(mode=0o700)
    monkeypatch.delenv("GNUPGHOME", raising=False)
    gpg = ["gpg", "--homedir", str(ring), "--batch", "--quiet", "--passphrase", ""]
    subprocess.run([*gpg, "--quick-generate-key", f"{NAME} <{EMAIL}>", "ed25519", "sign"], check=True)
    yield f"{NAME} <{EMAIL}>"
    subprocess.run(["gpgconf", "--homedir", str(ring), "--kill", "all"], check=True)


def assert_both_verify(world: World, key: str) -> None:
    """A released commit and tag, as git reads them; the reviewer reads what they are signed with."""
    commit = world.plan_commit(world.draft({"VERSION": "1.3.0\n"}))
    assert commit.draft.summary.endswith(f"(signed with {key})")
    commit.apply()
    tag = plan_tag(world)
    assert tag.draft.summary.endswith(f"(signed with {key})")
    tag.apply()
    world.git("verify-commit", "main")
    world.git("verify-tag", "v1.3.0")
    assert world.git("fsck", "--strict") == ""
    assert world.git("log", "-1", "--format=%s", "main") == "chore(release): 1.3.0"
    assert world.git("tag", "-l", "--format=%(contents:body)", "v1.3.0").startswith("- one")
    tag.inverse.apply()
    commit.inverse.apply()


def test_signed_by_ssh(world: World, ssh_key: Path) -> None:
    """``gpg.format=ssh`` with a key file."""
    sign_with(world, ("gpg.format", "ssh"), ("user.signingKey", str(ssh_key)))
    assert_both_verify(world, str(ssh_key))


def test_a_tag_on_what_was_merged_is_signed(world: World, guarded: Forge, ssh_key: Path) -> None:
    """Its commit is known after the merge: signed then with the planned key, found as ours, deleted while ours."""
    sign_with(world, ("gpg.format", "ssh"), ("user.signingKey", str(ssh_key)))
    request, tag = plan_request(world, guarded)
    assert tag.draft.summary.endswith(f"(signed with {ssh_key})")
    open_request(request)
    merged = guarded.merge(number_of(guarded), "squash")
    world.git("config", "--global", "user.signingKey", str(ssh_key) + ".other")
    with pytest.raises(EffectFailed, match=r"is configured to sign with .*other now; the plan says"):
        tag.do()
    world.git("config", "--global", "user.signingKey", str(ssh_key))
    tag.apply()
    world.git("verify-tag", "v1.3.0", at=world.remote)
    assert world.ref("v1.3.0^{commit}", at=world.remote) == merged
    assert tag.found() is Found.done
    tag.inverse.apply()
    assert world.ref("v1.3.0", at=world.remote) == "" and tag.found() is Found.not_done


def test_an_unsigned_or_light_tag_of_the_name_is_not_ours(world: World, guarded: Forge, ssh_key: Path) -> None:
    """Where a signature is planned, the same words without one are somebody else's, and are not deleted."""
    sign_with(world, ("gpg.format", "ssh"), ("user.signingKey", str(ssh_key)))
    request, tag = plan_request(world, guarded)
    open_request(request)
    merged = guarded.merge(number_of(guarded), "squash")
    for option in (["-a", "-m", "Orders 1.3.0"], []):
        world.git("-c", "tag.gpgSign=false", "tag", "-f", *option, "v1.3.0", merged, at=world.remote)
        assert tag.found() is Found.foreign
        with pytest.raises(EffectFailed, match="not ours"):
            tag.inverse.do()


def test_a_key_that_nobody_can_use_is_told_of_when_planning(world: World, guarded: Forge) -> None:
    """Not after the merge, when nobody watches."""
    sign_with(world, ("gpg.format", "ssh"), ("user.signingKey", "/nonexistent/key"))
    with pytest.raises(UserError, match="did not sign with /nonexistent/key"):
        plan_request(world, guarded)


def test_signed_by_openpgp(world: World, gpg_key: str) -> None:
    """The default format finds the committer's key by itself."""
    world.git("config", "--global", "user.name", NAME)
    world.git("config", "--global", "user.email", EMAIL)
    sign_with(world)
    assert_both_verify(world, gpg_key)


def test_repository_chooses_the_key_and_never_the_program(world: World, ssh_key: Path) -> None:
    """A program that a repository names as gpg would run outside the sandbox: it is not even started."""
    evil = world.repo / "gpg"
    evil.write_text(f"#!/bin/sh\ntouch {world.folder}/ran\n")
    evil.chmod(0o755)
    for key, value in (
        ("tag.gpgSign", "true"),
        ("gpg.format", "ssh"),
        ("user.signingKey", str(ssh_key)),
        ("gpg.program", str(evil)),
        ("gpg.ssh.program", str(evil)),
    ):
        world.git("config", key, value)
    plan_tag(world).apply()
    world.git("-c", "gpg.ssh.program=ssh-keygen", "verify-tag", "v1.3.0")
    assert not (world.folder / "ran").exists()


def test_key_that_does_not_sign_fails_the_plan(world: World) -> None:
    """A key that is not there is said with what to do; nothing unsigned takes the place of what was asked for."""
    sign_with(world, ("gpg.format", "ssh"), ("user.signingKey", str(world.folder / "no-key")))
    with pytest.raises(UserError, match=r"(?s)did not sign with .*no-key.*unlock the key"):
        plan_tag(world)
    with pytest.raises(UserError, match="did not sign"):
        world.draft({"VERSION": "1.3.0\n"})


def test_program_that_is_missing_is_named(world: World) -> None:
    """The user's own program is not installed."""
    sign_with(world, ("user.signingKey", "ABCD"), ("gpg.program", "/nonexistent/gpg"))
    with pytest.raises(UserError, match=r"/nonexistent/gpg did not sign .* not installed"):
        plan_tag(world)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ((("gpg.format", "ssh"),), "no key is named"),
        ((("gpg.format", "pigeon"), ("user.signingKey", "x")), "git knows openpgp, x509, ssh"),
    ],
)
def test_half_a_configuration_is_said(world: World, settings: tuple[tuple[str, str], ...], said: str) -> None:
    """What is missing is named before anything is signed."""
    sign_with(world, *settings)
    with pytest.raises(UserError, match=said):
        plan_tag(world)


def test_unsigned_by_default(world: World) -> None:
    """Without a setting nothing is signed, and nothing is said about it."""
    assert find_signer(open_repository(world.repo), "tag.gpgsign") is None
    assert "signed" not in plan_tag(world).draft.summary
