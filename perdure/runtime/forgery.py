"""What becomes of a payload that is not ours: the codec marks it, the converters turn the mark into an error."""

from __future__ import annotations

from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError

REFUSED = b"binary/perdure-refused"
UNKNOWN_KEY = b"binary/perdure-unknown-key"

FORGED = "Forged"
"""Type of the error that stands for what somebody else wrote."""


class MissingKey(Exception):
    """A payload is under a key that is not ours. Fails the task that needs it, never the workflow: it may be theirs."""


def mark_refused(why: str) -> Payload:
    """Stands for a payload that was not written here, or for another workflow."""
    return Payload(metadata={"encoding": REFUSED}, data=why.encode())


def mark_unknown(why: str) -> Payload:
    """Stands for a payload under a key that nobody here knows."""
    return Payload(metadata={"encoding": UNKNOWN_KEY}, data=why.encode())


def is_marked(payload: Payload) -> bool:
    """Whether the codec refused it."""
    return payload.metadata.get("encoding") in (REFUSED, UNKNOWN_KEY)


def raise_marked(payload: Payload) -> None:
    """Raise for a payload that the codec refused.

    Raises:
        ApplicationError: type ``Forged``, not retryable.
        MissingKey: it is under a key that nobody here knows.
    """
    encoding = payload.metadata.get("encoding")
    said = f"A payload {payload.data.decode('utf-8', 'replace')}"
    if encoding == UNKNOWN_KEY:
        raise MissingKey(f"{said}.")
    if encoding == REFUSED:
        raise forgery(f"{said}; it was not written by this installation for this workflow and is refused.")


def forgery(message: str) -> ApplicationError:
    """The error that stands for what somebody else wrote."""
    return ApplicationError(message, type=FORGED, non_retryable=True)
