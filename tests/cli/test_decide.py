"""Decisions: on exactly one digest, and followed to their end."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable

import pytest

from perdure.contracts.decisions import Weighing
from perdure.contracts.job import JobPhase
from tests.cli.conftest import Ended
from tests.cli.world import DIGEST, SECOND, Answer, World, ignored

Call = Callable[..., Ended]


@pytest.fixture(autouse=True)
def plan(world: World) -> None:
    """A plan waits."""
    world.draft()


def decided(world: World) -> list[str]:
    """Digests of the paths that decisions were sent to."""
    return [path.split("/")[3] for method, path, _, _ in world.asked if path.startswith("/v1/plans/")]


def test_approve_sends_the_whole_digest_and_follows(call: Call, world: World) -> None:
    """Eight digits name the plan; what is sent is the digest, whole; then the effects are ticked off."""
    ended = call("approve", "7f3a91c2", "-m", "checked on staging")
    assert decided(world) == [DIGEST]
    assert world.sent("POST /v1/plans")[0]["comment"] == "checked on staging"
    assert ended.code == 0
    assert "Approved 7f3a91c2   1.2.0 → 1.3.0" in ended.out
    assert "  1 ✓   2 ✓   3 ✓" in ended.out
    assert "v1.3.0 released." in ended.out


def test_what_happened_before_is_not_told_again(call: Call, world: World) -> None:
    """Following an approval begins with it: stages and one's own decision are not repeated."""
    ended = call("approve", "7f3a91c2")
    assert "gather" not in ended.out
    assert "approve by" not in ended.out


@pytest.mark.parametrize("name", ["1", "@last", "release-orders/1", "7f3a91c", "latest", "7f3a91cz"])
@pytest.mark.parametrize("command", ["approve", "reject", "withdraw"])
def test_only_a_digest_names_what_is_decided(call: Call, world: World, command: str, name: str) -> None:
    """No job, no "latest", no seven digits: a decision on them is refused here, before anything is sent."""
    ended = call(command, name)
    assert ended.code == 64
    assert "never the latest" in ended.err
    assert decided(world) == []


def test_a_digest_that_names_no_plan_is_not_found(call: Call, world: World) -> None:
    """Exit code 66 with the server's words."""
    ended = call("approve", "deadbeef")
    assert ended.code == 66
    assert "deadbeef" in ended.err


def test_an_approval_that_is_not_enough_ends_with_3(call: Call, world: World) -> None:
    """When others are still needed it says who, and does not follow."""
    world.weighing = Weighing(outcome="pending", missing=["1 from security"], by=["anna"])
    world.on_decide = lambda kind: None
    ended = call("approve", "7f3a91c2")
    assert ended.code == 3
    assert "Still needed: 1 from security" in ended.out


def test_an_approval_that_does_not_count_says_why(call: Call, world: World) -> None:
    """The requester who may not approve is told so, not left in the belief that it was done."""
    world.weighing = ignored("who asked for the plan may not approve it")
    world.on_decide = lambda kind: None
    ended = call("approve", "7f3a91c2")
    assert ended.code == 3
    assert "It does not count: who asked for the plan may not approve it" in ended.out


def test_a_late_decision_ends_with_75(call: Call, world: World) -> None:
    """A gate that is closed says how it ended."""

    def late(query: dict[str, str], body: object) -> object:
        raise Answer("Conflict", "Plan 7f3a91c2 was rejected by bea.", 409, 75)

    world.routes["POST /v1/plans"] = late
    ended = call("approve", "7f3a91c2")
    assert ended.code == 75
    assert "was rejected by bea" in ended.err


def test_a_refused_decision_ends_with_77(call: Call, world: World) -> None:
    """A token that may not decide: 77, as JSON where JSON was asked for."""

    def refused(query: dict[str, str], body: object) -> object:
        raise Answer("Refused", "This token may submit, not decide.", 403, 77)

    world.routes["POST /v1/plans"] = refused
    ended = call("approve", "7f3a91c2", "--json")
    assert ended.code == 77
    assert ended.out == ""
    assert '"kind": "Refused"' in ended.err


def test_rejecting_is_a_success(call: Call, world: World) -> None:
    """`perdure reject` did what was asked when the job ends rejected: 0."""
    world.on_decide = lambda kind: world.move(JobPhase.rejected, "rejected by anna: freeze")
    ended = call("reject", "7f3a91c2", "-m", "freeze")
    assert ended.code == 0
    assert "rejected by anna: freeze." in ended.out


def test_requested_changes_show_the_next_plan(call: Call, world: World) -> None:
    """The next plan is followed to and shown, with its difference; it waits, so 3."""

    def redraft(kind: str) -> None:
        world.move(JobPhase.drafting, "changes were requested")
        world.freeze(SECOND, round=2, since_previous="version: 1.3.0 → 2.0.0", since_digest=DIGEST)

    world.on_decide = redraft
    ended = call("request-changes", "7f3a91c2", "-m", "it breaks the API")
    assert ended.code == 3
    assert "PLAN c09e41d0" in ended.out
    assert f"since the last plan that you decided, {DIGEST[:8]}:\n    version: 1.3.0 → 2.0.0" in ended.out


def test_withdrawing_says_so_and_ends(call: Call, world: World) -> None:
    """A withdrawal is sent on the digest and not followed: the plan waits again."""
    world.weighing = Weighing(outcome="withdrawn", by=["anna"])
    world.on_decide = lambda kind: None
    ended = call("withdraw", "7f3a91c2")
    assert ended.code == 0
    assert world.sent("POST /v1/plans")[0]["kind"] == "withdraw"


def test_the_passphrase_comes_from_stdin_never_from_the_line(
    call: Call, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--passphrase-stdin takes one line; no option takes the passphrase itself, where other processes could read it."""
    monkeypatch.setattr("sys.stdin", io.StringIO("sesame\nmore\n"))
    call("approve", "7f3a91c2", "--passphrase-stdin")
    assert world.sent("POST /v1/plans")[0]["passphrase"] == "sesame"
    assert call("approve", "7f3a91c2", "--passphrase", "sesame").code == 64


def test_drift_before_the_first_effect_says_what_moved(call: Call, world: World) -> None:
    """Nothing was begun, so no effect tells it: the line before the new draft says why the approved plan is gone."""
    world.draft()

    def drift(kind: str) -> None:
        world.move(JobPhase.applying)
        world.emit("application.closed", state="drift", detail="main is af5adda; expected 10d5882.")
        world.move(JobPhase.gathering)
        world.stage("gather", "history", "3 commits")
        world.freeze(SECOND, round=2)

    world.on_decide = drift
    ended = call("approve", DIGEST[:8])
    assert ended.code == 3
    said = "The world has moved since the plan: main is af5adda; expected 10d5882. The job plans again."
    assert ended.out.index(said) < ended.out.index("gather ✓")


def test_drift_asks_again_with_the_difference(call: Call, world: World) -> None:
    """The world moved: what was approved stops, the rest is planned again and shown with why."""

    def drift(kind: str) -> None:
        world.move(JobPhase.applying)
        world.emit("effect.intent", index=0, direction="do", kind="git.commit")
        world.fate(0, "drift", "main moved to 9be0c11")
        world.move(JobPhase.drafting, "drift: main moved to 9be0c11")
        world.stage("draft")
        world.freeze(SECOND, round=2, since_previous="base: 5be1f07 → 9be0c11")

    world.on_decide = drift
    ended = call("approve", "7f3a91c2")
    assert "1 ✗ main moved to 9be0c11" in ended.out
    assert "↻ drift: main moved to 9be0c11" in ended.out
    assert "PLAN c09e41d0" in ended.out
    assert ended.code == 3


def test_taking_back_is_told_beside_the_cause(call: Call, world: World) -> None:
    """When an effect fails, the undos are shown newest first, and the last line names the cause."""

    def fail(kind: str) -> None:
        world.move(JobPhase.applying)
        world.fate(0, "done")
        world.fate(1, "failed", "tag v1.3.0 exists")
        world.move(JobPhase.undoing, "effect 2: tag v1.3.0 exists")
        world.emit("effect.receipt", index=0, direction="undo", state="done")
        world.move(JobPhase.failed, "effect 2: tag v1.3.0 exists")

    world.on_decide = fail
    ended = call("approve", "7f3a91c2")
    assert "  1 ✓   2 ✗ tag v1.3.0 exists\n  taking back   1 ✓\n" in ended.out
    assert "effect 2: tag v1.3.0 exists." in ended.out
    assert ended.code == 1


def test_an_unknown_effect_says_what_to_type(call: Call, world: World) -> None:
    """Nothing is tried again blindly: the line to type stands there, with the effect's number."""

    def lose(kind: str) -> None:
        world.move(JobPhase.applying)
        world.fate(2, "unknown", "the remote does not answer")
        world.move(JobPhase.unknown, "the remote does not answer")

    world.on_decide = lose
    ended = call("approve", "7f3a91c2")
    assert "perdure resolve 1 3 --done | --not-done | --stop" in ended.out
    assert ended.code == 3


def test_resolve_names_the_effect_by_number_or_id(call: Call, world: World) -> None:
    """Numbers count from 1 as they are shown; the answer goes with the plan's whole digest."""
    world.move(JobPhase.unknown)

    def settle(query: dict[str, str], body: object) -> object:
        world.move(JobPhase.done, "v1.3.0 released")
        return world.job.model_copy(update={"phase": JobPhase.unknown})

    world.routes["POST /v1/resolve"] = settle
    for name in ("3", "push"):
        ended = call("resolve", "1", name, "--not-done", "-m", "looked")
        assert ended.code == 0, ended.err
    for body in world.sent("POST /v1/resolve"):
        assert (body["digest"], body["effect"], body["answer"]) == (DIGEST, 2, "not_done")


def test_after_resolving_the_old_doubt_is_not_told_again(call: Call, world: World) -> None:
    """Until the job has moved it still says "unknown"; it is followed on to where the answer leads."""
    world.move(JobPhase.unknown)

    def settle(query: dict[str, str], body: object) -> object:
        threading.Timer(0.3, world.apply).start()
        world.emit("decision.resolve", decision={"id": "elsewhere", "by": "bea"})
        return world.job

    world.routes["POST /v1/resolve"] = settle
    ended = call("resolve", "1", "push", "--done")
    assert ended.code == 0
    assert "Nobody can tell" not in ended.out


@pytest.mark.parametrize(("args", "code"), [(["4", "--done"], 66), (["push"], 64), (["push", "--done", "--stop"], 64)])
def test_resolve_refuses_what_is_not_one_answer_to_one_effect(
    call: Call, world: World, args: list[str], code: int
) -> None:
    """No such effect, no answer, two answers: nothing is sent."""
    ended = call("resolve", "1", *args)
    assert ended.code == code
    assert world.sent("POST /v1/resolve") == []


def test_undo_ends_with_the_audit(call: Call, world: World) -> None:
    """An undo that is done says so, and that the evidence has no gaps."""
    world.job = world.job.model_copy(update={"template": "undo"})

    def undo(query: dict[str, str], body: object) -> object:
        view = world.job.model_copy(update={"phase": JobPhase.queued})
        world.apply()
        return view

    world.routes["POST /v1/undo"] = undo
    ended = call("undo", "1")
    assert "✓ As before. Audit: 27 records, no gaps." in ended.out
    assert ended.code == 0


def test_cancel_follows_to_the_end(call: Call, world: World) -> None:
    """Cancelling a waiting job ends when it is cancelled: that is what was asked, so 0."""

    def cancel(query: dict[str, str], body: object) -> object:
        view = world.job
        world.move(JobPhase.cancelled, "cancelled by anna")
        return view

    world.routes["POST /v1/cancel"] = cancel
    ended = call("cancel", "1", "-m", "wrong branch")
    assert ended.code == 0
    assert world.sent("POST /v1/cancel")[0]["comment"] == "wrong branch"
    assert "cancelled by anna." in ended.out


def test_a_cancel_that_comes_after_the_last_effect_says_so(call: Call, world: World) -> None:
    """The job was done before it could stop: 75, and how to take it back; never the 0 of a job that was stopped."""
    world.freeze()

    def cancel(query: dict[str, str], body: object) -> object:
        view = world.job
        world.apply()
        return view

    world.routes["POST /v1/cancel"] = cancel
    ended = call("cancel", "1")
    assert ended.code == 75
    assert "Too late to stop it" in ended.err and "perdure undo 1" in ended.out
