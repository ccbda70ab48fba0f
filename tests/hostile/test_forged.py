"""Whoever reaches Temporal's port, with or without the payload key, decides nothing and makes nothing happen.

After each attack the genuine job must still end right. Without the decision key nobody decides; without the ledger
nobody begins an effect.
"""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError

from perdure.contracts import names
from perdure.contracts.application import ApplyInput
from perdure.contracts.decisions import Decision, DecisionNotice, SignedDecision, Weighing
from perdure.contracts.job import Admission, AdmitInput, ChildEvent, JobPhase, JobState, Poke, ThreadState
from perdure.errors import NotFound, SetupError
from perdure.recovering import recover
from perdure.runtime.messenger import FAILED_TASKS, Messenger
from perdure.store.signing import DecisionKey, public_keys, verify
from tests.hostile.forging import (
    MEANS,
    Means,
    Saying,
    approve,
    assert_undecided,
    begin,
    digest_of,
    end,
    forger,
    say,
    signal_bare,
    taken_in,
    tried,
    until,
)
from tests.support.installation import Installation, wait_until

ZERO = "0" * 64
SLOW = [pytest.mark.torture]


@pytest.mark.parametrize("means", MEANS)
def test_gate_update_decides_nothing(home: Installation, saying: Saying, means: Means) -> None:
    """A notice of a decision that is not in the ledger decides nothing, whoever sends it, and the gate lives on."""

    async def attack() -> None:
        gate = (await forger(home, means)).get_workflow_handle(saying.gate)
        for digest in (digest_of(home, saying), ZERO):
            notice = DecisionNotice(decision_id=uuid.uuid4().hex, digest=digest)
            refused = await tried(gate.execute_update(names.DECIDE_UPDATE, notice, result_type=Weighing))
            assert (refused is None) == (means == "payload key" and digest != ZERO)

    asyncio.run(attack())
    assert_undecided(home, saying)
    approve(home, saying)


def test_signal_without_payload_is_dropped(home: Installation, saying: Saying) -> None:
    """Whoever reaches the port can send a signal without any payload; it fails no workflow's task."""

    async def attack(*whom: str) -> None:
        client = await forger(home, "no key")
        for workflow_id in whom:
            before = await count_signals(client, workflow_id)
            for signal in (names.POKE_SIGNAL, names.CHILD_SIGNAL):
                await signal_bare(client, workflow_id, signal)
            await taken_in(client, workflow_id, before + 2)

    asyncio.run(attack(saying.thread, saying.job.job_id, saying.gate))
    assert_undecided(home, saying)
    begin(home, saying)
    asyncio.run(attack(saying.application, saying.job.job_id))
    end(home, saying)


async def count_signals(client: Client, workflow_id: str) -> int:
    events = [event async for event in client.get_workflow_handle(workflow_id).fetch_history_events()]
    return sum(event.HasField("workflow_execution_signaled_event_attributes") for event in events)


async def tell_ends(client: Client, saying: Saying, *states: str) -> None:
    """Say to the job that its gate and its application ended so, and to the thread that the job ended."""
    job = client.get_workflow_handle(saying.job.job_id)
    before = await count_signals(client, saying.job.job_id)
    children = (saying.gate, saying.application, f"{saying.application}/undo")
    events = [ChildEvent(child_id=child, seq=1, state=state) for child in children for state in states]
    for event in events:
        await job.signal(names.CHILD_SIGNAL, event)
    await job.signal(names.POKE_SIGNAL, Poke(about="cancel"))
    ended = ChildEvent(child_id=saying.job.job_id, seq=1, state="done")
    await client.get_workflow_handle(saying.thread).signal(names.CHILD_SIGNAL, ended)
    await taken_in(client, saying.job.job_id, before + len(events) + 1)


@pytest.mark.parametrize("means", MEANS)
def test_child_events_are_only_hints(home: Installation, saying: Saying, means: Means) -> None:
    """A job that is told that its gate was satisfied, or its plan applied, asks the ledger and goes on waiting."""

    async def attack(*states: str) -> BaseException | None:
        client = await forger(home, means)
        await tell_ends(client, saying, *states)
        return await tried(client.get_workflow_handle(saying.application).describe())

    digest = digest_of(home, saying)
    not_there = asyncio.run(attack("satisfied", "denied", "applied", "refused", "drift", "undone"))
    assert isinstance(not_there, RPCError)  # no applier was started on a lie
    assert_undecided(home, saying)
    begin(home, saying)
    asyncio.run(attack("applied", "undone", "refused", "stuck", "drift", "cancelled"))
    assert home.job(saying.job).phase is JobPhase.applying
    end(home, saying)
    assert digest_of(home, saying) == digest  # nothing was planned again because of a lie


@pytest.mark.parametrize("means", MEANS)
def test_applier_started_directly_applies_nothing(
    home: Installation, saying: Saying, tmp_path: Path, means: Means
) -> None:
    """An applier that anybody starts for an undecided, foreign or changed plan begins nothing; ours starts as ever."""
    other = say(home, tmp_path / "other", f"o{uuid.uuid4().hex[:8]}")
    home.waiting(other.job)
    with home.ledger() as ledger:
        plan, foreign = (ledger.plan(digest_of(home, one)) for one in (saying, other))
    right = ApplyInput(
        application_id=saying.application,
        job_id=saying.job.job_id,
        digest=plan.digest,
        ref=plan.ref,
        effects=plan.effects,
    )
    theirs = {"digest": foreign.digest, "ref": foreign.ref}
    tries: list[tuple[str, ApplyInput]] = [
        (saying.application, right),
        (saying.application, right.model_copy(update=theirs)),
        (saying.application, right.model_copy(update={"digest": ZERO})),
        (saying.application, right.model_copy(update={"ref": foreign.ref})),
        (saying.application, right.model_copy(update={"job_id": other.job.job_id})),
        (f"{saying.application}/undo", right.model_copy(update={"undoing": True, "next_effect": 2})),
        (f"apply/{uuid.uuid4().hex}/x/1", right),
    ]

    async def attack() -> None:
        client = await forger(home, means)
        for workflow_id, wrong in tries:
            handle = await start(client, names.APPLY_WORKFLOW, wrong, workflow_id)
            if means != "own key":  # under an unknown key its task fails until somebody ends it
                await tried(handle.result())
            else:
                await handle.terminate()
        # The last one stays on the id that the job needs.
        await start(client, "perdure.nothing", right, saying.application)

    asyncio.run(attack())
    assert_undecided(home, saying)
    other.assert_unsaid()
    approve(home, saying)


async def start(client: Client, workflow: str, argument: Any, workflow_id: str) -> Any:
    limit = timedelta(seconds=2)
    return await client.start_workflow(workflow, argument, id=workflow_id, task_queue=names.QUEUE, task_timeout=limit)


def test_id_of_a_child_is_freed(home: Installation, tmp_path: Path) -> None:
    """Whoever starts something under the id of a gate before the job does is ended; the gate opens."""
    saying = say(home, tmp_path / "said", f"s{uuid.uuid4().hex[:8]}")
    home.kill_workers()

    async def attack() -> None:
        client = await forger(home, "no key")
        await start(client, names.GATE_WORKFLOW, "anything", saying.gate)
        await start(client, "perdure.nothing", "anything", saying.application)

    asyncio.run(attack())
    home.start_worker()
    home.waiting(saying.job)
    approve(home, saying)


def forged_decisions(home: Installation, saying: Saying, folder: Path) -> list[SignedDecision]:
    """Approvals that nobody with the decision key has signed, or that were changed afterwards."""
    with home.ledger() as ledger:
        head = ledger.head()
    draft = Decision(
        id="",
        kind="approve",
        job_id=saying.job.job_id,
        digest=digest_of(home, saying),
        by="mallory",
        groups=["*"],
        at=datetime.now(UTC),
        head=head,
    )
    own = DecisionKey.create(folder / "keys")
    by_another_key = own.sign(draft.model_copy(update={"id": "other-key"}))
    ours = next(iter(public_keys(home.settings.keys)))
    return [
        by_another_key,
        own.sign(draft.model_copy(update={"id": "our-name"})).model_copy(update={"key_id": ours}),
        SignedDecision(decision=draft.model_copy(update={"id": "no-signature"}), signature="", key_id=ours),
        SignedDecision(decision=draft.model_copy(update={"id": "no-hex"}), signature="zz", key_id=ours),
    ]


def test_decision_row_that_was_not_signed_counts_for_nothing(
    home: Installation, saying: Saying, tmp_path: Path
) -> None:
    """A row written into the ledger without the decision key approves nothing, even when the gate is told of it."""
    forged = forged_decisions(home, saying, tmp_path)
    with home.ledger() as ledger:
        for signed in forged:
            thread = names.JobId.parse(signed.decision.job_id).thread
            assert ledger.record_decision(signed, thread=thread, at=signed.decision.at)
            assert not verify(signed, public_keys(home.settings.keys))

    async def attack() -> Weighing:
        gate = (await forger(home, "payload key")).get_workflow_handle(saying.gate)
        for signed in forged:
            notice = DecisionNotice(decision_id=signed.decision.id, digest=signed.decision.digest)
            weighing: Weighing = await gate.execute_update(names.DECIDE_UPDATE, notice, result_type=Weighing)
        return weighing

    assert asyncio.run(attack()).outcome == "pending"
    assert_undecided(home, saying)
    approve(home, saying)


@pytest.mark.parametrize("means", MEANS)
def test_forged_admission_starts_nothing(home: Installation, saying: Saying, means: Means) -> None:
    """A job that the API was not asked for is not admitted, not even one with another job's pinned template."""
    with home.ledger() as ledger:
        events = ledger.events(job_id=saying.job.job_id)
        spec = next(event.body["spec"] for event in events if event.kind == "job.requested")
    made_up = names.JobId(names.JobId.parse(saying.job.job_id).thread, f"forged-{uuid.uuid4().hex[:6]}")
    wanted = AdmitInput(job_id=str(made_up), spec=spec, template="announce", requester=saying.job.requester)

    async def attack() -> None:
        client = await forger(home, means)
        through: WithStartWorkflowOperation[Any, ThreadState] = WithStartWorkflowOperation(
            names.THREAD_WORKFLOW,
            ThreadState(thread=made_up.thread),
            id=saying.thread,
            task_queue=names.QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        admission = client.execute_update_with_start_workflow(
            names.ADMIT_UPDATE, wanted, start_workflow_operation=through, result_type=Admission
        )
        assert await tried(admission) is not None
        direct = await start(client, names.JOB_WORKFLOW, JobState(job_id=str(made_up), spec=wanted.spec), str(made_up))
        if means != "own key":
            assert await tried(direct.result()) is not None
        await tried(direct.terminate())

    asyncio.run(attack())
    with home.ledger() as ledger, pytest.raises(NotFound):
        ledger.job(str(made_up))
    approve(home, saying)


@pytest.mark.parametrize(
    "squatter", ["no input", pytest.param("another kind", marks=SLOW), pytest.param("another queue", marks=SLOW)]
)
def test_id_of_a_thread_is_freed(home: Installation, squatter: str) -> None:
    """Whoever starts something under the id of a thread is ended when it does not answer; the next request gets in."""
    thread = f"squatted-{uuid.uuid4().hex[:6]}"
    job = AdmitInput(job_id=f"job/{thread}/one", spec=home.blobs.put(b"{}"), template="announce", requester="ada")

    async def attack() -> Admission:
        client = await forger(home, "no key")
        kind = "perdure.nothing" if squatter == "another kind" else names.THREAD_WORKFLOW
        queue = "nowhere" if squatter == "another queue" else names.QUEUE
        arguments = [] if squatter == "no input" else [ThreadState(thread=thread)]
        handle = await client.start_workflow(
            kind, args=arguments, id=names.thread_id(thread), task_queue=queue, task_timeout=timedelta(seconds=1)
        )

        async def has_failed_often() -> bool:
            return (await handle.describe()).raw_description.pending_workflow_task.attempt > FAILED_TASKS

        if squatter == "no input":
            await until(has_failed_often)
        messenger = Messenger(home.temporal, limit=timedelta(seconds=3))
        with pytest.raises(SetupError, match="send this again"):
            await messenger.admit(job)
        messenger.limit = timedelta(seconds=30)
        return await messenger.admit(job)

    with home.ledger() as ledger:
        ledger.request_job(job, at=datetime.now(UTC))
    assert asyncio.run(attack()).job_id == job.job_id


def terminate(home: Installation, *workflow_ids: str) -> None:
    """End workflows: that needs no key."""

    async def attack() -> None:
        client = await forger(home, "no key")
        for workflow_id in workflow_ids:
            await client.get_workflow_handle(workflow_id).terminate()

    asyncio.run(attack())


@pytest.mark.parametrize("whom", ["gate", "job", "job and gate", "all"])
def test_lost_gate_is_opened_again(home: Installation, saying: Saying, whom: str) -> None:
    """Whatever of a waiting job somebody ended is started again by the next decision, which counts."""
    lost = {
        "gate": [saying.gate],
        "job": [saying.job.job_id],
        "job and gate": [saying.gate, saying.job.job_id],
        "all": [saying.gate, saying.job.job_id, saying.thread],
    }
    terminate(home, *lost[whom])
    assert_undecided(home, saying)
    approve(home, saying)


def test_job_lost_while_its_plan_is_applied_is_started_again(home: Installation, saying: Saying) -> None:
    """An application whose job was ended ends all the same, and its job with it."""
    begin(home, saying)
    terminate(home, saying.job.job_id)
    end(home, saying)


@pytest.mark.parametrize("whom", ["application", "job and application"])
def test_lost_application_is_started_again(home: Installation, saying: Saying, whom: str) -> None:
    """When the API starts it looks for what Temporal lost: an application goes on, and no effect happens twice."""
    begin(home, saying)
    terminate(home, saying.application, *([saying.job.job_id] if "job" in whom else []))

    async def look() -> int:
        with home.ledger() as ledger:
            return await recover(ledger, Messenger(home.temporal))

    saying.let_go()
    assert asyncio.run(look()) == 1
    end(home, saying)
    assert asyncio.run(look()) == 0


def test_lost_job_can_still_be_cancelled(home: Installation, saying: Saying) -> None:
    """A cancel reaches a job whose workflows were ended."""
    terminate(home, saying.gate, saying.job.job_id)
    home.post("/v1/cancel", {"decision_id": uuid.uuid4().hex, "comment": "enough"}, ref=saying.job.job_id)
    home.wait(saying.job, JobPhase.cancelled)
    saying.assert_unsaid()


def test_squatter_does_not_hold_up_a_thread(home: Installation, tmp_path: Path) -> None:
    """A stranger that runs under a job's name keeps that job's histories from being archived, and no other's."""
    word = f"w{uuid.uuid4().hex[:8]}"
    squatted = say(home, tmp_path / "squatted", word)

    async def squat() -> None:
        client = await forger(home, "no key")
        await client.start_workflow("perdure.nothing", id=names.gate_id(squatted.job.job_id, 99), task_queue="nowhere")

    asyncio.run(squat())
    approve(home, squatted)
    other = say(home, tmp_path / "other", word)
    assert other.thread == squatted.thread
    approve(home, other)

    def is_archived() -> bool:
        with home.ledger() as ledger:
            return any(event.kind == "history.archived" for event in ledger.events(job_id=other.job.job_id))

    wait_until(is_archived, "the other job's histories to be kept", explain=home.worker_log)
