"""What cannot be seen before an effect begins is neither drift nor a failure: it is looked at again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio.exceptions import ApplicationError

from activities.running import to_application_error
from perdure.contracts.application import OpenApplicationInput
from perdure.contracts.plan import PlannedEffect
from perdure.effects.base import EffectRequest
from perdure.errors import LookFailed
from tests.activities.kit import Bench


def announce(bench: Bench) -> PlannedEffect:
    """A page on a forge whose token nobody has put down here."""
    place = {"forge": "github", "api": "https://forge.example.org/api/v3", "project": "o/r"}
    return bench._plan("forge.release", EffectRequest(id="page", arguments={**place, "tag": "v1"}))


async def open_it(bench: Bench) -> str:
    """Ask for the application to be opened; return its state."""
    about = {"application_id": bench.application, "job_id": bench.job_id}
    question = OpenApplicationInput.model_validate({**about, "digest": bench.plan.digest, "ref": bench.plan.ref})
    state: str = (await bench.ask(bench.applying.open_application, question)).state
    return state


async def test_what_cannot_be_seen_is_asked_again(bench: Bench) -> None:
    """It says what to do, begins nothing and spends no attempt; its words come without causes that crowd them out."""
    bench.approve([*bench.planned(), announce(bench)])
    with pytest.raises(ApplicationError, match=r"secrets/forge-token.*looked at again") as caught:
        await open_it(bench)
    assert (caught.value.type, caught.value.non_retryable, caught.value.__cause__) == ("LookFailed", False, None)
    assert bench.ledger.intents(application_id=bench.application) == []


async def test_drift_is_told_before_what_cannot_be_seen(bench: Bench) -> None:
    """A change of the world that is known asks for a new plan, whatever else cannot be seen."""
    note, say = bench.planned()
    bench.approve([say, note, announce(bench)])
    (bench.witness / "NOTE").write_text("somebody else's")
    assert await open_it(bench) == "drift"


async def test_a_cancelled_job_waits_for_no_server(bench: Bench) -> None:
    """Once somebody has cancelled, nothing is looked at again."""
    bench.approve([*bench.planned(), announce(bench)])
    bench.decide("cancel", digest="")
    assert await open_it(bench) == "refused"


def test_an_effect_of_its_own_is_held_up_too(bench: Bench) -> None:
    """Just before it begins the same holds: held up, or stopped by a cancel; nothing is written down of it."""
    bench.approve([announce(bench)])
    with pytest.raises(LookFailed, match="forge-token"):
        bench.apply(0)
    bench.decide("cancel", digest="")
    assert bench.apply(0).state == "drift"
    assert bench.ledger.intents(application_id=bench.application) == []


def test_a_server_s_pause_is_kept_within_reason() -> None:
    """A minute at most: somebody may cancel meanwhile."""
    failed = LookFailed("busy")
    failed.after_seconds = 3600.0
    assert to_application_error(failed).next_retry_delay == timedelta(minutes=1)
