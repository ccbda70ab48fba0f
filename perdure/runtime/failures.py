"""Failures as Temporal stores them: their text sealed like any payload, short enough to be told, and ours."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import (
    ActivitySerializationContext,
    DefaultFailureConverterWithEncodedAttributes,
    PayloadConverter,
    SerializationContext,
    WithSerializationContext,
)
from temporalio.exceptions import ApplicationError

from perdure.runtime.forgery import MissingKey, forgery, is_marked

MAX_MESSAGE_BYTES = 2000
MAX_STACK_BYTES = 1200
"""The server drops a pending activity's encoded failure above 4 KB altogether, so ours stay below."""


class BoundedFailureConverter(DefaultFailureConverterWithEncodedAttributes, WithSerializationContext):
    """Failures whose text is encrypted, and cut before it would be too large to be told.

    A failure of an activity needs no payload, so anybody could report one. Ours carry their text encrypted: one that
    does not was not reported by a worker of ours.
    """

    _of_activity = False

    def with_context(self, context: SerializationContext) -> Self:
        """Return a converter that knows whether it reads an activity's failures."""
        bound = copy.copy(self)
        bound._of_activity = isinstance(context, ActivitySerializationContext)
        return bound

    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException:
        """Convert; what claims to come from an activity and is not sealed becomes an error of type ``Forged``."""
        if self._of_activity and failure.HasField("application_failure_info") and not _is_sealed(failure):
            return forgery("The failure of an activity was not reported by a worker of this installation.")
        try:
            return super().from_failure(failure, payload_converter)
        except (ApplicationError, MissingKey) as error:  # its details are not ours
            if not self._of_activity:
                raise
            return forgery(str(error))

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


def _is_sealed(failure: Failure) -> bool:
    return failure.HasField("encoded_attributes") and not is_marked(failure.encoded_attributes)


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
