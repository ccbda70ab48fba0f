"""A deploy strands nobody: histories that an earlier commit recorded replay with the workflows of today."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from perdure.runtime.codec import converter_for
from tests.replay.incompatible import OtherGateWorkflow
from tests.replay.record import SCENARIOS
from tests.replay.stored import all_stored, keys
from worker import workflow_options

STORED = all_stored()


def replayer(**changes: Any) -> Replayer:
    """Replays as the worker runs: same workflows, sandbox, interceptors and converter."""
    return Replayer(**{**workflow_options(), **changes}, data_converter=converter_for(keys()))


def test_recordings_show_every_way_of_a_job() -> None:
    """There is a recording of each scenario, with job, gate, application and agent runs among them."""
    scenarios = {stored.path.parent.name for stored in STORED}
    assert {scenario.__name__ for scenario in SCENARIOS} <= scenarios
    assert set(Counter(stored.kind for stored in STORED)) == {"thread", "job", "gate", "apply", "agent"}


def test_recordings_are_small() -> None:
    """A parked job is a handful of events: no recorded run takes more than some kilobytes."""
    assert max(stored.path.stat().st_size for stored in STORED) < 100_000


async def test_recorded_histories_replay() -> None:
    """Every recorded run replays: no workflow of today takes another way than the recorded one."""
    histories = [stored.load() for stored in STORED]

    async def each() -> Any:
        for history in histories:
            yield history

    results = await replayer().replay_workflows(each(), raise_on_replay_failure=False)
    names = {history.run_id: stored.name for history, stored in zip(histories, STORED, strict=True)}
    failures = {names[run_id]: failure for run_id, failure in results.replay_failures.items()}
    assert failures == {}


async def test_another_way_is_noticed() -> None:
    """A workflow that does something else than it did when the history was recorded is caught."""
    gate = next(stored for stored in STORED if stored.kind == "gate")
    others = [workflow for workflow in workflow_options()["workflows"] if workflow.__name__ != "GateWorkflow"]
    with pytest.raises(NondeterminismError):
        await replayer(workflows=[*others, OtherGateWorkflow]).replay_workflow(gate.load())


@pytest.mark.parametrize("kind", ["thread", "job", "gate", "apply"])
async def test_recording_that_was_changed_is_noticed(kind: str) -> None:
    """A recorded run with one activity exchanged does not replay: each kind of workflow really runs here."""
    history = next(stored for stored in STORED if stored.kind == kind).load()
    _exchange_first_activity(history)
    with pytest.raises(NondeterminismError):
        await replayer().replay_workflow(history)


def _exchange_first_activity(history: WorkflowHistory) -> None:
    """Local activities leave a marker, the others a scheduled event."""
    for event in history.events:
        if event.HasField("activity_task_scheduled_event_attributes"):
            event.activity_task_scheduled_event_attributes.activity_type.name = "something_else"
            return
        if event.HasField("marker_recorded_event_attributes"):
            data = event.marker_recorded_event_attributes.details["data"].payloads[0]
            about = json.loads(data.data)
            data.data = json.dumps({**about, "activity_type": "something_else"}).encode()
            return
    raise AssertionError("this run asked for nothing")
