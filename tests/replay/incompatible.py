"""A gate whose code is not the recorded one: it asks for something before it opens."""

from __future__ import annotations

from temporalio import workflow

from perdure.contracts import names
from perdure.contracts.decisions import GateEnd, GateInput
from perdure.contracts.job import RequestsInput, RequestsResult
from workflows.calls import call
from workflows.gate import GateWorkflow


@workflow.defn(name=names.GATE_WORKFLOW)
class OtherGateWorkflow(GateWorkflow):
    """What somebody might write who forgot that gates are open."""

    @workflow.init
    def __init__(self, gate: GateInput) -> None:
        super().__init__(gate)

    @workflow.run
    async def run(self, gate: GateInput) -> GateEnd:
        """Look for a cancel first, without ``workflow.patched``."""
        await call(names.WEIGH_REQUESTS, RequestsInput(job_id=gate.job_id), RequestsResult)
        return await super().run(gate)
