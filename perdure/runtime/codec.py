"""Everything that Temporal stores of ours is encrypted, bound to its workflow, and small.

A codec turns every payload into AES-GCM ciphertext with the workflow's id as associated data, so that whoever reaches
Temporal's port can neither read a payload nor write one that we would believe, nor move one to another workflow. A
payload that fails is not an error of the task that carries it (the task would be retried for ever): it is marked, and
the mark becomes a non-retryable error where its value is asked for. A forged start fails at once, a forged signal is
dropped, a forged update or query is answered with the error, and the workflow lives on. Whoever asks for ``T | Forged``
gets a forged answer told as one, and may ask again.
"""

from __future__ import annotations

import copy
import dataclasses
import hmac
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, get_args

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from temporalio.exceptions import ApplicationError

from perdure.contracts.base import MAX_PAYLOAD_BYTES, Forged
from perdure.errors import SetupError
from perdure.runtime.failures import BoundedFailureConverter
from perdure.runtime.forgery import mark_refused, mark_unknown, raise_marked
from perdure.runtime.payload_keys import PayloadKeys, load_keys, make_key

ENCRYPTED = b"binary/perdure-aes-gcm"
KEY_METADATA = "perdure-key"
VOUCHERS_METADATA = "perdure-vouchers"
NONCE_BYTES = 12

MAX_VALUE_BYTES = MAX_PAYLOAD_BYTES - 256
"""Limit of a value before encryption; the rest is for nonce, tag and metadata: what is stored keeps to 16 KB."""

MAX_VOUCHERS = 3
"""So many of the older keys, newest first, vouch for the current one in each payload."""

_PREFIX = b"perdure.payload/1\0"
_VOUCHER = b"perdure.payload-key-voucher/1\0"


class EncryptingCodec(PayloadCodec, WithSerializationContext):
    """AES-GCM over whole payloads; the key's id in the metadata, the workflow's id as associated data."""

    def __init__(self, keys: PayloadKeys, workflow_id: str = "") -> None:
        self._keys = keys
        self._ciphers = {name: AESGCM(key) for name, key in keys.by_id.items()}
        self._vouchers = b",".join(_vouch(keys, keys.current, older) for older in _others(keys)[-MAX_VOUCHERS:])
        self._workflow_id = workflow_id

    def with_context(self, context: SerializationContext) -> Self:
        """Return a codec bound to the workflow of ``context``."""
        bound = type(self).__new__(type(self))
        bound._keys, bound._ciphers, bound._vouchers = self._keys, self._ciphers, self._vouchers
        bound._workflow_id = _workflow_of(context)
        return bound

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encrypt.

        Raises:
            ValueError: there is no workflow to bind to; such a payload could be moved anywhere.
        """
        if not self._workflow_id:
            raise ValueError("A payload without a workflow cannot be encrypted; call it through a workflow's handle.")
        return [self._seal(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypt. A payload that is not ours comes back marked, and the converter refuses it.

        Raises:
            SetupError: encrypted with a newer key of this installation that this process does not hold yet: the task
                waits for a process that does.
        """
        return [self._open(payload) for payload in payloads]

    def _seal(self, payload: Payload) -> Payload:
        nonce = os.urandom(NONCE_BYTES)
        name = self._keys.current
        sealed = self._ciphers[name].encrypt(nonce, payload.SerializeToString(), self._bound_to(name))
        metadata = {"encoding": ENCRYPTED, KEY_METADATA: name.encode()}
        if self._vouchers:
            metadata[VOUCHERS_METADATA] = self._vouchers
        return Payload(metadata=metadata, data=nonce + sealed)

    def _open(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCRYPTED:
            return mark_refused("is not encrypted")
        name = payload.metadata.get(KEY_METADATA, b"").decode("ascii", "replace")
        cipher = self._ciphers.get(name)
        if cipher is None:
            return self._without_key(payload, name)
        try:
            opened = cipher.decrypt(payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:], self._bound_to(name))
        except (InvalidTag, ValueError):
            return mark_refused("was changed, or written for another workflow")
        return Payload.FromString(opened)

    def _without_key(self, payload: Payload, name: str) -> Payload:
        """Whoever reaches the port can name a key. Only one that a key of ours vouches for is worth waiting for."""
        what = (
            f"is encrypted with key {name[:16]!r}; this process holds {', '.join(sorted(self._ciphers))}. If it is "
            "ours, copy the installation's keys/payload.key to this process"
        )
        given = payload.metadata.get(VOUCHERS_METADATA, b"").split(b",")
        if any(
            hmac.compare_digest(_vouch(self._keys, name, ours), voucher) for ours in self._ciphers for voucher in given
        ):
            raise SetupError(f"A payload of {self._workflow_id!r} {what}.")
        return mark_unknown(what)

    def _bound_to(self, key_name: str) -> bytes:
        return _PREFIX + key_name.encode() + b"\0" + self._workflow_id.encode()


def _workflow_of(context: SerializationContext) -> str:
    if isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
        return context.workflow_id or ""
    return ""


def _others(keys: PayloadKeys) -> list[str]:
    return [name for name in keys.by_id if name != keys.current]


def _vouch(keys: PayloadKeys, name: str, by: str) -> bytes:
    """What only a holder of the key ``by`` can say about another key's name."""
    return hmac.digest(keys.by_id[by], _VOUCHER + name.encode(), "sha256").hex()[:32].encode()


class BoundedPayloadConverter(PydanticPayloadConverter):
    """Pydantic JSON that refuses values above the limit before anything is scheduled, and what the codec marked.

    It runs inside the workflow at the call that schedules, so a value that is too large fails that workflow with a name
    instead of a task that is retried for ever.
    """

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """Convert.

        Raises:
            ApplicationError: type ``TooLarge``, not retryable: a value's JSON is above ``MAX_VALUE_BYTES``.
        """
        payloads = super().to_payloads(values)
        for value, payload in zip(values, payloads, strict=True):
            if payload.ByteSize() > MAX_VALUE_BYTES:
                raise ApplicationError(
                    f"{type(value).__name__} takes {payload.ByteSize()} bytes as a payload; at most {MAX_VALUE_BYTES} "
                    "are allowed. Store it as a blob and pass its reference.",
                    type="TooLarge",
                    non_retryable=True,
                )
        return payloads

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Convert. Where the hint is ``T | Forged``, what is no ``T`` of ours becomes a ``Forged``.

        Raises:
            ApplicationError: type ``Forged``, not retryable: a payload was not written here for this workflow.
            MissingKey: a payload is under a key that nobody here knows.
        """
        hints: Iterable[Any] = type_hints if type_hints and len(type_hints) == len(payloads) else [None] * len(payloads)
        return [self._from_payload(payload, hint) for payload, hint in zip(payloads, hints, strict=True)]

    def _from_payload(self, payload: Payload, hint: Any) -> Any:
        wanted = get_args(hint)
        may_be_forged = Forged in wanted
        try:
            raise_marked(payload)
            value = super().from_payloads([payload], None if hint is None else [hint])[0]
        except Exception as error:
            if may_be_forged:
                return Forged(forged=str(error)[:500])
            raise
        if may_be_forged and not isinstance(value, wanted):  # null and bytes are read whatever was asked for
            return Forged(forged=f"It is of type {type(value).__name__}.")
        return value


@dataclasses.dataclass(frozen=True)
class BoundDataConverter(DataConverter):
    """Binds its parts to a workflow without making each of them anew: it is done several times for every payload.

    Measured: 3 % of what an agent's turn costs a worker.
    """

    def with_context(self, context: SerializationContext) -> Self:
        """Return the converter of one workflow or activity."""
        bound = copy.copy(self)
        for name in ("payload_converter", "payload_codec", "failure_converter"):
            part = getattr(self, name)
            if isinstance(part, WithSerializationContext):
                object.__setattr__(bound, name, part.with_context(context))
        return bound


def data_converter(key_folder: Path, *, create: bool = False) -> DataConverter:
    """Return the converter that every client and worker of an installation uses.

    Args:
        key_folder: where ``payload.key`` lies (``settings.keys``).
        create: make the first key when there is none; only the process that prepares an installation does.

    Raises:
        SetupError: the key is missing, damaged or open to others.
    """
    keys = make_key(key_folder) if create else load_keys(key_folder)
    return converter_for(keys)


def converter_for(keys: PayloadKeys) -> DataConverter:
    """Return the converter for ``keys``."""
    return BoundDataConverter(
        payload_converter_class=BoundedPayloadConverter,
        payload_codec=EncryptingCodec(keys),
        failure_converter_class=BoundedFailureConverter,
    )
