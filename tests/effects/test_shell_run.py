"""shell.run: a command on exactly the approved content; what it did is told by the template's probe."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.base import BlobRef, JsonDict
from perdure.effects.base import Found
from perdure.errors import EffectFailed, EffectUnknown, UserError
from tests.support.world import Planned, World


@pytest.fixture
def shelf(world: World) -> Path:
    """Where the tests' commands publish to."""
    folder = world.folder / "shelf"
    folder.mkdir()
    return folder


def publish(world: World, shelf: Path, **more: Any) -> Planned:
    """Put VERSION of the approved content on the shelf; runs on the worker."""
    arguments = {"run": ["sh", "-c", f"echo x >> {shelf}/count; cp VERSION {shelf}/out"], **more.pop("arguments", {})}
    options: JsonDict = {
        "draft": world.draft({"VERSION": "1.3.0\n"}),
        "probe": ["test", "-e", f"{shelf}/out"],
        "undo": ["rm", f"{shelf}/out"],
        "runs_on": "worker",
    }
    return world.plan("shell.run", arguments, **{**options, **more})


def test_command_runs_once_on_the_approved_content_and_is_taken_back(world: World, shelf: Path) -> None:
    """It sees the drafted files, not the checkout's; its undo is found by the same probe, the other way round."""
    planned = publish(world, shelf)
    assert planned.draft.runs_on == "worker"
    (world.repo / "VERSION").write_text("mine\n")
    planned.apply()
    assert (shelf / "out").read_text() == "1.3.0\n"
    assert planned.inverse.found() is Found.not_done
    planned.inverse.apply()
    assert not (shelf / "out").exists()
    assert (shelf / "count").read_text() == "x\n"


def test_result_names_the_log(world: World, shelf: Path) -> None:
    """The receipt has the exit code and where the whole output lies."""
    planned = publish(world, shelf, arguments={"run": ["sh", "-c", f"echo hello; touch {shelf}/out"]})
    result = planned.do()
    assert result["code"] == 0
    assert world.blobs.get(BlobRef.model_validate(result["log"])) == b"hello\n"


@pytest.mark.parametrize(
    ("script", "code", "expected"),
    [
        ("exit 5", 1, EffectFailed),  # proven: not there
        ("exit 5", 7, EffectUnknown),  # the probe cannot tell
        ("touch {shelf}/out; exit 5", 0, None),  # it happened in spite of the code
    ],
)
def test_failing_command_is_judged_by_its_probe(
    world: World, shelf: Path, script: str, code: int, expected: type[Exception] | None
) -> None:
    """An exit code says nothing about the world; only the probe does."""
    planned = publish(
        world, shelf, arguments={"run": ["sh", "-c", script.format(shelf=shelf)]}, probe=["sh", "-c", f"exit {code}"]
    )
    if expected is None:
        planned.do()
    else:
        with pytest.raises(expected, match="ended with 5"):
            planned.do()


@pytest.mark.parametrize(
    ("code", "found"), [(0, Found.done), (1, Found.not_done), (2, Found.unknown), (127, Found.unknown)]
)
def test_probe_codes(world: World, shelf: Path, code: int, found: Found) -> None:
    """0: there and ours; 1: not there; anything else: cannot be told."""
    planned = publish(world, shelf, probe=["sh", "-c", f"exit {code}"])
    assert planned.found() is found


def test_without_a_probe_nothing_can_be_told(world: World, shelf: Path) -> None:
    """A command without a probe is unknown once it may have run, and a failing one is never called undone."""
    planned = publish(world, shelf, probe=None, arguments={"run": ["false"]})
    assert planned.found() is Found.unknown
    assert planned.verify() == []
    with pytest.raises(EffectUnknown):
        planned.do()


def test_command_over_its_limit_is_unknown(world: World, shelf: Path) -> None:
    """A command that does not end is killed before the attempt's limit, and its fate is unknown."""
    planned = publish(world, shelf, arguments={"run": ["sleep", "600"]}, attempt_limit=timedelta(seconds=1), probe=None)
    with pytest.raises(EffectUnknown, match="did not end"):
        planned.do()


def test_sandbox_is_the_default(world: World, shelf: Path) -> None:
    """Without `runs_on: worker` the command runs sandboxed: it reaches nothing but its own copy."""
    script = f"cat VERSION; touch {shelf}/out; touch here; git log --oneline; env"
    draft = world.draft({"VERSION": "1.3.0\n"})
    arguments = {"run": ["sh", "-c", script], "env": {"MODE": "release"}}
    planned = world.plan("shell.run", arguments, undo="none_needed", draft=draft)
    assert planned.draft.runs_on == "sandbox"
    log = world.blobs.get(BlobRef.model_validate(planned.do()["log"])).decode()
    assert log.startswith("1.3.0\n")
    assert draft["commit"][:7] in log
    assert "MODE=release" in log and "HOME=/tmp/home" in log
    assert list(shelf.iterdir()) == []
    assert not (world.repo / "here").exists()


def test_secret_reaches_the_command_and_nothing_else(world: World, shelf: Path) -> None:
    """The value comes by environment to the command alone: not in body, summary, argv, receipt or log."""
    world.secrets["registry-token"] = "hunter2"
    script = f'test ${{#REGISTRY_TOKEN}} = 7 && touch {shelf}/out; echo "I have $REGISTRY_TOKEN"'
    planned = publish(world, shelf, arguments={"run": ["sh", "-c", script], "secret": "registry-token"})
    assert planned.draft.ways_out == ["secret:registry-token"]
    result = planned.apply()
    log = world.blobs.get(BlobRef.model_validate(result["log"]))
    assert log == b"I have [secret]\n"
    assert "hunter2" not in repr(planned.draft) + repr(result)
    for blob in (world.folder / "blobs").rglob("*"):
        assert not blob.is_file() or b"hunter2" not in blob.read_bytes()


def test_unknown_secret_stops_before_anything_runs(world: World, shelf: Path) -> None:
    """A secret that is not known here: nothing is run."""
    planned = publish(world, shelf, arguments={"secret": "registry-token"})
    with pytest.raises(EffectFailed, match="registry-token"):
        planned.do()
    assert list(shelf.iterdir()) == []


def test_required_command_is_a_precondition(world: World, shelf: Path) -> None:
    """`require` is run before: another code than 0 is drift, said with its output."""
    planned = publish(world, shelf, require=["sh", "-c", "echo not now; exit 4"])
    assert "ended with 4: not now" in planned.check()[0]
    assert planned.inverse.check() == []


def test_inverse_is_declared(world: World, shelf: Path) -> None:
    """An undo command, none needed, or why there is none: one of them must be said."""
    assert publish(world, shelf, undo="none_needed").draft.inverse.none_needed
    final = publish(world, shelf, undo=None, irreversible="A published version can only be yanked.").draft.inverse
    assert final.irreversible and final.body is None
    with pytest.raises(UserError, match="none_needed"):
        publish(world, shelf, undo=None)
    with pytest.raises(UserError, match="list of words"):
        publish(world, shelf, undo="rm -rf x")


def test_commands_are_words_not_text(world: World, shelf: Path) -> None:
    """No shell takes a text apart; wrong arguments say what was expected."""
    for arguments, message in (
        ({"run": "rm -rf x"}, "list of words"),
        ({"run": []}, "list of words"),
        ({"run": ["true"], "evn": {}}, "Did you mean 'env'"),
        ({"run": ["true"], "env": {"A B": "x"}}, "by variable name"),
        ({"run": ["true"], "secrets": {"A": 1}}, "by variable name"),
    ):
        with pytest.raises(UserError, match=message):
            publish(world, shelf, arguments=arguments)
    with pytest.raises(UserError, match="cannot be opened"):
        publish(world, shelf, runs_on="sandbox", arguments={"run": ["true"], "network": ["example.org"]})


def test_works_without_a_draft(world: World, shelf: Path) -> None:
    """A runbook without a draft stage runs its commands in an empty folder."""
    planned = world.plan("shell.run", {"run": ["sh", "-c", "ls -A"]}, undo="none_needed")
    assert world.blobs.get(BlobRef.model_validate(planned.do()["log"])) == b""
