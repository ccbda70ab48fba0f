"""What is known of a workspace's checkpoints: in the ledger, over the API and on the screen."""

from __future__ import annotations

from pydantic import Field

from perdure.contracts.base import BlobRef, Contract, UtcTime


class CheckpointRecord(Contract):
    """One checkpoint as the ledger keeps it."""

    agent_id: str
    turn: int
    position: int
    """Of the call in its turn, from 0."""
    tool: str
    commit: str
    """Id of the snapshot; its parent is the checkpoint before, or the base."""
    parent: str
    pack: BlobRef
    """A git pack of what neither the parent nor the base's repository has."""
    base: str
    repository: str
    """Place of the repository that has the base's objects."""
    changed: int
    """Paths that differ from the checkpoint before."""
    left_out: int = 0
    """Paths that are not kept: pipes, sockets, what cannot be read."""
    decision: str = ""
    """Id of the word that took the workspace back and so made this one; empty: a call made it."""


class CheckpointView(CheckpointRecord):
    """A checkpoint with its number in the job, from 1."""

    number: int
    at: UtcTime


class Rewind(Contract):
    """Take a workspace back to a checkpoint, as it was seen: when more was written since, nothing happens."""

    to: int = Field(ge=0)
    """0 is the base."""
    seen: int = Field(ge=1)
    """The last checkpoint that whoever decides has seen."""
