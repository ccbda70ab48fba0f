"""Makes characters visible that would steer a terminal or hide from a reviewer."""

from __future__ import annotations

import re

_BLANK_LETTERS = frozenset(
    "\u034f"  # combining grapheme joiner
    "\u115f\u1160\u3164\uffa0"  # Hangul fillers: letters without ink
    "\u17b4\u17b5"  # Khmer inherent vowels
    "\u180b\u180c\u180d\u180f"  # Mongolian variation selectors
    "\u2800"  # empty Braille cell
) | frozenset(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
"""Printable for Python, invisible for people. Variation selectors can carry hidden text, one byte each."""

_IDEOGRAPHIC_SPACE = "\u3000"
"""As wide as a letter in ordinary Japanese text: nothing hides in it."""

_EMOJI_STYLE = re.compile("(?<=[©®\u2000-\u303d\U0001f000-\U0001faff])\ufe0f")
"""One selector straight behind a symbol is how ordinary emoji are written."""


class _Shown(dict[int, str]):
    """Code point → what is shown; filled as characters are met, so that ``str.translate`` stays quick."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = _show(chr(code))
        return shown


_ONE_LINE = _Shown()
_LINES = _Shown({ord("\n"): "\n", ord("\t"): "\t"})


def visible(text: str, *, keep_lines: bool = False) -> str:
    """Return ``text`` with control, bidi, zero-width, unassigned and undecodable characters written out.

    ``^[`` is an escape, ``⟨U+202E⟩`` a code point, ``⟨0xFF⟩`` a byte that was no UTF-8 (Python's surrogate escapes).
    ``keep_lines`` lets newline and tab through; else they are shown too (``^J``, ``^I``). The result is safe for a
    terminal and holds no surrogate, so it can always be encoded. Applying it twice changes nothing.
    """
    table = _LINES if keep_lines else _ONE_LINE
    if text.isascii():
        return text if text.isprintable() else text.translate(table)
    return "\ufe0f".join(part.translate(table) for part in _EMOJI_STYLE.split(text))


def visible_bytes(data: bytes, *, keep_lines: bool = False) -> str:
    """Return bytes as :func:`visible` text; what is no UTF-8 is shown byte by byte."""
    return visible(data.decode("utf-8", "surrogateescape"), keep_lines=keep_lines)


def is_invisible(char: str) -> bool:
    """Whether a single character would steer a terminal or not be seen as what it is."""
    return _show(char) != char


def _show(char: str) -> str:
    code = ord(char)
    if char == _IDEOGRAPHIC_SPACE or (char.isprintable() and char not in _BLANK_LETTERS):
        return char
    if code < 0x20 or code == 0x7F:
        return "^" + chr(code ^ 0x40)
    if 0xDC80 <= code <= 0xDCFF:
        return f"⟨0x{code - 0xDC00:02X}⟩"
    return f"⟨U+{code:04X}⟩"
