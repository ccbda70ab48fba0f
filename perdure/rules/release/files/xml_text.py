"""Where the text of XML elements stands. The parser is expat, which counts bytes; this turns them into characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn
from xml.parsers import expat


@dataclass(frozen=True)
class Element:
    """An element that holds text only, as it is written (comments and references are not resolved)."""

    path: tuple[str, ...]
    """Names from the root on, without namespace prefixes."""
    text: str
    """Without blanks around it."""
    span: tuple[int, int]
    """Where that text stands."""


def find_elements(text: str) -> list[Element]:
    """Return the elements without children, in the order of the text.

    Raises:
        ValueError: it is no XML, or it declares entities (nothing here needs them, and they can be bombs).
    """
    walker = _Walker(text)
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = walker.open
    parser.EndElementHandler = walker.close
    parser.CharacterDataHandler = walker.read
    parser.EntityDeclHandler = _refuse_entities
    walker.parser = parser
    try:
        parser.Parse(walker.data, True)
    except expat.ExpatError as error:
        raise ValueError(str(error)) from None
    return walker.elements


def _refuse_entities(*facts: object) -> NoReturn:
    raise ValueError(f"it declares the entity {facts[0]!r}; expected none")


class _Walker:
    """Follows the parser's events. ``data`` is UTF-8, whatever the file was."""

    parser: expat.XMLParserType

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8")
        self.elements: list[Element] = []
        self._path: list[str] = []
        self._begin = -1
        """Byte where the text of the innermost element begins; -1: it has children or no text yet."""
        self._offset_bytes, self._offset_characters = 0, 0

    def open(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name.rpartition(":")[2])
        self._begin = -1

    def read(self, data: str) -> None:
        if self._begin < 0:
            self._begin = self.parser.CurrentByteIndex

    def close(self, name: str) -> None:
        if self._begin >= 0:
            self._add(self._begin, self.parser.CurrentByteIndex)
        self._path.pop()
        self._begin = len(self.data) + 1  # what follows a child is no text of the parent

    def _add(self, begin: int, end: int) -> None:
        raw = self.data[begin:end].decode("utf-8")
        text = raw.strip()
        if begin > end or not text:
            return
        start = self._count(begin) + len(raw) - len(raw.lstrip())
        self.elements.append(Element(tuple(self._path), text, (start, start + len(text))))

    def _count(self, byte: int) -> int:
        """Characters before a byte; bytes come in rising order."""
        self._offset_characters += len(self.data[self._offset_bytes : byte].decode("utf-8"))
        self._offset_bytes = byte
        return self._offset_characters
