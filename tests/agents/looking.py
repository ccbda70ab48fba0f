"""Looking at what is left of something: in processes, in files, in what Temporal was told."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.converter import WorkflowSerializationContext

from perdure.contracts.http import JobView
from tests.support.files import read_files
from tests.support.installation import Installation


def processes(mark: str) -> list[Path]:
    """Processes on this machine whose words hold a mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path] if mark.encode() in path.read_bytes() else []
        except OSError:
            continue  # it ended meanwhile
    return found


def left_in(folder: Path, mark: bytes) -> list[str]:
    """Files beneath a folder that hold a mark, sorted; blobs lie there as they are, the ledger in SQLite's file."""
    return sorted(str(path.relative_to(folder)) for path, content in read_files(folder).items() if mark in content)


async def said_to_temporal(home: Installation, job: JobView) -> bytes:
    """Every payload of the histories of a job and its agents, in clear."""
    client = await home.temporal()
    agents = [str(agent["agent_id"]) for agent in home.get("/v1/agents", ref=job.job_id)]
    clear = b""
    for workflow_id in (job.job_id, *agents):
        history = await client.get_workflow_handle(workflow_id).fetch_history()
        payloads = list(_payloads(json.loads(history.to_json())))
        assert payloads
        context = WorkflowSerializationContext(namespace=client.namespace, workflow_id=workflow_id)
        codec = client.data_converter.payload_codec.with_context(context)
        clear += b"".join(payload.data for payload in await codec.decode(payloads))
    return clear


def _payloads(value: Any) -> Iterator[Payload]:
    if isinstance(value, dict) and set(value) == {"metadata", "data"}:
        metadata = {key: base64.b64decode(text) for key, text in value["metadata"].items()}
        yield Payload(metadata=metadata, data=base64.b64decode(value["data"]))
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _payloads(inner)
