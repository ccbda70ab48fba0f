"""`perdure run` in a pipe: what it says and what it ends with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.contracts.job import JobPhase
from tests.cli.conftest import Ended
from tests.cli.world import DIGEST, Cut, World

Call = Callable[..., Ended]

FIRST_MINUTES = """\
release-orders/1   gather ✓ 14 commits since v1.2.0   analyze ✓   draft ✓
  verify – no test command given (test='["make","test"]')
PLAN 7f3a91c2   1.2.0 → 1.3.0   minor: "feat: bulk import" (a41c9e0)
  1  git.commit  2 files +19 −3       undo: move main back
  2  git.tag     v1.3.0 → 5be1f07     undo: delete while ours
  3  git.push    origin main, v1.3.0  undo: only with lease
"""


def test_run_shows_stages_and_plan_as_in_the_first_five_minutes(call: Call, world: World) -> None:
    """The stages come on one line, broken where it is full; then the plan with each effect's way back."""
    ended = call("run", "release")
    assert ended.out.startswith(FIRST_MINUTES), ended.out
    assert "Waiting until" in ended.out and "perdure approve 7f3a91c2" in ended.out
    assert ended.code == 3


def test_inputs_go_as_typed_with_the_folder(
    call: Call, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs are sent as text, with the folder that relative ones start from; nothing is guessed here."""
    monkeypatch.chdir(tmp_path)
    call("run", "release", 'test=["make","test"]', "remote=", "version=1.10", "note=a=b", "--detach")
    (request,) = world.sent("POST /v1/jobs")
    assert request["inputs"] == {"test": '["make","test"]', "remote": "", "version": "1.10", "note": "a=b"}
    assert request["folder"] == str(tmp_path)
    assert request["template"] == "release"


@pytest.mark.parametrize("wrong", ["version", "=1", "a=1 a=2"])
def test_an_input_that_is_none_is_refused_before_anything_is_asked(call: Call, world: World, wrong: str) -> None:
    """KEY=VALUE, each key once; otherwise exit code 64 and the form that was expected."""
    ended = call("run", "release", *wrong.split())
    assert ended.code == 64
    assert "KEY=VALUE" in ended.err or "twice" in ended.err
    assert world.sent("POST /v1/jobs") == []


def test_a_broken_connection_submits_the_same_request_again(call: Call, world: World) -> None:
    """When the answer was lost, the request is sent again with the same id: never a second job."""
    submit = world.routes["POST /v1/jobs"]
    cuts = iter([True, False])

    def lossy(query: dict[str, str], body: object) -> object:
        if next(cuts):
            raise Cut
        return submit(query, body)

    world.routes["POST /v1/jobs"] = lossy
    assert call("run", "release").code == 3
    first, second = world.sent("POST /v1/jobs")
    assert first == second


def test_a_request_id_of_ones_own_is_used(call: Call, world: World) -> None:
    """A script that may run twice gives its own id."""
    call("run", "release", "--request-id", "nightly-7", "--detach")
    assert world.sent("POST /v1/jobs")[0]["request_id"] == "nightly-7"


def test_detach_does_not_follow(call: Call, world: World) -> None:
    """--detach prints the job's name and how to look, and ends with 3."""
    ended = call("run", "release", "--detach")
    assert ended.code == 3
    assert "release-orders/1" in ended.out and "perdure show 1" in ended.out
    assert world.sent("GET /v1/events") == []


def test_plan_only_ends_with_2_and_opens_no_gate(call: Call, world: World) -> None:
    """--plan shows the plan; exit code 2 says that it would change something."""

    def planned() -> None:
        world.freeze(state="not_opened")
        world.move(JobPhase.done, "planned only")

    world.on_submit = planned
    ended = call("run", "release", "--plan")
    assert ended.code == 2
    assert world.sent("POST /v1/jobs")[0]["plan_only"] is True
    assert "PLAN 7f3a91c2" in ended.out and "nothing has changed" in ended.out


def test_plan_only_with_nothing_to_do_ends_with_0(call: Call, world: World) -> None:
    """Nothing to release is no change: 0, with and without --plan."""
    world.on_submit = lambda: world.move(JobPhase.nothing_to_do, "Nothing to release since v1.2.0.")
    for args in (["run", "release", "--plan"], ["run", "release"]):
        world.events.clear()
        world.job = world.job.model_copy(update={"phase": JobPhase.queued})
        ended = call(*args)
        assert ended.code == 0
        assert "Nothing to release since v1.2.0." in ended.out


@pytest.mark.parametrize(
    ("phase", "code"),
    [
        (JobPhase.failed, 1),
        (JobPhase.stuck, 1),
        (JobPhase.cancelled, 1),
        (JobPhase.expired, 77),
        (JobPhase.rejected, 77),
    ],
)
def test_exit_code_says_how_the_job_ended(call: Call, world: World, phase: JobPhase, code: int) -> None:
    """A job that did not do what was asked ends the command with the documented code and its reason."""
    world.on_submit = lambda: world.move(phase, "the branch 'mian' is not there")
    ended = call("run", "release")
    assert ended.code == code
    assert "the branch 'mian' is not there." in ended.out
    assert ("perdure undo 1" in ended.out) is (phase is JobPhase.stuck)


def test_a_red_check_is_told_by_its_name(call: Call, world: World) -> None:
    """Of checks that are not green each is told with its reason; the green ones share a mark."""

    def red() -> None:
        world.move(JobPhase.verifying)
        world.stage("verify", "version_legal")
        world.stage("verify", "tests", "2 of 41 tests failed", "failed")
        world.move(JobPhase.failed, "checks are red")

    world.on_submit = red
    ended = call("run", "release")
    assert "verify ✓ version_legal" in ended.out
    assert "verify.tests ✗ 2 of 41 tests failed" in ended.out


def test_a_red_check_is_told_with_where_its_log_is(call: Call, world: World) -> None:
    """The last line names the command that shows the red check's log, not that of a green one."""

    def red() -> None:
        world.move(JobPhase.verifying)
        for check in ("lint", "tests"):
            world.put(f"verify.{check}.log", check.encode())
        world.move(JobPhase.failed, "Verification is red: tests: make ended with 2.")

    world.on_submit = red
    assert "See: perdure artifacts 1 verify.tests.log" in call("run", "release").out


def test_json_is_one_document_and_nothing_else(call: Call, world: World) -> None:
    """With --json stdout holds the job as one document: no progress, no question."""
    ended = call("run", "release", "--json")
    assert ended.json["digest"] == DIGEST
    assert ended.json["phase"] == "waiting"
    assert ended.code == 3


def test_no_server_ends_with_69(call: Call) -> None:
    """Without a server and with --no-start: 69, and what to type."""
    ended = call("run", "release", "--no-start")
    assert ended.code == 69
    assert "perdure up" in ended.err


def test_text_of_the_server_cannot_steer_the_terminal(call: Call, world: World) -> None:
    """Escapes, bidi controls and line breaks in any text of a repository are written out."""

    def hostile() -> None:
        world.stage("gather", "history", "\x1b[2Jcommits \u202egnp.exe")
        world.freeze(title="1.0\n$ rm -rf /", reasons=["\x07bell"])

    world.on_submit = hostile
    out = call("run", "release").out
    assert "^[[2Jcommits ⟨U+202E⟩gnp.exe" in out
    assert "1.0^J$ rm -rf /" in out
    assert "^Gbell" in out
    assert not set("\x1b\x07\u202e") & set(out)
