"""Canonical JSON (RFC 8785) and the digests made over it."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785

PLAN_PREFIX = b"perdure.plan/1\n"
CONTENT_PREFIX = b"perdure.content/1\n"
EFFECT_PREFIX = b"perdure.effect/1\n"
EVENT_PREFIX = b"perdure.event/1\n"
DECISION_PREFIX = b"perdure.decision/1\n"


def canonical_bytes(value: Any) -> bytes:
    """Return RFC 8785 bytes of plain JSON.

    Raises:
        ValueError: a float is inside (two programs may print it differently), or a value is no JSON.
    """
    _refuse_floats(value, "$")
    return rfc8785.dumps(value)


def digest_of(prefix: bytes, data: bytes) -> str:
    """Return the SHA-256 of ``prefix`` and ``data``, 64 hex digits; the prefix keeps different things apart."""
    return hashlib.sha256(prefix + data).hexdigest()


def _refuse_floats(value: Any, where: str) -> None:
    if isinstance(value, float):
        raise ValueError(f"A float at {where} cannot be hashed; expected an integer or text.")
    if isinstance(value, dict):
        for key, inner in value.items():
            _refuse_floats(inner, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            _refuse_floats(inner, f"{where}[{position}]")
