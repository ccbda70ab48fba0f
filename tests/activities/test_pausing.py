"""Between two steps: a person's word, what must still be so, and what stopping takes back."""

from __future__ import annotations

from typing import Any

from perdure.contracts.application import OpenApplicationInput, OpenApplicationResult
from perdure.contracts.plan import After
from perdure.effects.base import EffectRequest
from tests.activities.kit import Bench


def approve(bench: Bench, *, second: dict[str, Any], first: dict[str, Any] | None = None) -> None:
    """A note, then a word; each with more said of it."""
    note, say = bench.planned()
    bench.approve([note.model_copy(update=first or {}), say.model_copy(update=second)])


def refuse_to_run(bench: Bench) -> None:
    """The command fails, and its probe says that it did not happen."""
    (bench.witness / "announce").write_text('[ "$1" = probe ] && exit 1; exit 3')


def test_step_waits_for_a_word_that_is_signed_for_it(bench: Bench) -> None:
    """Nothing of it begins before; a word about another step is none."""
    approve(bench, second={"pause": True})
    assert bench.apply(0).state == "done"
    bench.decide("go_on", effect=0)
    waiting = bench.apply(1)
    assert (waiting.state, bench.lines("began")) == ("paused", [])
    bench.decide("go_on", effect=1)
    assert bench.apply(1).state == "done"
    assert bench.lines("done.log") == ["word"]


def test_step_before_must_be_as_it_was_left(bench: Bench) -> None:
    """Somebody changed it while the plan waited: the next step is held up until it is put right."""
    approve(bench, second={"pause": True})
    bench.apply(0)
    bench.decide("go_on", effect=1)
    (bench.witness / "NOTE").write_text("theirs")
    held = bench.apply(1)
    assert held.state == "paused"
    assert "step 1 (note) was done, and now" in held.detail
    (bench.witness / "NOTE").write_text("word")
    assert bench.apply(1).state == "done"


def test_message_that_was_handed_over_holds_nobody_up(bench: Bench) -> None:
    """Nothing in the world shows it: its receipt does."""
    bench.applier._secrets = lambda _wanted: {"team": "json://127.0.0.1:1"}
    said = {"to": "team", "title": "It begins", "text": "Now."}
    request = EffectRequest(id="tell", arguments=said, undo="none_needed")
    tell, say = bench._plan("notify.send", request), bench.planned()[1]
    bench.approve([tell, say.model_copy(update={"pause": True})])
    assert bench.apply(0).state == "done"
    assert bench.apply(1).state == "paused"
    bench.decide("go_on", effect=1)
    assert bench.apply(1).state == "done"


def test_failed_step_waits_and_is_tried_again(bench: Bench) -> None:
    """``pause``: its fate is known and a person says how it goes on; again it may fail, again it waits."""
    approve(bench, second={"on_failure": "pause"})
    bench.apply(0)
    refuse_to_run(bench)
    for _ in range(2):
        failed = bench.apply(1)
        assert (failed.state, failed.is_pause) == ("unknown", True)
        assert "it did not happen" in failed.detail
        bench.decide("resolve", effect=1, answer="not_done")
    (bench.witness / "announce").write_text('cd "$(dirname "$0")"; [ "$1" = do ] && touch now; [ -e now ]')
    assert bench.apply(1).state == "done"


def test_failed_step_is_not_tried_while_one_before_it_is_lost(bench: Bench) -> None:
    """The done ones are proven by their probes first."""
    approve(bench, second={"on_failure": "pause"})
    bench.apply(0)
    refuse_to_run(bench)
    bench.apply(1)
    (bench.witness / "NOTE").unlink()
    bench.decide("resolve", effect=1, answer="not_done")
    assert (held := bench.apply(1)).state == "paused" and "step 1 (note)" in held.detail


def test_cancelled_pause_ends_the_step_without_beginning_it(bench: Bench) -> None:
    """What failed stays undone, and the plan is taken back."""
    approve(bench, second={"on_failure": "pause"})
    bench.apply(0)
    refuse_to_run(bench)
    bench.apply(1)
    bench.decide("cancel", digest="")
    assert bench.apply(1).state == "stopped"
    assert bench.apply(0, "undo").state == "done"


def test_stopped_step_that_happened_is_taken_back(bench: Bench) -> None:
    """Done, but not as promised, and a person says stop: it is taken back with the others."""
    never = After(run=["false"], on_worker=True)
    approve(bench, first={"after": never, "on_failure": "pause"}, second={})
    assert bench.apply(0).is_pause
    bench.decide("resolve", effect=0, answer="stop")
    stopped = bench.apply(0)
    assert (stopped.state, stopped.verified) == ("done", False)
    assert bench.apply(0, "undo").state == "done"
    assert not (bench.witness / "NOTE").exists()


def opening(bench: Bench) -> OpenApplicationInput:
    """What is asked when an application is opened."""
    about = {"application_id": bench.application, "job_id": bench.job_id, "digest": bench.plan.digest}
    return OpenApplicationInput.model_validate({**about, "ref": bench.plan.ref})


async def test_red_preflight_is_drift_before_anything_begins(bench: Bench) -> None:
    """It is asked when the application is opened, and never again once an effect was begun."""
    asked: list[str] = []

    def red(plan: Any) -> list[str]:
        asked.append(plan.envelope.job_id)
        return ["healthy_now: answers 500"]

    bench.applying._preflight = red
    bench.approve()
    opened: OpenApplicationResult = await bench.ask(bench.applying.open_application, opening(bench))
    assert (opened.state, opened.detail) == ("drift", "healthy_now: answers 500")
    bench.apply(0)
    again: OpenApplicationResult = await bench.ask(bench.applying.open_application, opening(bench))
    assert (again.state, len(asked)) == ("ready", 1)
