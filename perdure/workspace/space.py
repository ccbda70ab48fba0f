"""Drafted content without a checkout: the base commit's files with the draft's changes on top. Reads only."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import FileChange
from perdure.effects.base import Blobs
from perdure.errors import UserError
from perdure.workspace.git import Repository

_REGULAR = {"100644", "100755"}


class DraftedFiles:
    """Implements ``rules.base.DraftSpace`` for checks: what is read is exactly what the plan would commit."""

    def __init__(self, repository: Repository, draft: JsonDict, blobs: Blobs) -> None:
        self._repository = repository
        self._base = draft["base"]
        self._changes = {change["path"]: FileChange.model_validate(change) for change in draft["changes"]}
        self._blobs = blobs

    @property
    def root(self) -> Path:
        """Never there: a check that needs a folder is a command."""
        self._refuse("A rule's check has no folder; use a command (`run:`) instead.")

    def read(self, path: str) -> bytes | None:
        """A regular file's bytes; ``None`` when absent. Raises ``UserError`` for a link."""
        change = self._changes.get(path)
        if change is not None:
            if change.new is None:
                return None
            if change.new_mode not in _REGULAR:
                self._refuse(f"{path} is no regular file (mode {change.new_mode}).")
            return self._blobs.get(change.new)
        listed = self._repository.read("ls-tree", "-z", self._base, "--", path)
        if not listed:
            return None
        mode, _, rest = listed.split(b"\0")[0].partition(b" ")
        if mode.decode() not in _REGULAR:
            self._refuse(f"{path} is no regular file (mode {mode.decode()}).")
        return self._repository.read("cat-file", "blob", rest.split(b"\t")[0].split(b" ")[1].decode())

    def write(self, path: str, data: bytes) -> None:
        """Refused: what judges does not write."""
        self._refuse(f"A check may not write ({path}, {len(data)} bytes).")

    @staticmethod
    def _refuse(message: str) -> NoReturn:
        raise UserError(message)
