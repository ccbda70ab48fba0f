"""Checkpoints in the ledger: one record a call that wrote, oldest first; the files lie in packs beside the blobs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from perdure.contracts.checkpoints import CheckpointRecord, CheckpointView
from perdure.contracts.names import JobId
from perdure.store import schema
from perdure.store.chain import time_of
from perdure.store.database import Database
from perdure.store.events import append_event, bodies_of

KIND = "checkpoint.taken"


class CheckpointLog:
    """Writes and reads them. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, job_id: str, record: CheckpointRecord, *, at: datetime) -> None:
        """Write one down; a no-op for a call, or a rewind, that has one."""
        with self._database.write() as connection:
            append_event(
                connection,
                thread=JobId.parse(job_id).thread,
                kind=KIND,
                actor="perdure",
                body=record.model_dump(mode="json"),
                job_id=job_id,
                workflow_id=record.agent_id,
                step=f"rewind/{record.decision}" if record.decision else f"checkpoint/{record.turn}/{record.position}",
                at=at,
            )

    def of_job(self, job_id: str) -> list[CheckpointView]:
        """Return a job's checkpoints, oldest first; one whose record was erased is missing, the numbers stay."""
        events = schema.events
        query = select(events.c.position, events.c.at).where(events.c.job_id == job_id, events.c.kind == KIND)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(events.c.position)).all()
            bodies = bodies_of(connection, [row.position for row in rows])
        return [
            CheckpointView.model_validate({**bodies[row.position], "number": number, "at": time_of(row.at)})
            for number, row in enumerate(rows, 1)
            if row.position in bodies
        ]
