"""Run a tool as the worker does, without a worker: for tests of tools, Perdure's and users'."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import Shell, Tool, ToolContext
from perdure.contracts.base import BlobRef, JsonDict
from perdure.errors import NotFound, ToolFault
from perdure.workspace.sandbox import Sandbox


class MemoryBlobs:
    """A blob store in memory: keeps the port's promises but lasting."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> BlobRef:
        """Keep bytes under their hash."""
        ref = BlobRef(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
        self._kept[ref.sha256] = data
        return ref

    def get(self, ref: BlobRef) -> bytes:
        """Give bytes back. Raises ``NotFound``."""
        if ref.sha256 not in self._kept or len(self._kept[ref.sha256]) != ref.size_bytes:
            raise NotFound(f"Blob {ref.sha256[:12]} was never put here.")
        return self._kept[ref.sha256]


class MemoryNotes:
    """A thread's notes in memory."""

    def __init__(self) -> None:
        self._notes: dict[str, str] = {}

    def read(self) -> Mapping[str, str]:
        """All notes by key, sorted."""
        return dict(sorted(self._notes.items()))

    def write(self, key: str, text: str) -> None:
        """Keep a note; empty text forgets it."""
        self._notes[key] = text
        if not text:
            del self._notes[key]


@dataclass
class ToolBench:
    """Calls tools on a folder. Commands run in the real sandbox, found when the first one does."""

    workspace: Path
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    notes: MemoryNotes = field(default_factory=MemoryNotes)
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    git_dir: Path | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    limit: timedelta = timedelta(minutes=1)
    is_stopped: Callable[[], bool] = lambda: False
    sandbox: Callable[[], Shell] | None = Sandbox.find

    def context(self) -> ToolContext:
        """What a call gets."""
        return ToolContext(
            agent="bench",
            key="bench/1/1",
            blobs=self.blobs,
            now=datetime.now(UTC),
            limit=self.limit,
            is_stopped=self.is_stopped,
            workspace=self.workspace,
            paths=self.paths,
            git_dir=self.git_dir,
            sandbox=self.sandbox,
            notes=self.notes,
            hosts=self.hosts,
            secrets=self.secrets,
        )

    def call(self, tool: Tool, **arguments: object) -> ToolOutcome:
        """Run a tool; a fault becomes the outcome that the model is told."""
        given: JsonDict = dict(arguments)
        try:
            return tool.run(given, self.context())
        except ToolFault as fault:
            return ToolOutcome(status="error", text=fault.message)
