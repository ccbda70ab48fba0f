"""A fire of a schedule: started by the server at its time, it tells the schedule's thread, and ends."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from perdure.contracts import names
from perdure.contracts.job import Done
from perdure.contracts.schedules import FireNotice
from workflows.calls import FORGED, call


@workflow.defn(name=names.FIRE_WORKFLOW)
class FireWorkflow:
    """So short that no overlap policy ever sees it: what takes long, or waits for people, is a job."""

    @workflow.run
    async def run(self, nothing: Done | None = None) -> None:
        """Read schedule and nominal time from the id that the server made; a schedule's arguments cannot be encrypted.

        (They would be bound to the id without its time, and no worker could read them.)
        """
        try:
            thread, schedule, due_at = names.parse_fire(workflow.info().workflow_id)
        except ValueError as error:
            raise ApplicationError(str(error), type=FORGED, non_retryable=True) from error
        await call(names.HAND_FIRE, FireNotice(thread=thread, schedule=schedule, due_at=due_at), Done)
