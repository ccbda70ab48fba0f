"""Text of models while it comes, for whoever watches: small files beside the ledger, never in it and never in history.

A worker streams only while somebody watches; what it writes here is worth nothing once the turn's answer is stored.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

WATCHED_SECONDS = 20.0
"""So long after a watcher last showed itself there is one."""
STALE_SECONDS = 24 * 3600.0
_WATCHED = "watched"
_END = ".text"

log = logging.getLogger("perdure.live")


class LiveTexts:
    """One folder for all agents of an installation. Worker and API share it; on two machines nothing is streamed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, agent_id: str, turn: int) -> Callable[[str], None] | None:
        """Return where the text of a turn's attempt goes; ``None``: nobody watches."""
        folder = self._of(agent_id)
        if not _is_recent(folder / _WATCHED):
            return None
        for old in folder.glob(f"*{_END}"):
            with contextlib.suppress(OSError):
                old.unlink()  # whoever reads it has it open
        path = folder / f"{turn}.{time.time_ns()}{_END}"
        return lambda text: _append(path, text)

    def watch(self, agent_id: str) -> None:
        """Say that somebody watches an agent; to be said again before ``WATCHED_SECONDS`` are over."""
        folder = self._of(agent_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / _WATCHED).touch(mode=0o600)

    def newest(self, agent_id: str) -> Path | None:
        """Return the file of the attempt that was begun last and has said something."""
        found = list(self._of(agent_id).glob(f"*{_END}"))
        return max(found, key=lambda path: int(path.name.split(".")[1]), default=None)

    def sweep(self) -> None:
        """Remove what nobody has watched for a day."""
        for folder in self._folder.glob("*"):
            if not _is_recent(folder / _WATCHED, STALE_SECONDS):
                shutil.rmtree(folder, ignore_errors=True)

    def _of(self, agent_id: str) -> Path:
        return self._folder / hashlib.sha256(agent_id.encode()).hexdigest()[:24]


class LiveReader:
    """Reads one agent's text as it comes, each piece once."""

    def __init__(self, texts: LiveTexts, agent_id: str) -> None:
        self._texts, self._agent_id = texts, agent_id
        self._path: Path | None = None
        self._descriptor = -1
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.turn = 0
        """Whose text was read last."""

    def read(self) -> Iterator[tuple[str, int, str]]:
        """Give what is new as (kind, turn, text); ``again`` where the text of a turn begins anew.

        Text of another turn comes with the next call, so that the turn before it can be told first.
        """
        yield from self._pieces()
        newest = self._texts.newest(self._agent_id)
        if newest is None or newest == self._path:
            return
        before = self.turn
        if self._open(newest) and self.turn == before:
            yield "again", self.turn, ""

    def close(self) -> None:
        """Let the file go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self, path: Path) -> bool:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False  # the next attempt has just begun
        self.close()
        self._path, self._descriptor = path, descriptor
        self._decoder.reset()
        self.turn = int(path.name.split(".")[0])
        return True

    def _pieces(self) -> Iterator[tuple[str, int, str]]:
        while self._descriptor >= 0 and (data := os.read(self._descriptor, 65536)):
            if text := self._decoder.decode(data):
                yield "text", self.turn, text


def _is_recent(path: Path, seconds: float = WATCHED_SECONDS) -> bool:
    try:
        return time.time() - path.stat().st_mtime < seconds
    except OSError:
        return False


def _append(path: Path, text: str) -> None:
    """A watcher's text is worth no failed turn: a full disk costs only what is seen."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, text.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
    except OSError as error:
        log.warning("text for watchers could not be written: %s", error)
