"""Where the one-line strings of a TOML document stand in its text. Values come from ``tomllib``; this only finds them.

A key is found by the document's structure (tables, dotted keys, inline tables; strings, arrays and comments are walked
over), so text that merely looks like the key is never met.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import Any

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_INLINE_BLANK = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_LONG_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}(?!")|\'\'\'.*?\'{3,5}(?!\')', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}\r\n#]+")

_ELEMENT = "[]"


@dataclass(frozen=True)
class StringSpan:
    """A one-line string value: where its text stands between the quotes."""

    path: tuple[str, ...]
    start: int
    end: int


def load_toml(text: str) -> dict[str, Any]:
    """Parse a document. Raises ``ValueError`` saying where it is wrong."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def find_string(text: str, path: tuple[str, ...]) -> StringSpan | None:
    """Return where the string at ``path`` stands in a valid document; ``None``: absent, or no one-line string."""
    return next((span for span in find_strings(text) if span.path == path), None)


def find_strings(text: str) -> list[StringSpan]:
    """Return every one-line string value, in the order of the text. ``text`` is valid TOML.

    In a path, ``[n]`` is the n-th table of an array of tables, and ``[]`` any element of an array.
    """
    walker = _Walker(text)
    walker.walk_document()
    return walker.spans


class _Walker:
    """One walk over a document that ``tomllib`` has accepted: it need not judge, only keep its place."""

    def __init__(self, text: str) -> None:
        self.spans: list[StringSpan] = []
        self._text = text
        self._at = 0
        self._elements: Counter[tuple[str, ...]] = Counter()

    def walk_document(self) -> None:
        table: tuple[str, ...] = ()
        self._take(_BLANK)
        while self._at < len(self._text):
            if self._sees("["):
                table = self._walk_header()
            else:
                self._walk_pair(table)
            self._take(_BLANK)

    def _walk_header(self) -> tuple[str, ...]:
        is_array = self._sees("[[")
        self._at += 1 + is_array
        key = self._read_key()
        self._at += 1 + is_array
        # An element of an array of tables is never what a single path names.
        self._elements[key] += is_array
        return (*key, f"[{self._elements[key] - 1}]") if is_array else self._enter_elements(key)

    def _enter_elements(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """A table beneath an array of tables belongs to the array's newest element."""
        for length in range(len(key) - 1, 0, -1):
            if self._elements[key[:length]]:
                return (*key[:length], f"[{self._elements[key[:length]] - 1}]", *key[length:])
        return key

    def _walk_pair(self, table: tuple[str, ...]) -> None:
        key = self._read_key()
        self._at += 1  # the equals sign
        self._take(_INLINE_BLANK)
        self._walk_value((*table, *key))

    def _walk_value(self, path: tuple[str, ...]) -> None:
        if self._sees('"""') or self._sees("'''"):
            self._take(_LONG_STRING)
        elif self._sees('"') or self._sees("'"):
            start = self._at
            self._take(_STRING)
            self.spans.append(StringSpan(path, start + 1, self._at - 1))
        elif self._sees("["):
            self._walk_members("]", (*path, _ELEMENT))
        elif self._sees("{"):
            self._walk_members("}", path)
        else:
            self._take(_SCALAR)

    def _walk_members(self, closing: str, path: tuple[str, ...]) -> None:
        self._at += 1
        self._take(_BLANK)
        while not self._sees(closing):
            if closing == "}":
                self._walk_pair(path)
            else:
                self._walk_value(path)
            self._take(_BLANK)
            self._at += self._sees(",")
            self._take(_BLANK)
        self._at += 1

    def _read_key(self) -> tuple[str, ...]:
        """Read a dotted key and the blanks behind it."""
        parts: list[str] = []
        while not parts or self._sees("."):
            self._at += bool(parts)
            self._take(_INLINE_BLANK)
            is_quoted = self._sees('"') or self._sees("'")
            raw = self._take(_STRING if is_quoted else _BARE_KEY)
            # Quoted keys may hold escapes; tomllib knows them all.
            parts.append(str(tomllib.loads(f"k = {raw}")["k"]) if is_quoted else raw)
            self._take(_INLINE_BLANK)
        return tuple(parts)

    def _sees(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise ValueError(f"unexpected text at character {self._at}: {self._text[self._at : self._at + 20]!r}")
        self._at = match.end()
        return match[0]
