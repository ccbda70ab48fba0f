"""A checkpoint after each call that wrote: what an agent did can be looked at, and taken back, step by step."""

from __future__ import annotations

from pathlib import Path

from temporalio import activity

from activities.agent_desk import AgentDesk, now
from activities.running import until_stored
from perdure.contracts.agent_run import AgentSpec, CallRecord
from perdure.contracts.checkpoints import CheckpointRecord
from perdure.errors import PerdureError
from perdure.store.checkpoints import CheckpointLog
from perdure.workspace.checkpoints import Snapshot, open_checkpoints
from perdure.workspace.git import open_repository


class CheckpointKeeper:
    """Keeps a workspace's files. Called by whoever holds the workspace's turn."""

    def __init__(self, desk: AgentDesk, log: CheckpointLog) -> None:
        self._desk = desk
        self._log = log

    def keep(self, spec: AgentSpec, record: CallRecord) -> None:
        """Keep what the workspace holds after a call; nothing when it holds what it held.

        A checkpoint that cannot be made is said in the worker's log and missing in the list: the call has happened.
        """
        if not spec.repository:
            return  # no workspace
        try:
            self._keep(spec, record)
        except (PerdureError, OSError) as error:
            activity.logger.warning("no checkpoint after %s of %s: %s", record.tool, record.key, error)

    def _keep(self, spec: AgentSpec, record: CallRecord) -> None:
        folder = self._desk.folder(spec.agent_id)
        earlier = [view for view in self._log.of_job(spec.job_id) if self._desk.folder(view.agent_id) == folder]
        parent = earlier[-1].commit if earlier else spec.base_commit
        repository = open_repository(Path(spec.repository))
        points = open_checkpoints(
            folder / "checkpoints",
            object_format=repository.object_format,
            index=folder / "git" / "index",
            borrow=[repository.common_dir / "objects"],
        )
        note = f"{record.tool} in turn {record.turn} of {spec.agent_id}"
        made = points.take(folder / "tree", parent, note=note, at=now())
        if made is not None:
            self._write(spec, record, parent, made)

    def _write(self, spec: AgentSpec, record: CallRecord, parent: str, made: Snapshot) -> None:
        kept = CheckpointRecord(
            agent_id=spec.agent_id,
            turn=record.turn,
            position=record.position,
            tool=record.tool,
            commit=made.commit,
            parent=parent,
            pack=until_stored(lambda: self._desk.blobs.put(made.pack)),
            base=spec.base_commit,
            repository=spec.repository,
            changed=len(made.changes),
            left_out=len(made.left_out),
        )
        until_stored(lambda: self._log.add(spec.job_id, kept, at=now()))
