"""What comes after an effect: what settles it, and the look whether all is well."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from perdure.contracts.plan import After
from perdure.contracts.template import StepVerify
from perdure.effects.after import ask_status, plan_after
from perdure.effects.base import EffectRequest
from perdure.errors import UserError
from tests.activities.kit import Bench
from tests.support.records import serve_records


def approve(bench: Bench, after: After, **more: Any) -> None:
    """A note whose step has something after it."""
    note, say = bench.planned()
    bench.approve([note.model_copy(update={"after": after, **more}), say])


def look_for(bench: Bench, name: str = "well", **more: Any) -> After:
    """All is well once a file is there."""
    return After(run=["test", "-e", str(bench.witness / name)], on_worker=True, **more)


def test_effect_after_which_all_is_well_is_done(bench: Bench) -> None:
    """The look may take its time."""
    approve(bench, look_for(bench, within_seconds=30))
    timer = threading.Timer(0.2, (bench.witness / "well").touch)
    timer.start()
    outcome = bench.apply(0)
    timer.join()
    assert (outcome.state, outcome.verified) == ("done", True)


def test_effect_after_which_not_all_is_well_is_taken_back(bench: Bench) -> None:
    """It happened and stays in the ledger as not as promised, also for an attempt that asks again."""
    approve(bench, look_for(bench))
    for _ in range(2):
        outcome = bench.apply(0)
        assert (outcome.state, outcome.verified) == ("done", False)
        assert "done, but not as promised: `test -e" in outcome.detail
    assert bench.apply(0, "undo").state == "done"
    assert not (bench.witness / "NOTE").exists()


@pytest.mark.parametrize(("on_failure", "state", "verified"), [("pause", "unknown", True), ("report", "done", True)])
def test_step_says_what_comes_when_not_all_is_well(bench: Bench, on_failure: str, state: str, verified: bool) -> None:
    """Pause: a person decides. Report: it is said, and the next step follows."""
    approve(bench, look_for(bench), on_failure=on_failure)
    outcome = bench.apply(0)
    assert (outcome.state, outcome.verified) == (state, verified)
    assert "not as promised" in outcome.detail


def test_what_settles_runs_after_the_effect_and_after_its_undo(bench: Bench) -> None:
    """A restart is needed both ways; a look is not for the way back."""
    log = bench.witness / "settled"
    settle = ["sh", "-c", f"cat {bench.witness}/NOTE >> {log} 2>/dev/null; echo . >> {log}"]
    (bench.witness / "well").touch()
    approve(bench, look_for(bench).model_copy(update={"settle": settle}))
    assert bench.apply(0).verified
    (bench.witness / "well").unlink()
    assert bench.apply(0, "undo").state == "done"
    assert log.read_text() == "word.\n.\n"


def test_what_cannot_settle_is_not_well(bench: Bench) -> None:
    """A command that fails or is not there says so."""
    approve(bench, After(settle=["sh", "-c", "exit 3"], on_worker=True))
    assert "ended with 3" in bench.apply(0).detail


def test_status_of_an_answer_is_looked_at() -> None:
    """Another status, or nobody: one sentence; the right one: none."""
    with serve_records() as records:
        records.held["a"] = 1
        assert ask_status(f"{records.url}/records/a", 200) == ""
        assert ask_status(f"{records.url}/records/b", 404) == ""
        assert "answers 404 instead of 200" in ask_status(f"{records.url}/records/b", 200)
    assert "does not answer" in ask_status(records.url, 200)


def test_wrong_words_are_refused_before_the_review(tmp_path: Path) -> None:
    """A command is words, a look is one of two, a URL can be asked."""
    request = EffectRequest(id="x", arguments={})
    with pytest.raises(UserError, match="list of words"):
        plan_after(request, "restart it", None, {})
    with pytest.raises(UserError, match="expected a URL"):
        plan_after(request, None, StepVerify(http="x"), {"http": "ftp://x"})
    with pytest.raises(ValueError, match="exactly one of"):
        StepVerify.model_validate({})
