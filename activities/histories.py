"""Keep what Temporal forgets: closed histories, as they are (their payloads stay encrypted), in the blob store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from temporalio import activity
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus

from activities.running import again_later
from perdure.contracts import names
from perdure.contracts.job import ArchiveInput, Done
from perdure.effects.base import Blobs
from perdure.store.ledger import Ledger


class HistoryActivities:
    """Reads histories; an execution is archived once, by its workflow and run id."""

    def __init__(self, client: Client, ledger: Ledger, blobs: Blobs) -> None:
        self._client = client
        self._ledger = ledger
        self._blobs = blobs

    @activity.defn(name=names.ARCHIVE_JOB)
    async def archive_job(self, question: ArchiveInput) -> Done:
        """Archive every execution of a job that has closed; tried again while one is still closing."""
        job = names.JobId.parse(question.job_id)
        for kind in ("job", "gate", "apply", "agent"):
            prefix = f"{kind}/{job.thread}/{job.request}"
            async for execution in self._client.list_workflows(f"WorkflowId STARTS_WITH '{prefix}'"):
                if execution.id == prefix or execution.id.startswith(f"{prefix}/"):
                    await self._archive(question.job_id, execution)
                    activity.heartbeat()
        return Done()

    async def _archive(self, job_id: str, execution: WorkflowExecution) -> None:
        if execution.status == WorkflowExecutionStatus.RUNNING:
            raise again_later(f"{execution.id} is still closing", "StillOpen")
        handle = self._client.get_workflow_handle(execution.id, run_id=execution.run_id)
        history = await handle.fetch_history()
        await asyncio.to_thread(self._keep, job_id, execution, history.to_json().encode())

    def _keep(self, job_id: str, execution: WorkflowExecution, data: bytes) -> None:
        ref = self._blobs.put(data)
        body = {"workflow_id": execution.id, "run_id": execution.run_id, "history": ref.model_dump()}
        self._ledger.append(
            thread=names.JobId.parse(job_id).thread,
            kind="history.archived",
            actor="perdure",
            body=body,
            job_id=job_id,
            workflow_id=execution.id,
            step=f"archive/{execution.run_id}",
            at=datetime.now(UTC),
        )
