"""``files.read``: a range of a file's lines or bytes, however large the file is."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pydantic import Field

from perdure.contracts.agent import ToolOutcome
from perdure.contracts.agent_ports import ToolContext
from perdure.errors import ToolFault
from perdure.tools.base import Arguments, make_tool
from perdure.tools.places import explained, place_of, target_of, workspace_of
from perdure.workspace.reading import open_file

LINES = 2000
LIMIT_BYTES = 30_000
SCANNED_BYTES = 256 << 20
"""Bytes that are read to find a line."""
_CHUNK = 1 << 20


class ReadFile(Arguments):
    """Arguments of ``files.read``."""

    path: str = Field(description="In the workspace, relative.")
    start: int = Field(default=1, ge=1, description="First line, from 1.")
    lines: int = Field(default=LINES, ge=1, le=LINES, description="How many lines at most.")
    offset: int | None = Field(
        default=None, ge=0, description="Instead of `start`: first byte; for files with very long lines."
    )


@dataclass(frozen=True)
class _Piece:
    """What was read: ``data`` begins at byte ``offset``."""

    data: bytes
    offset: int
    size: int
    """Of the whole file."""


def read_file(arguments: ReadFile, context: ToolContext) -> ToolOutcome:
    """Give a range of a text file; of a binary one say what it is."""
    place = place_of(arguments.path)
    with explained(), open_file(workspace_of(context), place) as descriptor:
        size = os.fstat(descriptor).st_size
        if b"\0" in os.pread(descriptor, 8192, 0):
            return _tell_binary(arguments.path, size, os.pread(descriptor, 64, 0))
        if arguments.offset is not None:
            return _give_bytes(arguments, _Piece(_pread(descriptor, arguments.offset), arguments.offset, size))
        offset = _find_line(descriptor, arguments.start, context)
        return _give_lines(arguments, _Piece(_pread(descriptor, offset), offset, size))


def _pread(descriptor: int, offset: int) -> bytes:
    """A piece that ends with a whole character; of one that is no UTF-8 a third: each byte is shown as three."""
    data = os.pread(descriptor, LIMIT_BYTES, offset)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        is_parted = error.end == len(data) and len(data) - error.start < 4 and error.start > 0
        return data[: error.start] if is_parted else data[: LIMIT_BYTES // 3]
    return data


def _find_line(descriptor: int, line: int, context: ToolContext) -> int:
    """The byte at which a line begins. Raises ``ToolFault`` when there are fewer lines."""
    missing, offset = line - 1, 0
    while missing:
        chunk = os.pread(descriptor, _CHUNK, offset)
        if not chunk or offset >= SCANNED_BYTES or context.is_stopped():
            raise ToolFault(_too_far(line, line - 1 - missing, ended=not chunk))
        count = chunk.count(b"\n")
        if count < missing:
            missing, offset = missing - count, offset + len(chunk)
            continue
        at = -1
        for _ in range(missing):
            at = chunk.index(b"\n", at + 1)
        return offset + at + 1
    return offset


def _too_far(line: int, seen: int, *, ended: bool) -> str:
    if ended:
        return f"There is no line {line}; the file has {seen} line ends. Read from an earlier line."
    return (
        f"Line {line} lies more than {SCANNED_BYTES >> 20} MB into the file. Give `offset` in bytes instead of `start`."
    )


def _give_lines(arguments: ReadFile, piece: _Piece) -> ToolOutcome:
    found = piece.data.split(b"\n", arguments.lines)
    whole = found[: arguments.lines]
    end = piece.offset + min(len(piece.data), sum(len(line) + 1 for line in whole))
    is_cut = end == piece.offset + len(piece.data) and end < piece.size and not piece.data.endswith(b"\n")
    if is_cut and len(whole) > 1:
        end -= len(whole.pop())  # the last line did not fit whole
    elif is_cut:
        return _give_bytes(arguments, piece, note=f"line {arguments.start} is longer than {LIMIT_BYTES} bytes; ")
    if whole and end == piece.size and not whole[-1]:
        whole.pop()  # what stands behind the last line end is no line
    last = arguments.start + len(whole) - 1
    rest = f"; more follows, start={last + 1}" if end < piece.size else "; the end"
    return _give(arguments, piece.data[: end - piece.offset], f"lines {arguments.start} to {last}{rest}", piece.size)


def _give_bytes(arguments: ReadFile, piece: _Piece, note: str = "") -> ToolOutcome:
    end = piece.offset + len(piece.data)
    rest = f"; more follows, offset={end}" if end < piece.size else "; the end"
    return _give(arguments, piece.data, f"{note}bytes {piece.offset} to {end}{rest}", piece.size)


def _give(arguments: ReadFile, data: bytes, range_: str, size: int) -> ToolOutcome:
    try:
        text, note = data.decode("utf-8"), ""
    except UnicodeDecodeError:
        text, note = data.decode("utf-8", "replace"), "; not all of it is UTF-8, other bytes are shown as �"
    head = f"[{arguments.path}: {range_} of {size} bytes{note}]"
    return ToolOutcome(status="ok", text=f"{head}\n{text}", summary=f"{arguments.path}, {range_}"[:300])


def _tell_binary(path: str, size: int, beginning: bytes) -> ToolOutcome:
    text = f"[{path}: {size} bytes, binary; it begins with {beginning[:32].hex(' ')}]"
    return ToolOutcome(status="ok", text=text, summary=f"{path} is binary"[:300])


READ = make_tool(
    "files.read",
    ReadFile,
    read_file,
    touch=lambda arguments: target_of(arguments.path),
    about="Read a file of the workspace, or a range of its lines. Long files are given in pieces.",
    effect_class="read",
    may_repeat=True,
    output_limit_bytes=LIMIT_BYTES + 1000,
)
