"""Everything that Temporal stores of ours is encrypted, bound to its workflow, and small.

A codec turns every payload into AES-GCM ciphertext with the workflow's id as associated data, so that whoever reaches
Temporal's port can neither read a payload nor write one that we would believe, nor move one to another workflow. A
payload that fails is not an error of the task that carries it (the task would be retried for ever): it is marked, and
the mark becomes a non-retryable error where its value is asked for. A forged start fails at once, a forged signal is
dropped, a forged update or query is answered with the error, and the workflow lives on.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    PayloadCodec,
    PayloadConverter,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from temporalio.exceptions import ApplicationError

from perdure.contracts.base import MAX_PAYLOAD_BYTES
from perdure.errors import SetupError
from perdure.runtime.payload_keys import PayloadKeys, load_keys, make_key

ENCRYPTED = b"binary/perdure-aes-gcm"
REFUSED = b"binary/perdure-refused"
KEY_METADATA = "perdure-key"
NONCE_BYTES = 12

MAX_VALUE_BYTES = MAX_PAYLOAD_BYTES - 256
"""Limit of a value before encryption; the rest is for nonce, tag and metadata: what is stored keeps to 16 KB."""

MAX_MESSAGE_BYTES = 2000
MAX_STACK_BYTES = 1200
"""The server drops a pending activity's encoded failure above 4 KB altogether, so ours stay below."""

_PREFIX = b"perdure.payload/1\0"


class EncryptingCodec(PayloadCodec, WithSerializationContext):
    """AES-GCM over whole payloads; the key's id in the metadata, the workflow's id as associated data."""

    def __init__(self, keys: PayloadKeys, workflow_id: str = "") -> None:
        self._keys = keys
        self._ciphers = {name: AESGCM(key) for name, key in keys.by_id.items()}
        self._workflow_id = workflow_id

    def with_context(self, context: SerializationContext) -> Self:
        """Return a codec bound to the workflow of ``context``."""
        bound = type(self).__new__(type(self))
        bound._keys, bound._ciphers = self._keys, self._ciphers
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
            SetupError: encrypted with a key that this process does not hold: the task waits for a process that does.
        """
        return [self._open(payload) for payload in payloads]

    def _seal(self, payload: Payload) -> Payload:
        nonce = os.urandom(NONCE_BYTES)
        name = self._keys.current
        sealed = self._ciphers[name].encrypt(nonce, payload.SerializeToString(), self._bound_to(name))
        return Payload(metadata={"encoding": ENCRYPTED, KEY_METADATA: name.encode()}, data=nonce + sealed)

    def _open(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCRYPTED:
            return _refused("is not encrypted")
        name = payload.metadata.get(KEY_METADATA, b"").decode("ascii", "replace")
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise SetupError(
                f"A payload of {self._workflow_id!r} is encrypted with key {name!r}; this process holds "
                f"{', '.join(sorted(self._ciphers))}. Copy the installation's keys/payload.key to this worker."
            )
        try:
            opened = cipher.decrypt(payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:], self._bound_to(name))
        except (InvalidTag, ValueError):
            return _refused("was changed, or written for another workflow")
        return Payload.FromString(opened)

    def _bound_to(self, key_name: str) -> bytes:
        return _PREFIX + key_name.encode() + b"\0" + self._workflow_id.encode()


def _workflow_of(context: SerializationContext) -> str:
    if isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
        return context.workflow_id or ""
    return ""


def _refused(why: str) -> Payload:
    return Payload(metadata={"encoding": REFUSED}, data=why.encode())


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
        """Convert.

        Raises:
            ApplicationError: type ``Tampered``, not retryable: a payload was not written here for this workflow.
        """
        for payload in payloads:
            if payload.metadata.get("encoding") == REFUSED:
                raise ApplicationError(
                    f"A payload {payload.data.decode('ascii', 'replace')}; it was not written by this installation "
                    "for this workflow and is refused.",
                    type="Tampered",
                    non_retryable=True,
                )
        return super().from_payloads(payloads, type_hints)


class BoundedFailureConverter(DefaultFailureConverterWithEncodedAttributes):
    """Failures whose text is encrypted, and cut before it would be too large to be told."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """Convert; never raises for size, since a failure that cannot be told is retried for ever."""
        try:
            super().to_failure(exception, _Cutting(payload_converter), failure)
        except ApplicationError:
            # Only details can still be too large; the message and the type are what a person needs.
            bare = ApplicationError(str(exception), type=type(exception).__name__, non_retryable=_is_final(exception))
            if isinstance(exception, ApplicationError):
                bare = ApplicationError(exception.message, type=exception.type, non_retryable=exception.non_retryable)
            failure.Clear()
            super().to_failure(bare, _Cutting(payload_converter), failure)


def _is_final(exception: BaseException) -> bool:
    return isinstance(exception, ApplicationError) and exception.non_retryable


class _Cutting(PayloadConverter):
    """Cuts the message and stack of a failure's encoded attributes; everything else passes."""

    def __init__(self, inner: PayloadConverter) -> None:
        self._inner = inner

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        return self._inner.to_payloads([_cut_attributes(value) for value in values])

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        return self._inner.from_payloads(payloads, type_hints)


def _cut_attributes(value: Any) -> Any:
    if not isinstance(value, dict) or value.keys() != {"message", "stack_trace"}:
        return value
    return {
        "message": _cut(str(value["message"]), MAX_MESSAGE_BYTES, keep_end=False),
        "stack_trace": _cut(str(value["stack_trace"]), MAX_STACK_BYTES, keep_end=True),
    }


def _cut(text: str, limit: int, *, keep_end: bool) -> str:
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode("utf-8")
    if keep_end:
        return "… " + raw[-limit:].decode("utf-8", "ignore")
    return raw[:limit].decode("utf-8", "ignore") + " …"


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
    return dataclasses.replace(
        DataConverter.default,
        payload_converter_class=BoundedPayloadConverter,
        payload_codec=EncryptingCodec(keys),
        failure_converter_class=BoundedFailureConverter,
    )
