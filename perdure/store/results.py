"""What a job's stages gave, as a plan of it was made from: for whoever asks afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.http import EventView


class Events(Protocol):
    """The part of the ledger that is read."""

    def events(self, *, job_id: str | None = None, after: int = 0, limit: int = 500) -> list[EventView]: ...


class JsonBlobs(Protocol):
    """The part of the blob store that is read."""

    def has(self, ref: BlobRef) -> bool: ...
    def get_json(self, ref: BlobRef) -> Any: ...


def read_results(ledger: Events, blobs: JsonBlobs, job_id: str, round_number: int) -> JsonDict:
    """Return ``{"gather": {source: value}, "analyze": {step: value}}`` as a plan of that round was made from.

    A round that planned only the rest of a plan kept the results of the one before. What was erased is not there.
    """
    found: JsonDict = {"gather": {}, "analyze": {}}
    for body in _stage_bodies(ledger, job_id):
        stage = body["stage"]
        if stage not in found or not body.get("result") or body.get("round", 1) > round_number:
            continue
        ref = BlobRef.model_validate(body["result"])
        value = blobs.get_json(ref)["value"] if blobs.has(ref) else None
        if stage == "gather":
            found[stage][body["name"]] = value
        else:
            found[stage] = value or {}
    return found


def _stage_bodies(ledger: Events, job_id: str) -> Iterator[JsonDict]:
    after = 0
    while events := ledger.events(job_id=job_id, after=after):
        yield from (event.body for event in events if event.kind == "stage" and event.body)
        after = events[-1].position
