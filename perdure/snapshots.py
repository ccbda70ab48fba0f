"""What an agent's calls did to its workspace, step by step: from the ledger's packs and the base's repository."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from perdure.contracts.base import BlobRef, path_text
from perdure.contracts.checkpoints import CheckpointView
from perdure.contracts.plan import FileChange
from perdure.errors import NotFound, UserError
from perdure.scratch import scratch_folder
from perdure.store.blobs import BlobStore
from perdure.store.checkpoints import CheckpointLog
from perdure.store.diffs import stream_changes
from perdure.workspace.checkpoints import Checkpoints, open_checkpoints
from perdure.workspace.git import open_repository
from perdure.workspace.private import ABSENT, RawChange


class Snapshots:
    """Answers about checkpoints; writes nothing."""

    def __init__(self, log: CheckpointLog, blobs: BlobStore) -> None:
        self._log = log
        self._blobs = blobs

    def of_job(self, job_id: str) -> list[CheckpointView]:
        """A job's checkpoints, oldest first."""
        return self._log.of_job(job_id)

    def stream_diff(self, job_id: str, old: int, new: int) -> Iterator[str]:
        """Give the diff between two checkpoints in pieces; 0 is the base, ``new`` 0 the last one.

        Raises:
            NotFound: there is no such checkpoint, or none at all.
            UserError: they belong to different rounds of the job's draft.
            StageFailed: the base's repository cannot be read any more.
        """
        views = self.of_job(job_id)
        if not views:
            raise NotFound("This job has no checkpoints: no agent of it has written anything.")
        after = _find(views, new or views[-1].number)
        line = _line_of(views, after)
        before = line[0].base if old == 0 else _find(views, old).commit
        if old and before not in [view.commit for view in line]:
            raise UserError(f"Checkpoint {old} is not before {after.number} in one workspace: the draft began anew.")
        pieces = self._pieces(line, before, after.commit)
        first = next(pieces, "")  # what cannot be read is said before anything is
        return chain([first], pieces)

    def _pieces(self, line: Sequence[CheckpointView], before: str, after: str) -> Iterator[str]:
        with scratch_folder("checkpoints") as folder:
            points = self._open(folder, line)
            changes = points.changes(before, after)
            contents = points.contents(changes)
            kept = {_ref(data).sha256: data for data in contents.values()}
            files = [_change(change, contents) for change in changes]
            for piece in stream_changes(files, lambda ref: kept[ref.sha256]):
                yield piece.text

    def _open(self, folder: Path, line: Sequence[CheckpointView]) -> Checkpoints:
        repository = open_repository(Path(line[0].repository))
        points = open_checkpoints(
            folder / "git",
            object_format=repository.object_format,
            index=None,
            borrow=[repository.common_dir / "objects"],
        )
        for view in line:
            points.add(self._blobs.get(view.pack))
        return points


def _find(views: Sequence[CheckpointView], number: int) -> CheckpointView:
    found = next((view for view in views if view.number == number), None)
    if found is None:
        raise NotFound(f"There is no checkpoint {number}; this job has 1 to {views[-1].number}. 0 is the base.")
    return found


def _line_of(views: Sequence[CheckpointView], last: CheckpointView) -> list[CheckpointView]:
    """The checkpoints of one workspace up to ``last``, oldest first: each one's parent is the one before."""
    by_commit = {view.commit: view for view in views}
    line = [last]
    while (before := by_commit.get(line[0].parent)) is not None:
        line.insert(0, before)
    return line


def _change(change: RawChange, contents: dict[str, bytes]) -> FileChange:
    old_gone, new_gone = change.old_mode == ABSENT, change.new_mode == ABSENT
    return FileChange(
        path=path_text(change.path),
        old=None if old_gone else _ref(contents[change.old_id]),
        new=None if new_gone else _ref(contents[change.new_id]),
        old_mode="" if old_gone else change.old_mode,
        new_mode="" if new_gone else change.new_mode,
    )


def _ref(data: bytes) -> BlobRef:
    return BlobRef(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
