"""How records are hashed: headers chained per thread, all of them in one global chain. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from perdure.contracts.canonical import EVENT_PREFIX, canonical_bytes, digest_of

CHAIN_PREFIX = b"perdure.chain/1\n"

GENESIS = "0" * 64
"""What the first record of a thread, and the first link of the global chain, name as the one before."""

SALT_BYTES = 32


@dataclass(frozen=True)
class Header:
    """Everything about a record that its hash covers; the body enters by ``content_hash``."""

    thread: str
    seq: int
    """From 1, without holes in a thread."""
    kind: str
    at: str
    """As :func:`time_text` writes it."""
    actor: str
    job_id: str
    workflow_id: str
    """Empty together with ``step`` when the record has no idempotency key."""
    step: str
    content_hash: str
    prev: str
    """Hash of the thread's record before; ``GENESIS`` for its first one."""

    def hash(self) -> str:
        """Return the record's hash, 64 hex digits."""
        return digest_of(EVENT_PREFIX, canonical_bytes(vars(self)))


def content_hash(salt: bytes, body: bytes) -> str:
    """Return the hash of a canonical body behind its random salt, so that an erased body cannot be guessed back."""
    return hashlib.sha256(salt + body).hexdigest()


def link_hash(position: int, prev: str, event_hash: str) -> str:
    """Return the global chain's hash at ``position`` (from 1)."""
    return digest_of(CHAIN_PREFIX, canonical_bytes({"event": event_hash, "position": position, "prev": prev}))


def time_text(at: datetime) -> str:
    """Return a time as the ledger stores and hashes it: "2026-11-30T10:12:00.000000Z".

    Raises:
        ValueError: ``at`` has no zone.
    """
    if at.tzinfo is None:
        raise ValueError(f"{at!r} has no zone; the ledger needs a time that is known to be UTC.")
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_of(text: str) -> datetime:
    """Return the time that :func:`time_text` wrote, in UTC."""
    return datetime.fromisoformat(text)
