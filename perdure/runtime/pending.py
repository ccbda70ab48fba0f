"""What an activity that is tried again says about why: the worker's own words, read from Temporal."""

from __future__ import annotations

from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from perdure.errors import PerdureError
from perdure.runtime.forgery import FORGED
from perdure.runtime.lost import PREDECESSOR_DIED, context_of


async def read_trouble(client: Client, execution: WorkflowExecutionDescription, pending: PendingActivityInfo) -> str:
    """Return what the activity waits for: by its heartbeat, else by its last attempt's failure.

    Empty when nothing is wrong, and when the words are not those of a worker of ours. A worker that died is no trouble:
    the next attempt goes on.
    """
    converter = client.data_converter.with_context(context_of(client, execution, pending))
    if pending.heartbeat_details.payloads:
        return await _read_heartbeat(converter, pending)
    if not pending.HasField("last_failure"):
        return ""
    error = await converter.decode_failure(pending.last_failure)
    if not isinstance(error, ApplicationError) or error.type in (FORGED, PREDECESSOR_DIED):
        return ""
    return error.message


async def _read_heartbeat(converter: DataConverter, pending: PendingActivityInfo) -> str:
    try:
        said = await converter.decode(pending.heartbeat_details.payloads, [str])
    except (ApplicationError, PerdureError):
        return ""  # not written by a worker of ours
    return str(said[0])
