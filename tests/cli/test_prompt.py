"""The question at the end of `perdure run`, on a real terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from perdure.contracts.job import JobPhase
from tests.cli.terminal import Terminal
from tests.cli.world import DIGEST, SECOND, Answer, World

Open = Callable[..., Terminal]
QUESTION = "[l]eave: "


def test_approving_at_the_question_follows_to_the_end(terminal: Open, world: World) -> None:
    """`a` approves the digest shown, each effect is ticked off, and the last line says how to take it back."""
    shown = terminal("run", "release")
    shown.expect("Nothing has changed yet. [a]pprove [d]iff [e]dit [c]hanges [r]eject " + QUESTION)
    shown.type("a\n")
    assert shown.end() == 0
    (path,) = [path for method, path, _, _ in world.asked if path.startswith("/v1/plans/")]
    assert path == f"/v1/plans/{DIGEST}/decisions"
    assert "  1 ✓   2 ✓   3 ✓" in shown.screen()
    assert "  ✓ v1.3.0 released.  Take back: perdure undo 1" in shown.screen()


def test_leaving_changes_nothing(terminal: Open, world: World) -> None:
    """`l` ends with 3, says until when the plan waits and how to come back; nothing was decided."""
    shown = terminal("run", "release")
    shown.expect(QUESTION)
    shown.type("l\n")
    assert shown.end() == 3
    assert "Survives restarts.  perdure review 1" in "\n".join(shown.screen())
    assert world.sent("POST /v1/plans") == []


def test_end_of_input_leaves(terminal: Open, world: World) -> None:
    """Ctrl-D at the question is the same as leaving."""
    shown = terminal("run", "release")
    shown.expect(QUESTION)
    shown.type("\x04")
    assert shown.end() == 3


def test_ctrl_c_detaches_and_says_how_to_come_back(terminal: Open, world: World) -> None:
    """Ctrl-C while stages run ends with 130; the job goes on."""
    world.on_submit = lambda: world.move(JobPhase.gathering)
    shown = terminal("run", "release")
    shown.expect("gather ")
    shown.interrupt()
    assert shown.end() == 130
    assert "Detached. release-orders/1 goes on.  Come back: perdure show 1" in shown.screen()


def test_the_diff_can_be_read_before_deciding(terminal: Open, world: World) -> None:
    """`d` shows the diff with its tabs, and asks again."""
    shown = terminal("run", "release")
    shown.expect(QUESTION)
    shown.type("d\n")
    shown.expect("bulk import")
    shown.expect(QUESTION)
    shown.type("l\n")
    shown.end()
    assert "\x1b[32m+\tbulk import\x1b[0m" in shown.raw


def test_a_word_that_is_no_choice_decides_nothing(terminal: Open, world: World) -> None:
    """Only a letter or the beginning of its word counts: `apple` does not approve, nor does an empty line."""
    shown = terminal("run", "release")
    for typed in ("apple\n", "\n", "y\n"):
        shown.expect(QUESTION)
        shown.type(typed)
    shown.expect(QUESTION)
    assert world.sent("POST /v1/plans") == []


def test_requested_changes_come_back_as_another_plan(terminal: Open, world: World) -> None:
    """`c` asks what should change; the next plan is shown with the difference and asked about anew."""

    def redraft(kind: str) -> None:
        world.move(JobPhase.drafting, "changes were requested")
        world.stage("draft")
        world.freeze(SECOND, round=2, title="1.2.0 → 2.0.0", since_previous="version: 1.3.0 → 2.0.0")

    world.on_decide = redraft
    shown = terminal("run", "release")
    shown.expect(QUESTION)
    shown.type("c\n")
    shown.expect("What should change? ")
    shown.type("it breaks the API\n")
    shown.expect("PLAN c09e41d0   1.2.0 → 2.0.0")
    shown.expect("version: 1.3.0 → 2.0.0")
    shown.expect(QUESTION)
    (body,) = world.sent("POST /v1/plans")
    assert (body["kind"], body["comment"]) == ("request_changes", "it breaks the API")


def test_rejecting_ends_with_77(terminal: Open, world: World) -> None:
    """`r` asks for a reason that may be empty; the job ends, and so does the command, with 77."""
    world.on_decide = lambda kind: world.move(JobPhase.rejected, "rejected by anna")
    shown = terminal("run", "release")
    shown.expect(QUESTION)
    shown.type("r\n")
    shown.expect("Why?")
    shown.type("\n")
    assert shown.end() == 77


def test_a_decision_elsewhere_ends_the_question(terminal: Open, world: World) -> None:
    """While the question stands, somebody else approves: it is noticed without a key, and followed."""
    shown = terminal("run", "release")
    shown.expect(QUESTION)
    world.emit("decision.approve", decision={"id": "other", "by": "bea", "comment": "fine"})
    world.apply()
    shown.expect("Decided elsewhere meanwhile.")
    assert shown.end() == 0
    assert "  approve by bea: fine" in shown.screen()


def test_an_answer_that_comes_too_late_says_how_it_ended(terminal: Open, world: World) -> None:
    """When the gate is closed in the very moment, the server's words are shown and the job is followed."""

    def late(query: dict[str, str], body: object) -> object:
        world.apply()
        raise Answer("Conflict", "Plan 7f3a91c2 was approved by bea at 10:12; it is being applied.", 409, 75)

    world.routes["POST /v1/plans"] = late
    shown = terminal("run", "release")
    shown.expect(QUESTION)
    shown.type("r\n")
    shown.expect("Why?")
    shown.type("\n")
    shown.expect("was approved by bea at 10:12")
    assert shown.end() == 0


def test_the_passphrase_is_asked_unseen_and_only_when_needed(terminal: Open, world: World) -> None:
    """A decision key with a passphrase: it is asked for on the terminal, not echoed, and the same decision is sent."""
    decide = world.routes["POST /v1/plans"]

    def locked(query: dict[str, str], body: dict[str, str]) -> object:
        if body["passphrase"] != "sesame":
            raise Answer("Refused", "The decision key has a passphrase; none was given.", 403, 77)
        return decide(query, body)

    world.routes["POST /v1/plans"] = locked
    shown = terminal("run", "release")
    shown.expect(QUESTION)
    shown.type("a\n")
    shown.expect("Passphrase of the decision key: ")
    shown.type("sesame\n")
    assert shown.end() == 0
    assert "sesame" not in shown.raw
    first, second = world.sent("POST /v1/plans")
    assert first["decision_id"] == second["decision_id"]


def test_editing_opens_the_readers_editor(terminal: Open, world: World, tmp_path: Path) -> None:
    """`e` opens version and entries in $EDITOR; what was changed goes as edits of exactly this plan."""
    entry = {"id": "a41c9e0", "section": "Added", "text": "bulk import"}
    world.put("analyze", json.dumps({"release": {"version": "1.3.0", "entries": [entry]}}).encode())
    world.on_decide = lambda kind: world.freeze(SECOND, round=2)
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/1.3.0/2.0.0/; s/bulk import/Import in bulk/' \"$1\"\n")
    editor.chmod(0o755)
    shown = terminal("run", "release", EDITOR=str(editor), VISUAL=str(editor))
    shown.expect(QUESTION)
    shown.type("e\n")
    shown.expect("PLAN c09e41d0")
    (body,) = world.sent("POST /v1/plans")
    assert body["changes"] == {
        "version": "2.0.0",
        "entries": [{"op": "reword", "id": "a41c9e0", "text": "Import in bulk"}],
    }


def test_an_undo_is_asked_about_without_edits(terminal: Open, world: World) -> None:
    """A plan that takes back can be approved, read, rejected or left; there is nothing to edit in it."""
    world.job = world.job.model_copy(update={"template": "undo"})
    world.routes["POST /v1/undo"] = lambda query, body: world.freeze(diff="").job
    world.freeze()
    shown = terminal("undo", "1")
    shown.expect("[a]pprove [r]eject [l]eave: ")


def test_colour_is_off_with_no_color_and_on_a_dumb_terminal(terminal: Open, world: World) -> None:
    """NO_COLOR and TERM=dumb are respected: no colour code, the same text."""
    world.freeze()
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        shown = terminal("jobs", **env)
        assert shown.end() == 0
        assert "7f3a91c2" in shown.raw
        assert "\x1b[" not in shown.raw
    shown = terminal("show", "1", "--no-follow", TERM="dumb")
    shown.end()
    assert "\x1b" not in shown.raw
    shown = terminal("jobs")
    shown.end()
    assert "\x1b[1;35m7f3a91c2\x1b[0m" in shown.raw


def test_a_long_review_goes_through_the_readers_pager(terminal: Open, world: World, tmp_path: Path) -> None:
    """More than a screen goes through PAGER, whole; --no-pager writes it at once."""
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED; cat\n")
    pager.chmod(0o755)
    world.freeze(diff="".join(f"+line {number}\n" for number in range(200)))
    shown = terminal("review", "1", PAGER=str(pager))
    assert shown.end() == 0
    assert "PAGED" in shown.raw and "+line 199" in shown.raw
    shown = terminal("review", "1", "--no-pager", PAGER=str(pager))
    shown.end()
    assert "PAGED" not in shown.raw and "+line 199" in shown.raw


def test_progress_names_the_stage_that_runs(terminal: Open, world: World) -> None:
    """While a stage runs its name stands behind the line with a spinner, and is written over when it is done."""
    world.on_submit = lambda: world.move(JobPhase.gathering)
    shown = terminal("run", "release")
    shown.expect("gather ⠙")
    world.stage("gather", "history", "14 commits since v1.2.0")
    world.freeze()
    shown.expect(QUESTION)
    shown.type("l\n")
    shown.end()
    assert shown.screen()[0] == "release-orders/1   gather ✓ 14 commits since v1.2.0"
