"""Answers to activities by somebody else than our worker: asked again, and never believed over the ledger."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice.v1 import RespondActivityTaskFailedByIdRequest
from temporalio.client import AsyncActivityHandle, Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import Worker

from perdure.contracts import names
from perdure.contracts.application import (
    ApplicationStanding,
    CloseApplicationResult,
    EffectOutcome,
    OpenApplicationResult,
)
from perdure.contracts.decisions import DecisionNotice, GateEnd, Weighing
from perdure.contracts.job import Admission, AdmitInput, Done, JobPhase, JobState, Poke, RequestsResult
from perdure.runtime.messenger import FAILED_TASKS, Messenger
from perdure.runtime.payload_keys import make_key
from perdure.settings import Settings
from tests.hostile.forging import (
    MEANS,
    Means,
    Saying,
    answering,
    approve,
    assert_undecided,
    begun,
    digest_of,
    end,
    forger,
    in_flight,
    say,
    token_of,
    until,
)
from tests.support.forked import Forked
from tests.support.installation import Installation, wait_until
from tests.support.repositories import make_project
from worker import workflow_options


async def fail_plainly(client: Client, workflow_id: str, activity_id: str, failure: Failure) -> None:
    """Report a failure of an activity: that needs no payload."""
    request = RespondActivityTaskFailedByIdRequest(
        namespace=client.namespace, workflow_id=workflow_id, activity_id=activity_id, failure=failure
    )
    await client.workflow_service.respond_activity_task_failed_by_id(request)


def plain_failures() -> dict[str, Failure]:
    """Failures as anybody can write them."""
    final, late, gone, server = (Failure(message="it failed") for _ in range(4))
    final.application_failure_info.type = "StageFailed"
    final.application_failure_info.non_retryable = True
    late.timeout_failure_info.timeout_type = 3  # schedule to close: never tried again
    gone.canceled_failure_info.SetInParent()
    server.server_failure_info.non_retryable = True
    return {"final": final, "late": late, "gone": gone, "server": server}


@pytest.mark.parametrize("how", ["late", *(pytest.param(how, marks=pytest.mark.torture) for how in ("final", "gone"))])
def test_failure_told_for_a_stage_is_asked_about_again(home: Installation, tmp_path: Path, how: str) -> None:
    """A failure of a stage that no worker of ours reported does not end the job: the stage is run again."""
    project = make_project(tmp_path / "src", remote=False)
    job = home.release(project, test='["sleep", "4"]', remote="")

    async def attack() -> None:
        client = await forger(home, "no key")
        activity_id = await in_flight(client, job.job_id, names.RUN_CHECK)
        await fail_plainly(client, job.job_id, activity_id, plain_failures()[how])
        await in_flight(client, job.job_id, names.RUN_CHECK, but=activity_id)

    asyncio.run(attack())
    home.waiting(job)


def told(index: int, state: Any) -> EffectOutcome:
    return EffectOutcome(index=index, state=state, detail="forged")


ANSWERS: dict[str, Any] = {
    "done": told(1, "done"),
    "failed": told(1, "failed"),
    "drift": told(1, "drift"),
    "other effect": told(0, "done"),
    "undone": told(1, "done").model_copy(update={"direction": "undo"}),
    "shape": {"anything": 1},
    "null": None,
}


QUICK: dict[Means, list[str]] = {
    "no key": ["done", "shape", "error", "final", "late"],
    "payload key": ["done", "failed", "drift", "other effect", "shape"],
}


def _attacks() -> Iterator[Any]:
    """A few answers at once in the ordinary run, all of them in ``make torture``."""
    for means, told_as in QUICK.items():
        yield pytest.param(means, told_as, id=f"{means}-some")
    for means in MEANS:
        told_as = [*ANSWERS, "error", *(plain_failures() if means == "no key" else ())]
        yield pytest.param(means, told_as, id=f"{means}-all", marks=pytest.mark.torture)


@pytest.mark.parametrize(("means", "told_as"), list(_attacks()))
def test_answer_for_an_effect_in_flight_is_not_believed(
    home: Installation, tmp_path: Path, means: Means, told_as: list[str]
) -> None:
    """Whoever answers in place of the worker that applies an effect ends no job and makes no effect happen twice."""
    failures = plain_failures()
    sayings = {name: say(home, tmp_path / f"s{n}", f"a{n}x{uuid.uuid4().hex[:6]}") for n, name in enumerate(told_as)}
    for saying in sayings.values():
        saying.slow_down()
        home.approve(saying.job)
    for saying in sayings.values():
        begun(home, saying)

    async def attack(client: Client, name: str, saying: Saying) -> None:
        activity_id = await in_flight(client, saying.application, names.APPLY_EFFECT)
        token = token_of(home, saying.application, activity_id) if name == "done" else b""
        handle = answering(client, saying.application, activity_id, token)
        if name in failures:
            await fail_plainly(client, saying.application, activity_id, failures[name])
        elif name == "error":
            await handle.fail(ApplicationError("forged", type="StageFailed", non_retryable=True))
        else:
            await complete(handle, name)
        await in_flight(client, saying.application, names.APPLY_EFFECT, but=activity_id)

    async def attack_all() -> None:
        client = await forger(home, means)
        await asyncio.gather(*(attack(client, name, saying) for name, saying in sayings.items()))

    asyncio.run(attack_all())
    for saying in sayings.values():
        assert home.job(saying.job).phase is JobPhase.applying
        assert saying.lines("done.log") == []
    for saying in sayings.values():
        end(home, saying)


async def complete(handle: AsyncActivityHandle, name: str) -> None:
    await handle.heartbeat("forged")
    await handle.complete(ANSWERS[name])


def test_liar_in_the_place_of_the_worker_changes_nothing(home: Installation, saying: Saying) -> None:
    """A worker with the payload key that answers as it likes ends workflows, and nothing else: the job starts again."""
    home.kill_workers()

    async def attack() -> JobState:
        client = await forger(home, "payload key")
        job = client.get_workflow_handle(saying.job.job_id, result_type=JobState)
        async with Worker(client, task_queue=names.QUEUE, activities=lies(), **workflow_options()):
            gate = client.get_workflow_handle(saying.gate)
            notice = DecisionNotice(decision_id="forged", digest=digest_of(home, saying))
            await gate.execute_update(names.DECIDE_UPDATE, notice, result_type=Weighing)
            state: JobState = await job.result()
            return state

    assert asyncio.run(attack()).phase is JobPhase.done
    home.start_worker()
    assert_undecided(home, saying)
    approve(home, saying)


def lies() -> list[Any]:
    """Activities by the names of ours that always say what is wanted."""
    answers: dict[str, Any] = {
        names.OPEN_GATE: Done(),
        names.WEIGH_REQUESTS: RequestsResult(),
        names.CLOSE_GATE: GateEnd(outcome="satisfied", weighing=Weighing(outcome="satisfied", by=["mallory"])),
        names.READ_GATE: GateEnd(outcome="satisfied"),
        names.OPEN_APPLICATION: OpenApplicationResult(state="ready", attempt_limits=[60, 60]),
        names.CLOSE_APPLICATION: CloseApplicationResult(),
        names.READ_APPLICATION: ApplicationStanding(state="applied", reached=2),
        names.NOTE_JOB: Done(),
        names.ARCHIVE_JOB: Done(),
    }

    def lie(name: str, answer: Any) -> Any:
        async def told(question: Any) -> Any:
            return EffectOutcome(index=question["index"], state="done") if name == names.APPLY_EFFECT else answer

        return activity.defn(name=name)(told)

    return [lie(name, answer) for name, answer in {**answers, names.APPLY_EFFECT: None}.items()]


def test_worker_with_another_key_only_delays(home: Installation, saying: Saying, tmp_path: Path) -> None:
    """A worker of another installation on our queue can do nothing with its tasks; when it goes, work goes on."""

    async def give_it_a_task() -> None:
        client = await forger(home, "payload key")
        await client.get_workflow_handle(saying.job.job_id).signal(names.POKE_SIGNAL, Poke())

    with stranger(home, tmp_path) as log:
        asyncio.run(give_it_a_task())
        wait_until(lambda: "MissingKey" in log.read_text(), "the stranger to fail a task", explain=log.read_text)
    home.start_worker()
    assert_undecided(home, saying)
    approve(home, saying)


def test_request_waits_for_a_task_that_is_tried_again(home: Installation, tmp_path: Path) -> None:
    """Temporal takes no update while a workflow's task fails time and again; whoever asks is answered when it ends."""
    thread = f"failing-{uuid.uuid4().hex[:6]}"
    known, job = (
        AdmitInput(job_id=f"job/{thread}/{name}", spec=home.blobs.put(b"{}"), template="announce", requester="ada")
        for name in ("one", "two")
    )
    with home.ledger() as ledger:
        for request in (known, job):
            ledger.request_job(request, at=datetime.now(UTC))

    async def ask() -> Admission:
        client = await home.temporal()
        handle = client.get_workflow_handle(names.thread_id(thread))
        messenger = Messenger(home.temporal, limit=timedelta(seconds=120))
        await messenger.admit(known)

        async def has_failed_often() -> bool:
            return (await handle.describe()).raw_description.pending_workflow_task.attempt > FAILED_TASKS

        with stranger(home, tmp_path):
            await handle.signal(names.POKE_SIGNAL, Poke())  # a task for the stranger
            await until(has_failed_often)
            with pytest.raises(RPCError, match="failed state"):
                await handle.execute_update(names.ADMIT_UPDATE, job, result_type=Admission)
            asked = asyncio.create_task(messenger.admit(job))
        await asyncio.to_thread(home.start_worker)
        return await asked

    assert asyncio.run(ask()).job_id == job.job_id


@contextmanager
def stranger(home: Installation, folder: Path) -> Iterator[Path]:
    """A worker of another installation in the place of ours; gives its log."""
    settings = Settings(data=folder / "stranger", temporal_address=home.settings.temporal_address)
    make_key(settings.keys)
    home.kill_workers()
    log = folder / "stranger.log"
    environ = {**home.environ, "PERDURE_DATA": str(settings.data)}
    process = Forked(["-m", "perdure.runtime.run_worker", "--data", str(settings.data)], environ, log)
    try:
        yield log
    finally:
        process.kill()
        process.wait()
