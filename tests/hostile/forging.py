"""Who forges: somebody at Temporal's port without a key, with a key of his own, or with the installation's payload key.

None of them holds the decision key. A job here says one word where a witness outside counts it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from temporalio.api.common.v1 import Payloads, WorkflowExecution
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.client import AsyncActivityHandle, Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import ActivitySerializationContext
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError

from perdure.contracts import names
from perdure.contracts.http import JobView
from perdure.contracts.job import JobPhase
from perdure.contracts.names import JobId
from perdure.runtime.codec import converter_for
from perdure.runtime.forgery import MissingKey
from perdure.runtime.payload_keys import PayloadKeys, key_id
from tests.support.files import look_at
from tests.support.installation import Installation, wait_until
from tests.support.outside import ANNOUNCE

Means = Literal["no key", "own key", "payload key"]
MEANS: tuple[Means, ...] = ("no key", "own key", "payload key")


@dataclass(frozen=True)
class Saying:
    """One job, and where its word is counted."""

    word: str
    folder: Path
    job: JobView

    @property
    def gate(self) -> str:
        """Workflow id of its first gate."""
        return names.gate_id(self.job.job_id, 1)

    @property
    def application(self) -> str:
        """Workflow id of its first application."""
        return names.application_id(self.job.job_id, 1)

    @property
    def thread(self) -> str:
        """Workflow id of its thread."""
        return names.thread_id(JobId.parse(self.job.job_id).thread)

    def lines(self, name: str) -> list[str]:
        """What the witness has counted: ``began``, ``done.log``, ``undone.log``."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def assert_unsaid(self) -> None:
        """Nothing happened, not even for a moment."""
        assert self.lines("began") == []
        assert not (self.folder / "NOTE").exists()

    def assert_said_once(self) -> None:
        """Both effects happened, each once, and none was taken back."""
        assert self.lines("began") == [f"{self.word} began"]
        assert self.lines("done.log") == [self.word]
        assert self.lines("undone.log") == []
        assert (self.folder / "NOTE").read_text() == self.word

    def slow_down(self) -> None:
        """Make the command wait, once it has begun, until :meth:`let_go`."""
        (self.folder / "slow").touch()

    def let_go(self) -> None:
        """Let the command end."""
        (self.folder / "go").touch()


def say(home: Installation, folder: Path, word: str, template: str = "announce") -> Saying:
    """Ask for a word to be said; it waits for a decision."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "announce").write_text(ANNOUNCE)
    job = home.run(template, folder, word=word, folder=str(folder), counter=str(folder))
    return Saying(word, folder, job)


def digest_of(home: Installation, saying: Saying) -> str:
    return home.job(saying.job).digest


def assert_undecided(home: Installation, saying: Saying) -> None:
    """The ledger knows of no decision, no permit and no effect; the job waits."""
    with home.ledger() as ledger:
        plan = ledger.plan(digest_of(home, saying))
        assert plan.state == "open"
        assert ledger.permit(plan.digest) is None
        assert ledger.intents(job_id=saying.job.job_id) == []
    assert home.job(saying.job).phase is JobPhase.waiting
    saying.assert_unsaid()


def approve(home: Installation, saying: Saying) -> None:
    """Approve the plan and see the word said, exactly once."""
    saying.assert_unsaid()
    home.approve(saying.job)
    home.done(saying.job)
    saying.assert_said_once()


def begin(home: Installation, saying: Saying) -> None:
    """Approve, and wait until the command has begun and waits."""
    saying.slow_down()
    home.approve(saying.job)
    begun(home, saying)


def begun(home: Installation, saying: Saying) -> None:
    """Wait until the command has begun."""
    wait_until(lambda: saying.lines("began"), "the command to begin", explain=home.worker_log)


def end(home: Installation, saying: Saying) -> None:
    """Let the command end; the job must end as done, by one command."""
    saying.let_go()
    home.done(saying.job)
    saying.assert_said_once()


async def forger(home: Installation, means: Means) -> Client:
    """Connect as somebody with these means."""
    if means == "payload key":
        connected: Client = await home.temporal()
        return connected
    converter = pydantic_data_converter
    if means == "own key":
        key = os.urandom(32)
        converter = converter_for(PayloadKeys(key_id(key), {key_id(key): key}))
    return await Client.connect(home.server.address, data_converter=converter, identity="forger")


async def signal_bare(client: Client, workflow_id: str, signal: str) -> None:
    """Signal without any payload: that needs no key."""
    request = SignalWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=workflow_id),
        signal_name=signal,
        input=Payloads(),
        identity="forger",
    )
    await client.workflow_service.signal_workflow_execution(request)


async def tried(attempt: Awaitable[Any], limit: float = 15) -> BaseException | None:
    """Try; return what came back instead of an answer."""
    try:
        async with asyncio.timeout(limit):
            await attempt
    except (TemporalError, RPCError, MissingKey, TimeoutError) as error:
        return error
    return None


async def taken_in(client: Client, workflow_id: str, signals: int) -> None:
    """Wait until a workflow has run with this many signals in its present run's history."""
    handle = client.get_workflow_handle(workflow_id)

    async def heard() -> bool:
        events = [event async for event in handle.fetch_history_events()]
        told = [n for n, event in enumerate(events) if event.HasField("workflow_execution_signaled_event_attributes")]
        if len(told) < signals:
            return False
        return any(event.HasField("workflow_task_completed_event_attributes") for event in events[told[-1] :])

    await until(heard)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Look until it is so; it is another process that makes it so."""
    deadline = time.monotonic() + 60
    while not await condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        await asyncio.sleep(0.05)


async def in_flight(client: Client, workflow_id: str, activity: str, *, but: str = "") -> str:
    """The id of the one activity of a kind that a worker has begun, another one than ``but``; quick ones end before."""
    handle = client.get_workflow_handle(workflow_id)
    found: list[str] = []

    async def begun() -> bool:
        pending = (await handle.describe()).raw_description.pending_activities
        found[:] = [one.activity_id for one in pending if one.activity_type.name == activity and one.activity_id != but]
        return len(found) == 1

    await until(begun)
    return found[0]


def answering(client: Client, workflow_id: str, activity_id: str, token: bytes = b"") -> AsyncActivityHandle:
    """A handle that answers an effect's activity by id, or by its task token."""
    context = ActivitySerializationContext(
        namespace=client.namespace,
        activity_id=activity_id,
        activity_type=names.APPLY_EFFECT,
        activity_task_queue=names.QUEUE,
        workflow_id=workflow_id,
        workflow_type=names.APPLY_WORKFLOW,
        is_local=False,
    )
    if token:
        return client.get_async_activity_handle(task_token=token).with_context(context)
    by_id = client.get_async_activity_handle(workflow_id=workflow_id, run_id=None, activity_id=activity_id)
    return by_id.with_context(context)


def token_of(home: Installation, workflow_id: str, activity_id: str) -> bytes:
    """The task token of an activity in flight. It holds only names and numbers: whoever knows those can write it."""
    entries = [json.loads(text) for _, text in look_at(home.settings.journal.glob("*.json"), Path.read_text)]
    found = [entry for entry in entries if (entry["workflow_id"], entry["activity_id"]) == (workflow_id, activity_id)]
    return base64.b64decode(found[-1]["token"])
