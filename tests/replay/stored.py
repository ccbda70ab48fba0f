"""Recorded histories: where they lie, how they are written, and the key that their payloads are sealed with.

The key protects nothing: it was made for these recordings and lies beside them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory

from perdure.runtime.payload_keys import PayloadKeys, key_id

HISTORIES = Path(__file__).parent / "histories"
NOISE = frozenset({"identity", "requestId", "taskId", "workerVersion", "historySizeBytes", "payloadMetadata"})
"""What differs between two recordings of the same run and no replay looks at."""

KEY = bytes.fromhex("7065726475726520746573742068697374" + "6f72696573" * 3)
"""32 bytes of text."""


def keys() -> PayloadKeys:
    """What opens and seals the recordings."""
    return PayloadKeys(key_id(KEY), {key_id(KEY): KEY})


@dataclass(frozen=True)
class Stored:
    """One recorded run of one workflow."""

    path: Path

    @property
    def name(self) -> str:
        """``<release>/<scenario>/<kind>-<run>``."""
        return str(self.path.relative_to(HISTORIES).with_suffix(""))

    @property
    def kind(self) -> str:
        """thread, job, gate, apply, agent."""
        return self.path.name.partition("-")[0]

    def load(self) -> WorkflowHistory:
        """The history as Temporal gave it."""
        raw = json.loads(self.path.read_text())
        return WorkflowHistory.from_json(raw["workflow_id"], raw["history"])


def store(path: Path, history: WorkflowHistory) -> None:
    """Write a run's history, one event a line so that a difference can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [_without_noise(event) for event in history.to_json_dict()["events"]]
    events = [json.dumps(event, sort_keys=True, separators=(",", ":")) for event in kept]
    lines = ",\n".join(events)
    path.write_text(f'{{"workflow_id": {json.dumps(history.workflow_id)}, "history": {{"events": [\n{lines}\n]}}}}\n')


def _without_noise(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_noise(inner) for name, inner in value.items() if name not in NOISE}
    return [_without_noise(inner) for inner in value] if isinstance(value, list) else value


def all_stored() -> list[Stored]:
    """Every recording, by name."""
    return [Stored(path) for path in sorted(HISTORIES.rglob("*.json"))]
