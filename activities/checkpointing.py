"""A checkpoint after each call that wrote; and back to one, when a person says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from temporalio import activity

from activities.agent_desk import AgentDesk, now
from activities.running import until_stored
from perdure.contracts.agent_run import AgentSpec, CallRecord
from perdure.contracts.base import path_text
from perdure.contracts.checkpoints import CheckpointRecord, CheckpointView, Rewind
from perdure.contracts.decisions import Decision
from perdure.errors import PerdureError
from perdure.store.checkpoints import CheckpointLog
from perdure.workspace.checkpoints import Checkpoints, Snapshot, open_checkpoints
from perdure.workspace.git import open_repository

REWIND = "rewind"
"""Stands as the tool of a checkpoint that a person's word made."""
_MOST_NAMED = 20


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
        about = {"turn": record.turn, "position": record.position, "tool": record.tool}
        try:
            self._take(spec, self._earlier(spec), about)
        except (PerdureError, OSError) as error:
            activity.logger.warning("no checkpoint after %s of %s: %s", record.tool, record.key, error)

    def rewind(self, spec: AgentSpec, turn: int, word: Decision) -> str:
        """Take the workspace back as a person decided; return what the agent is told of it. Once per decision.

        Between two turns: no call of the agent runs.
        """
        earlier = self._earlier(spec)
        wanted = Rewind.model_validate_json(word.comment)
        target = next((view for view in earlier if view.number == wanted.to), None)
        if any(view.decision == word.id for view in earlier):
            return self._tell(spec, word, wanted, target, ())
        if not earlier or earlier[-1].number != wanted.seen or (target is None and wanted.to):
            return (
                f"{word.by} wanted the workspace to be taken back to checkpoint {wanted.to}, and more was written "
                "since: nothing was taken back. Go on, or wait for what comes."
            )
        try:
            left = self._go_back(spec, earlier, target, {"turn": turn, "position": 0, "tool": REWIND}, word.id)
        except (PerdureError, OSError) as error:
            return f"{word.by} wanted the workspace to be taken back to checkpoint {wanted.to}; it cannot be: {error}"
        return self._tell(spec, word, wanted, target, left)

    def _go_back(
        self,
        spec: AgentSpec,
        earlier: Sequence[CheckpointView],
        target: CheckpointView | None,
        about: dict[str, object],
        decision: str,
    ) -> Sequence[bytes]:
        commit = target.commit if target is not None else spec.base_commit
        left = self._points(spec).restore(self._desk.folder(spec.agent_id) / "tree", earlier[-1].commit, commit)
        self._take(spec, earlier, {**about, "decision": decision})
        return left

    def _tell(
        self, spec: AgentSpec, word: Decision, wanted: Rewind, target: CheckpointView | None, left: Sequence[bytes]
    ) -> str:
        when = f"after turn {target.turn}" if target is not None else "before your first call"
        text = (
            f"{word.by} took the workspace back to checkpoint {wanted.to} ({when}): its files are as they were then, "
            "and what you changed in them since is gone. Do not simply do the same again; read before you write."
        )
        outside = [
            f"{call.tool} {call.target}".strip()
            for call in self._desk.agents.transcripts.calls(spec.agent_id)
            if call.effect_class == "external" and call.status == "ok" and _is_after(call, target)
        ]
        if outside:
            text += f" What was done outside of it since stays done: {'; '.join(outside[:_MOST_NAMED])}."
        if left:
            named = ", ".join(path_text(path) for path in left[:_MOST_NAMED])
            text += f" Left as they are, because nobody kept what they held: {named}."
        return text

    def _take(self, spec: AgentSpec, earlier: Sequence[CheckpointView], about: dict[str, object]) -> None:
        parent = earlier[-1].commit if earlier else spec.base_commit
        note = f"{about['tool']} in turn {about['turn']} of {spec.agent_id}"
        made = self._points(spec).take(self._desk.folder(spec.agent_id) / "tree", parent, note=note, at=now())
        if made is not None:
            self._write(spec, parent, made, about)

    def _write(self, spec: AgentSpec, parent: str, made: Snapshot, about: dict[str, object]) -> None:
        known = {
            "agent_id": spec.agent_id,
            "commit": made.commit,
            "parent": parent,
            "pack": until_stored(lambda: self._desk.blobs.put(made.pack)),
            "base": spec.base_commit,
            "repository": spec.repository,
            "changed": len(made.changes),
            "left_out": len(made.left_out),
        }
        record = CheckpointRecord.model_validate({**known, **about})
        until_stored(lambda: self._log.add(spec.job_id, record, at=now()))

    def _earlier(self, spec: AgentSpec) -> list[CheckpointView]:
        """Those of the same workspace, oldest first: a draft's agents share it, another round begins anew."""
        folder = self._desk.folder(spec.agent_id)
        return [view for view in self._log.of_job(spec.job_id) if self._desk.folder(view.agent_id) == folder]

    def _points(self, spec: AgentSpec) -> Checkpoints:
        folder, repository = self._desk.folder(spec.agent_id), open_repository(Path(spec.repository))
        return open_checkpoints(
            folder / "checkpoints",
            object_format=repository.object_format,
            index=folder / "git" / "index",
            borrow=[repository.common_dir / "objects"],
        )


def _is_after(call: CallRecord, target: CheckpointView | None) -> bool:
    return target is None or (call.turn, call.position) > (target.turn, target.position)
