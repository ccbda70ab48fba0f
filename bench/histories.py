"""What Temporal keeps of a job, measured on the raw events: nothing is decoded, nobody's key is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from perdure.contracts import names


@dataclass(frozen=True)
class History:
    """One execution's events as the server stores them."""

    workflow_id: str
    is_open: bool
    events: list[HistoryEvent]

    @property
    def size_bytes(self) -> int:
        """All events."""
        return sum(event.ByteSize() for event in self.events)

    @property
    def largest_payload_bytes(self) -> int:
        """The largest single payload in any event; 0 when there is none."""
        sizes = [payload.ByteSize() for event in self.events for payload in find_payloads(event)]
        return max(sizes, default=0)

    @property
    def events_per_effect(self) -> list[int]:
        """Of an application: events from one effect's scheduling to the next one's, or to the application's close."""
        starts = [
            event.event_id
            for event in self.events
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
            and event.activity_task_scheduled_event_attributes.activity_type.name
            in (names.APPLY_EFFECT, names.CLOSE_APPLICATION)
        ]
        return [end - start for start, end in pairwise(starts)]


async def read_histories(address: str, job_id: str) -> list[History]:
    """Every execution of a job: its own runs, gates, applications and agents, and its thread."""
    client = await Client.connect(address)
    job = names.JobId.parse(job_id)
    ids = [f"{kind}/{job.thread}/{job.request}" for kind in ("job", "gate", "apply", "agent")]
    query = " OR ".join(f"WorkflowId STARTS_WITH '{start}'" for start in (*ids, names.thread_id(job.thread)))
    found = []
    async for execution in client.list_workflows(query):
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        history = await handle.fetch_history()
        found.append(History(execution.id, execution.close_time is None, list(history.events)))
    return found


def find_payloads(message: Message) -> Iterator[Payload]:
    """Every payload anywhere inside a message."""
    if isinstance(message, Payload):
        yield message
        return
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in _messages(field, value):
                yield from find_payloads(inner)


def _messages(field: FieldDescriptor, value: object) -> Iterator[Message]:
    if isinstance(value, Message):
        yield value
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        yield from (inner for inner in value.values() if isinstance(inner, Message))  # type: ignore[attr-defined]
    else:
        yield from value  # type: ignore[misc]
