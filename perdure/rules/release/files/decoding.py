"""Bytes to text and back, by what the file says of its own encoding; only what comes back the same is taken."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from typing import Literal

from perdure.errors import UserError

Encoding = Literal["utf-8", "text", "python", "xml"]
"""How a format says its encoding: always UTF-8, a byte-order mark, Python's coding line, XML's declaration."""

_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARATION = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")


def decode(data: bytes, kind: Encoding, path: str) -> tuple[str, str]:
    """Return (text, encoding); ``text.encode(encoding) == data``, a byte-order mark is the text's first character.

    Raises:
        UserError: the bytes are not what the file says, or the encoding is not known.
    """
    encoding = "utf-8" if kind == "utf-8" else _find_encoding(data, kind)
    try:
        text = data.decode(encoding)
        if text.encode(encoding) != data:
            raise ValueError("it does not come back the same")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not {encoding.upper()} (byte {error.start}). Convert it and commit it.") from None
    except (LookupError, ValueError) as error:
        raise UserError(f"{path} cannot be read as {encoding} ({error}). Convert it to UTF-8 and commit it.") from None
    return text, encoding


def _find_encoding(data: bytes, kind: Encoding) -> str:
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    if marked:
        return marked
    declared = _DECLARATION.match(data.removeprefix(codecs.BOM_UTF8)) if kind == "xml" else None
    if declared:
        return declared[1].decode("ascii").lower()
    return _python_encoding(data) if kind == "python" else "utf-8"


def _python_encoding(data: bytes) -> str:
    """Python's own rule: a coding line among the first two."""
    try:
        found = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError:
        return "utf-8"
    # The mark is kept as a character.
    return found.removesuffix("-sig")
