"""What workflows may make the ledger write: only what the ledger itself bears out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from perdure.contracts.decisions import GateInput, WeighInput
from perdure.contracts.job import AdmitInput, JobPhase, RequestsInput
from perdure.contracts.names import gate_id
from perdure.errors import NotFound
from perdure.store.signing import DecisionKey
from tests.activities.kit import Bench, now


def about(bench: Bench, **more: Any) -> dict[str, Any]:
    gate = gate_id(bench.job_id, 1)
    return {"gate_id": gate, "job_id": bench.job_id, "digest": bench.plan.digest, "ref": bench.plan.ref, **more}


async def close(bench: Bench, **more: Any) -> Any:
    return await bench.ask(bench.words.close_gate, WeighInput.model_validate(about(bench, **more)))


async def read(bench: Bench) -> Any:
    return await bench.ask(bench.words.read_gate, WeighInput.model_validate(about(bench)))


@pytest.fixture
def waiting(bench: Bench) -> Bench:
    """A plan at an open gate."""
    bench.admit()
    bench.freeze()
    bench.open_gate()
    return bench


async def test_job_that_nobody_asked_for_is_not_admitted(bench: Bench) -> None:
    """Admission looks for the API's request in the ledger: the same spec, template and requester."""
    spec = bench.blobs.put(b"{}")
    job = AdmitInput(job_id=bench.job_id, spec=spec, template="bench", requester="ada")
    bench.ledger.request_job(job, at=now())
    wrong = [{"job_id": "job/bench/two"}, {"spec": bench.blobs.put(b"[]")}, {"template": "x"}, {"requester": "eve"}]
    for change in wrong:
        with pytest.raises(ApplicationError, match="Nobody asked") as caught:
            await bench.ask(bench.words.admit_job, job.model_copy(update=change))
        assert caught.value.non_retryable
    with pytest.raises(NotFound):
        bench.ledger.job(bench.job_id)
    assert (await bench.ask(bench.words.admit_job, job)).number == 1


@pytest.mark.parametrize("may_be_cancelled", [False, True])
async def test_gate_stays_open_without_a_word_in_the_ledger(waiting: Bench, may_be_cancelled: bool) -> None:
    """A gate that would end while neither people nor the clock gave a reason stays open."""
    assert (await close(waiting, may_be_cancelled=may_be_cancelled)).outcome == "open"
    assert (await read(waiting)).outcome == "open"
    assert waiting.ledger.permit(waiting.plan.digest) is None


async def test_gate_ends_as_people_said(waiting: Bench) -> None:
    """An approval closes the gate, grants the permit, and is what everybody reads afterwards."""
    waiting.decide("approve", comment="fine")
    assert (await close(waiting)).outcome == "satisfied"
    end = await read(waiting)
    assert (end.outcome, end.detail) == ("satisfied", "approved by bo: fine")
    permit = waiting.ledger.permit(waiting.plan.digest)
    assert permit is not None and permit.application_id == waiting.application


async def test_unsigned_approval_satisfies_nothing(waiting: Bench) -> None:
    """A decision by a key that is not ours counts for nothing when a gate is weighed and when it closes."""
    waiting.decide("approve", key=DecisionKey.create(waiting.folder / "strange"))
    end = await close(waiting)
    assert (end.outcome, end.weighing.outcome) == ("open", "pending")


async def test_unsigned_cancel_ends_no_gate(waiting: Bench) -> None:
    """A cancel by a key that is not ours is no cancel; a signed one ends the gate."""
    waiting.decide("cancel", digest="", key=DecisionKey.create(waiting.folder / "strange"))
    assert not (await waiting.ask(waiting.words.weigh_requests, RequestsInput(job_id=waiting.job_id))).cancel
    assert (await close(waiting, may_be_cancelled=True)).outcome == "open"
    waiting.decide("cancel", digest="")
    assert (await close(waiting, may_be_cancelled=True)).outcome == "cancelled"
    assert (await read(waiting)).detail.startswith("cancelled by bo")


async def test_gate_expires_by_the_clock(bench: Bench) -> None:
    """After its deadline a gate that nobody decided ends as expired."""
    bench.admit()
    bench.freeze(expires=now() - timedelta(seconds=1))
    bench.open_gate()
    assert (await close(bench)).outcome == "expired"


async def test_gate_that_was_opened_before_says_so(waiting: Bench) -> None:
    """A gate that is started again learns that people may have decided already."""
    gate = GateInput.model_validate(about(waiting, expires_at=waiting.plan.expires_at))
    assert (await waiting.ask(waiting.words.open_gate, gate)).state == "again"


async def test_changes_are_read_with_their_edits(waiting: Bench) -> None:
    """What a reviewer wants changed is read from the signed decision, also after the gate has closed."""
    edits = waiting.blobs.put_json({"by": "bo", "comment": "shorter", "changes": {}})
    waiting.decide("request_changes", edits=edits)
    assert (await close(waiting)).outcome == "changes_requested"
    assert (await read(waiting)).edits == edits


async def test_gate_closes_with_its_permit_or_not_at_all(waiting: Bench) -> None:
    """Closing a gate as satisfied grants the permit in one transaction; a withdrawal finds it, and takes it away."""
    waiting.decide("approve")
    assert (await close(waiting)).outcome == "satisfied"
    permit = waiting.ledger.permit(waiting.plan.digest)
    assert permit is not None and (permit.state, permit.application_id) == ("granted", waiting.application)
    waiting.decide("withdraw")
    again = await close(waiting)
    assert (again.outcome, again.weighing.outcome) == ("satisfied", "withdrawn")
    permit = waiting.ledger.permit(waiting.plan.digest)
    assert permit is not None and permit.state == "withdrawn"


async def test_done_is_written_over_an_applied_plan_only(waiting: Bench) -> None:
    """Nobody can call a job done whose plan was not applied to its end."""
    with pytest.raises(ApplicationError, match="is not done"):
        await waiting.ask(waiting.words.note_job, waiting.note(JobPhase.done))
    waiting.decide("approve")
    waiting.close_gate()
    waiting.apply(0)
    with pytest.raises(ApplicationError, match="is not done"):
        await waiting.ask(waiting.words.note_job, waiting.note(JobPhase.done))
    waiting.apply(1)
    waiting.close_application("applied")
    await waiting.ask(waiting.words.note_job, waiting.note(JobPhase.done))
    assert waiting.ledger.job(waiting.job_id).phase is JobPhase.done


async def test_plan_alone_is_done_where_nothing_more_was_asked_for(bench: Bench) -> None:
    """A job that was asked for its plan only is done with it."""
    bench.admit(plan_only=True)
    bench.freeze()
    await bench.ask(bench.words.note_job, bench.note(JobPhase.done))


async def test_application_speaks_only_while_it_is_at_work(waiting: Bench) -> None:
    """An applier that has begun nothing writes no phase, and none of another job's ever does."""
    await waiting.ask(waiting.words.note_job, waiting.note(JobPhase.undoing, said_by=waiting.application))
    assert waiting.ledger.job(waiting.job_id).phase is not JobPhase.undoing
    with pytest.raises(ApplicationError, match="nothing to say"):
        await waiting.ask(waiting.words.note_job, waiting.note(JobPhase.undoing, said_by="apply/bench/two/1"))
    waiting.decide("approve")
    waiting.close_gate()
    waiting.apply(0)
    await waiting.ask(waiting.words.note_job, waiting.note(JobPhase.undoing, said_by=waiting.application))
    assert waiting.ledger.job(waiting.job_id).phase is JobPhase.undoing
