"""Where a lost job goes on: read from the ledger alone, at every place where it may have stood."""

from __future__ import annotations

from perdure.contracts.job import JobPhase, JobState, LostJob
from perdure.store.signing import DecisionKey
from tests.activities.kit import Bench, now


async def standing(bench: Bench) -> JobState:
    found = await bench.ask(bench.words.read_job, LostJob(job_id=bench.job_id))
    assert found.state is not None
    state: JobState = found.state
    return state


async def test_job_that_never_was_or_has_ended_is_not_started_again(bench: Bench) -> None:
    """What the ledger does not hold open is not started."""
    lost = LostJob(job_id=bench.job_id)
    assert (await bench.ask(bench.words.read_job, lost)).state is None
    bench.admit()
    bench.ledger.note_job(bench.note(JobPhase.failed), workflow_id=bench.job_id, at=now())
    assert (await bench.ask(bench.words.read_job, lost)).state is None


async def test_job_without_a_plan_begins_anew(bench: Bench) -> None:
    """Before a plan is frozen only the pinned template is needed; notes go on with numbers of their own."""
    spec = bench.admit().spec
    bench.ledger.note_job(bench.note(JobPhase.gathering, step=4), workflow_id=bench.job_id, at=now())
    assert await standing(bench) == JobState(job_id=bench.job_id, spec=spec, step=4)


async def test_job_waits_and_applies_where_it_did(bench: Bench) -> None:
    """At the gate and while it is applied, a job stands at its plan."""
    bench.admit()
    bench.freeze()
    bench.open_gate()
    assert (await standing(bench)).plan == bench.plan
    bench.decide("approve")
    bench.close_gate()
    bench.apply(0)
    state = await standing(bench)
    assert (state.plan, state.round, state.parts) == (bench.plan, 1, [])


async def test_changes_that_were_asked_for_are_not_lost(bench: Bench) -> None:
    """After a request for changes the next round is drafted, with the edits of those whose signature holds."""
    edits, forged = (bench.blobs.put_json({"by": by, "comment": "shorter", "changes": {}}) for by in ("bo", "eve"))
    bench.admit()
    bench.freeze()
    bench.open_gate()
    bench.decide("request_changes", edits=forged, by="eve", key=DecisionKey.create(bench.folder / "strange"))
    bench.decide("request_changes", edits=edits)
    bench.close_gate_only("changes_requested")
    state = await standing(bench)
    assert (state.plan, state.round, state.previous, state.edits) == (None, 2, bench.plan.digest, [edits])


async def test_part_that_was_applied_before_a_drift_is_remembered(bench: Bench) -> None:
    """A plan that stopped half-way is planned again from there, and can still be taken back."""
    bench.approve()
    bench.apply(0)
    bench.close_application("drift")
    state = await standing(bench)
    assert (state.plan, state.round, state.previous) == (None, 2, bench.plan.digest)
    assert [(part.application_id, part.plan, part.reached) for part in state.parts] == [
        (bench.application, bench.plan, 1)
    ]
    bench.apply(0, "undo")
    bench.close_application("undone")
    assert (await standing(bench)).parts == []
