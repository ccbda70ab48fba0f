"""Workflows in the SDK's sandbox, asked less often who a payload belongs to.

The SDK enters the sandbox several times for every payload to learn its context. Of a context our codec uses only the
workflow's id (``codec.py``), and that of an activity is its workflow's own: it is known without asking. Measured: one
eighth of what an agent's turn costs a worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from temporalio.api.enums.v1 import CommandType
from temporalio.converter import SerializationContext, StorageDriverStoreContext, WorkflowSerializationContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.workflow import Info

if TYPE_CHECKING:  # the SDK's own rooms: only their shapes are named here
    from temporalio.bridge.proto.workflow_activation import WorkflowActivation
    from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
    from temporalio.worker._command_aware_visitor import CommandInfo

_OWN = CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK
_NOWHERE = StorageDriverStoreContext(target=None)


class KnownContexts(WorkflowInstance):
    """A sandboxed workflow whose own payloads are told by its id alone."""

    def __init__(self, inner: WorkflowInstance, info: Info) -> None:
        self._inner = inner
        self._own = WorkflowSerializationContext(namespace=info.namespace, workflow_id=info.workflow_id)

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Run the workflow's next step."""
        return self._inner.activate(act)

    def get_serialization_context(self, command_info: CommandInfo | None) -> SerializationContext | None:
        """Return whose a payload is: children and targets of signals are asked for in the sandbox."""
        if command_info is None or command_info.command_type == _OWN:
            return self._own
        return self._inner.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: CommandInfo | None) -> StorageDriverStoreContext:
        """Payloads are stored nowhere else: contents are blobs of ours."""
        return _NOWHERE

    def get_info(self) -> Info:
        """Return what the workflow is."""
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        """Return the thread that it runs on now."""
        return self._inner.get_thread_id()


class SandboxRunner(SandboxedWorkflowRunner):
    """Makes sandboxed workflows with :class:`KnownContexts`."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return one workflow, ready to run."""
        return KnownContexts(super().create_instance(det), det.info)
