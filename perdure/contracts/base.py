"""What every contract shares: frozen, closed, plain JSON."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

JsonDict = dict[str, Any]
"""An object of plain JSON values: str, int, bool, None, lists and objects. No floats in anything that is hashed."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 in 64 lower-case hex digits. People type its first eight."""

UtcTime = Annotated[AwareDatetime, AfterValidator(lambda value: value)]
"""A time with a zone; written in UTC."""

MAX_PAYLOAD_BYTES = 16 * 1024
"""No Temporal payload of ours is larger (design rule, checked before scheduling)."""

_BASE64_MARK = "base64:"


class Contract(BaseModel):
    """One model in, one model out over every boundary, so that fields can be added."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    """Schemas are built when first used (by one thread: pydantic 2.14 holds a lock): a fifth of a worker's imports."""


class Forged(Contract):
    """Stands for an answer that no worker of this installation gave. Who asked may ask again."""

    forged: str
    """Why it is not believed; for the log."""


class BlobRef(Contract):
    """Where bytes lie in the blob store."""

    sha256: Digest
    size_bytes: int = Field(ge=0)


def path_text(path: bytes) -> str:
    """Return a path as JSON text: itself when UTF-8, else ``base64:`` and its bytes. Inverse of :func:`path_bytes`."""
    try:
        text = path.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and not text.startswith(_BASE64_MARK):
        return text
    return _BASE64_MARK + base64.b64encode(path).decode("ascii")


def path_bytes(text: str) -> bytes:
    """Return the bytes of a path written by :func:`path_text`."""
    if text.startswith(_BASE64_MARK):
        return base64.b64decode(text[len(_BASE64_MARK) :], validate=True)
    return text.encode("utf-8")
