"""Signals that no handler could take, kept away from it: anybody who reaches Temporal's port can send one.

A payload that is not ours never gets here (see ``codec``). A signal without any payload, or with too many, does; the
handler's ``TypeError`` would fail the workflow task, which is then tried for ever.
"""

from __future__ import annotations

from temporalio import workflow
from temporalio.worker import (
    HandleSignalInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from perdure.contracts.base import Contract


class Doorkeeper(Interceptor):
    """Lets a signal in when it has exactly one argument that is a contract: all of ours have."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        """See base class."""
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    async def handle_signal(self, input: HandleSignalInput) -> None:
        if len(input.args) == 1 and isinstance(input.args[0], Contract):
            await super().handle_signal(input)
        else:
            workflow.logger.warning("a signal %s with %d arguments was dropped", input.signal, len(input.args))
