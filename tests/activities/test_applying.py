"""The applier: probe, intent, do, verify, receipt; at most once, whatever it is asked and however often."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.turns import StillTaken, Turns
from perdure.contracts.application import CloseApplicationInput, OpenApplicationInput, ReadApplicationInput
from perdure.contracts.plan import Inverse, ReviewRule
from perdure.errors import Refused, Tampered
from tests.activities.kit import Bench, now
from tests.support.installation import wait_until


def closing(bench: Bench, state: str) -> CloseApplicationInput:
    return CloseApplicationInput.model_validate(
        {
            "application_id": bench.application,
            "job_id": bench.job_id,
            "digest": bench.plan.digest,
            "state": state,
        }
    )


def opening(bench: Bench) -> OpenApplicationInput:
    return OpenApplicationInput(
        application_id=bench.application, job_id=bench.job_id, digest=bench.plan.digest, ref=bench.plan.ref
    )


def test_effects_happen_once_however_often_they_are_asked_for(bench: Bench) -> None:
    """An effect whose end is written is only repeated."""
    bench.approve()
    for _ in range(3):
        assert [bench.apply(0).state, bench.apply(1).state] == ["done", "done"]
    assert bench.lines("began") == ["word began"]
    assert (bench.witness / "NOTE").read_text() == "word"


def test_end_that_is_written_is_repeated(bench: Bench) -> None:
    """An effect that failed is not tried again, nor called refused: its end is what was written."""
    bench.approve()
    bench.ledger.begin_effect(bench.beginning(0), at=now())
    bench.finish(0, "failed", "the disk was full")
    again = bench.apply(0)
    assert (again.state, again.detail) == ("failed", "note: the disk was full")
    assert not (bench.witness / "NOTE").exists()


def test_nothing_begins_without_a_permit(bench: Bench) -> None:
    """Before the decision the applier is refused, and nothing has happened."""
    bench.admit()
    bench.freeze()
    bench.open_gate()
    assert bench.apply(0).state == "refused"
    assert not (bench.witness / "NOTE").exists()


def test_changed_plan_is_not_applied(bench: Bench) -> None:
    """The stored bytes are hashed again for each effect."""
    bench.approve()
    path = bench.folder / "blobs" / bench.plan.ref.sha256[:2] / bench.plan.ref.sha256
    path.write_bytes(path.read_bytes().replace(b'"word"', b'"evil"'))
    with pytest.raises(Tampered):
        bench.apply(0)
    other = bench.blobs.put(b"{}")
    with pytest.raises(Tampered):
        bench.applier.apply(bench.question(0).model_copy(update={"ref": other}))
    assert not (bench.witness / "NOTE").exists()


def test_effect_before_comes_first(bench: Bench) -> None:
    """Asked for an effect while the end of an earlier one is not written, the answer names that one."""
    bench.approve()
    behind = bench.apply(1)
    assert (behind.index, behind.state) == (0, "refused")
    assert bench.lines("began") == []


def test_drift_stops_before_the_effect(bench: Bench) -> None:
    """A precondition that no longer holds stops the effect; nothing was begun."""
    bench.approve()
    (bench.witness / "NOTE").write_text("somebody else's")
    assert bench.apply(0).state == "drift"
    assert bench.ledger.intents(application_id=bench.application) == []


async def test_drift_is_found_before_the_first_effect(bench: Bench) -> None:
    """Every precondition is looked at before anything begins; one sentence for each that does not hold."""
    say, note = reversed(bench.planned())
    later = note.model_copy(update={"id": "later", "body": {**note.body, "path": "LATER"}})
    bench.approve([note, say, later])
    (bench.witness / "LATER").write_text("somebody else's")
    (bench.witness / "NOTE").write_text("somebody else's")
    opened = await bench.ask(bench.applying.open_application, opening(bench))
    assert opened.state == "drift" and "NOTE" in opened.detail and "LATER" in opened.detail


async def test_first_effect_is_looked_at_by_its_own_attempt(bench: Bench) -> None:
    """Where only the first effect has drifted, its own attempt says so, a moment later: it is not asked twice."""
    bench.approve()
    (bench.witness / "NOTE").write_text("somebody else's")
    assert (await bench.ask(bench.applying.open_application, opening(bench))).state == "ready"
    assert bench.apply(0).state == "drift"


async def test_decisions_are_weighed_again_when_an_application_opens(bench: Bench) -> None:
    """A key that was taken away makes its decisions count for nothing, also after the gate."""
    bench.approve()
    for path in (bench.folder / "keys").glob("*.pub"):
        path.unlink()
    opened = await bench.ask(bench.applying.open_application, opening(bench))
    assert (opened.state, "no longer suffice" in opened.detail) == ("refused", True)


def test_attempt_that_still_runs_is_waited_for(bench: Bench) -> None:
    """A second attempt waits for one that still runs, and does not end its command: it runs once, to its end."""
    bench.approve()
    bench.apply(0)
    (bench.witness / "slow").touch()
    ends: list[str] = []
    first = threading.Thread(target=lambda: ends.append(bench.apply(1).state))
    first.start()
    wait_until(lambda: bench.lines("began"), "the command to begin")
    bench.applier._turns = Turns(bench.folder / "locks", timedelta(milliseconds=1))
    with pytest.raises(ApplicationError, match="still runs"):
        bench.apply(1)
    (bench.witness / "go").touch()
    first.join()
    assert [*ends, bench.apply(1).state] == ["done", "done"]
    assert (bench.lines("began"), bench.lines("done.log")) == (["word began"], ["word"])


def test_turn_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    """Nobody waits for ever for an attempt that hangs."""
    turns = Turns(tmp_path / "locks", timedelta(milliseconds=1))
    with turns.take("effect"), turns.take("another"), pytest.raises(StillTaken), turns.take("effect"):
        pass
    with turns.take("effect"):
        pass


def test_effect_of_unknown_fate_is_not_taken_for_one_that_never_happened(bench: Bench) -> None:
    """An effect that began and has no end cannot be taken back, and nobody says that nothing was there."""
    bench.approve()
    bench.apply(0)
    bench.ledger.begin_effect(bench.beginning(1), at=now())
    assert bench.apply(1, "undo").state == "failed"
    assert bench.apply(0, "undo").state == "refused"


@pytest.mark.parametrize(("pgid", "state", "times"), [(0, "done", 1), (1, "unknown", 0)])
def test_command_that_no_probe_can_tell_of_is_run_only_without_a_process(
    bench: Bench, pgid: int, state: str, times: int
) -> None:
    """No process group is written down: it never began. One is: nobody knows, and it is not run again."""
    note, say = bench.planned()
    bench.approve([note, say.model_copy(update={"body": {**say.body, "probe": None}})])
    bench.apply(0)
    bench.ledger.begin_effect(bench.beginning(1), at=now())
    if pgid:
        bench.ledger.note_process(bench.application, 1, "do", pgid=pgid, boot_id="another/1:1")
    assert bench.apply(1).state == state
    assert len(bench.lines("done.log")) == times


def test_done_effects_are_taken_back_once(bench: Bench) -> None:
    """Taking back applies the inverse, once; what never happened needs nothing."""
    bench.approve()
    bench.apply(0)
    for _ in range(2):
        assert bench.apply(1, "undo").state == "already"
        assert bench.apply(0, "undo").state == "done"
    assert not (bench.witness / "NOTE").exists()
    assert bench.lines("undone.log") == []


async def test_application_ends_as_applied_only_with_every_end_written(bench: Bench) -> None:
    """An end that was told but is not in the ledger keeps the application open."""
    bench.approve()
    bench.apply(0)
    said = await bench.ask(bench.applying.close_application, closing(bench, "applied"))
    assert (said.closed, "effect 2" in said.detail) == (False, True)
    standing = await bench.ask(bench.applying.read_application, ReadApplicationInput(application_id=bench.application))
    assert (standing.state, standing.reached) == ("open", 1)
    bench.apply(1)
    assert (await bench.ask(bench.applying.close_application, closing(bench, "applied"))).closed
    standing = await bench.ask(bench.applying.read_application, ReadApplicationInput(application_id=bench.application))
    assert (standing.state, standing.reached) == ("applied", 2)


async def test_application_ends_as_undone_only_with_everything_taken_back(bench: Bench) -> None:
    """Nobody can say that an effect was taken back which still stands."""
    bench.approve()
    bench.apply(0)
    said = await bench.ask(bench.applying.close_application, closing(bench, "undone"))
    assert (said.closed, said.detail) == (False, "effect 1 was not taken back")
    bench.apply(0, "undo")
    assert (await bench.ask(bench.applying.close_application, closing(bench, "undone"))).closed


async def test_application_that_has_ended_is_not_opened_again(bench: Bench) -> None:
    """Started again, an applier says how it ended before."""
    bench.approve()
    bench.apply(0)
    bench.apply(1)
    await bench.ask(bench.applying.close_application, closing(bench, "applied"))
    opened = await bench.ask(bench.applying.open_application, opening(bench))
    assert (opened.state, opened.end) == ("ended", "applied")


async def test_application_of_an_irreversible_effect_needs_an_approval(bench: Bench) -> None:
    """A plan whose rule asks nobody opens no application with an effect that cannot be undone."""
    bench.admit()
    note, _ = bench.planned()
    final = note.model_copy(update={"inverse": Inverse(irreversible="read by now")})
    bench.freeze([final], rule=ReviewRule(approvals=[]))
    opened = await bench.ask(bench.applying.open_application, opening(bench))
    assert opened.state == "refused"
    assert bench.ledger.permit(bench.plan.digest) is None


async def test_effect_of_another_version_is_not_applied(bench: Bench) -> None:
    """Only the code that planned an effect applies it."""
    note, say = bench.planned()
    bench.approve([note.model_copy(update={"version": 99}), say])
    opened = await bench.ask(bench.applying.open_application, opening(bench))
    assert (opened.state, "version 99" in opened.detail) == ("refused", True)


def test_undo_of_what_a_later_final_effect_rests_on_is_refused(bench: Bench) -> None:
    """An effect that may only be undone before an irreversible one stays, once that one is done."""
    note, say = bench.planned()
    kept = note.model_copy(update={"inverse": note.inverse.model_copy(update={"only_before_irreversible": True})})
    bench.approve([kept, say.model_copy(update={"inverse": Inverse(irreversible="it was heard")})])
    assert [bench.apply(0).state, bench.apply(1).state] == ["done", "done"]
    assert bench.apply(1, "undo").state == "failed"
    assert bench.apply(0, "undo").state == "failed"
    assert (bench.witness / "NOTE").exists()


def test_receipts_are_stored_before_they_are_named(bench: Bench) -> None:
    """Each end in the ledger names a receipt that is there and says the same."""
    bench.approve()
    bench.apply(0)
    row = bench.ledger.intent(bench.application, 0, "do")
    assert row is not None and row.receipt_ref is not None
    assert b'"state":"done"' in bench.blobs.get(row.receipt_ref)
    with pytest.raises(Refused):
        bench.ledger.begin_effect(bench.beginning(0), at=now())
