"""Ids that belong to our children: whoever reaches Temporal's port can start something under one of them first."""

from __future__ import annotations

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from perdure.contracts import names
from perdure.contracts.job import ClaimInput, ClaimResult


class ClaimActivities:
    """Looks at who sits on an id. Only the server writes whose child an execution is."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name=names.CLAIM_ID)
    async def claim_id(self, claim: ClaimInput) -> ClaimResult:
        """Free the id of a child when what has it is no child of that parent. A second run finds it free."""
        handle = self._client.get_workflow_handle(claim.workflow_id)
        try:
            found = await handle.describe()
            if found.parent_id == claim.parent_id:
                return ClaimResult(state="ours")
            await self._end(claim, found)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # it ended meanwhile, or retention took it
                raise
        return ClaimResult(state="free")

    async def _end(self, claim: ClaimInput, found: WorkflowExecutionDescription) -> None:
        if found.status is not WorkflowExecutionStatus.RUNNING:
            return
        activity.logger.warning("%s is ended: it was not started by %s", claim.workflow_id, claim.parent_id)
        handle = self._client.get_workflow_handle(claim.workflow_id, run_id=found.run_id)
        await handle.terminate(reason=f"This id belongs to a child of {claim.parent_id}, which did not start it.")
