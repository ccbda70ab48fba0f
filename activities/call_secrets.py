"""Secrets of tools: given to the one that names them, and taken out of whatever it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import Blobs, ToolContext
from perdure.contracts.base import BlobRef

_SHORTEST = 4
"""Characters of a value that is looked for: a shorter one stands in every other text by chance."""


@dataclass(frozen=True)
class SecretBlobs:
    """A blob store that keeps no secret of the call's."""

    blobs: Blobs
    secrets: Mapping[str, str]

    def put(self, data: bytes) -> BlobRef:
        """Store bytes without the values."""
        for name, value in _looked_for(self.secrets):
            data = data.replace(value.encode(), _mark(name).encode())
        return self.blobs.put(data)

    def get(self, ref: BlobRef) -> bytes:
        """Read bytes back."""
        return self.blobs.get(ref)


def with_secrets(context: ToolContext, secrets: Mapping[str, str]) -> ToolContext:
    """Return the context of a tool that is given these."""
    return replace(context, secrets=secrets, blobs=SecretBlobs(context.blobs, secrets)) if secrets else context


def without_secrets(outcome: ToolOutcome, secrets: Mapping[str, str]) -> ToolOutcome:
    """Return an outcome in which each value stands as its name."""
    texts = {"text": outcome.text, "summary": outcome.summary, "degraded": outcome.degraded}
    for name, value in _looked_for(secrets):
        texts = {part: text.replace(value, _mark(name)) for part, text in texts.items()}
    return outcome.model_copy(update={part: text if part == "text" else text[:300] for part, text in texts.items()})


def _looked_for(secrets: Mapping[str, str]) -> list[tuple[str, str]]:
    """Longest first: one may be the beginning of another."""
    found = [(name, value) for name, value in secrets.items() if len(value) >= _SHORTEST]
    return sorted(found, key=lambda pair: -len(pair[1]))


def _mark(name: str) -> str:
    return f"[secret {name}]"
