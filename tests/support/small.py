"""The smallest world that a job can change: one file and one counted command, no repository."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.contracts.http import JobView
from tests.support.installation import Installation
from tests.support.outside import ANNOUNCE


@dataclass(frozen=True)
class Small:
    """What the templates ``small`` and ``pair`` are about."""

    name: str
    folder: Path
    counter: Path

    def request(self, template: str) -> dict[str, Any]:
        """The request that starts a job on it."""
        inputs = {"name": self.name, "folder": str(self.folder), "counter": str(self.counter)}
        return {
            "template": template,
            "inputs": inputs,
            "request_id": uuid.uuid4().hex[:12],
            "folder": str(self.folder),
        }

    def start(self, home: Installation, template: str = "small") -> JobView:
        """Submit a job."""
        return JobView.model_validate(home.persist("/v1/jobs", self.request(template)))

    def lines(self, log: str) -> list[str]:
        """What the counting command wrote to one of its logs."""
        path = self.counter / log
        return path.read_text().splitlines() if path.exists() else []

    @property
    def note(self) -> Path:
        """The file that a job writes."""
        return self.folder / "RELEASED"

    def assert_applied_once(self) -> None:
        """The file is there and the command ran to its end once."""
        assert self.note.read_text() == self.name
        assert self.lines("done.log") == [self.name]
        assert self.lines("undone.log") == []

    def assert_untouched(self) -> None:
        """Nothing was ever begun."""
        assert not self.note.exists()
        assert self.lines("began") == []


def make_small(folder: Path, name: str = "") -> Small:
    """A fresh folder and counting command, with a thread of its own."""
    target, counter = folder / "target", folder / "counter"
    target.mkdir(parents=True)
    counter.mkdir()
    (counter / "announce").write_text(ANNOUNCE)
    return Small(name or uuid.uuid4().hex[:8], target, counter)
