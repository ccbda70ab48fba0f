"""What a model sees of a tool's output: all of a short one; of a long one head, tail and how to read the middle."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from perdure.contracts.agent import ToolOutcome, ToolSpec
from perdure.contracts.agent_ports import ToolContext
from perdure.contracts.base import BlobRef
from perdure.contracts.messages import OutcomeStatus
from perdure.errors import NotFound, Tampered, ToolFault
from perdure.tools.base import Arguments, make_tool

TAIL_SHARE = 2
"""The tail gets one part in so many of the room: ends of outputs say how it went."""
READ_BYTES = 12_000
_SUMMARY = 300


def give(
    spec: ToolSpec,
    context: ToolContext,
    data: bytes,
    *,
    summary: str = "",
    head: str = "",
    status: OutcomeStatus = "ok",
    **fields: Any,
) -> ToolOutcome:
    """Return an outcome of output bytes; one longer than the tool's limit lies whole in a blob.

    ``head`` is a line of ours that stands before the output. Bytes that are no UTF-8 are shown replaced; control signs
    that could steer a terminal are the reader's business.
    """
    limit = max(0, spec.output_limit_bytes - len(head.encode()) - 1)
    blob = None
    shown = data.decode("utf-8", "replace")
    if len(shown.encode()) > limit:
        blob = context.blobs.put(data)
        shown = cut(data, limit, blob)
    text = f"{head}\n{shown}" if head and shown else head or shown
    return ToolOutcome(status=status, text=text, blob=blob, summary=summary[:_SUMMARY], **fields)


def cut(data: bytes, limit: int, blob: BlobRef) -> str:
    """Return head and tail of ``data`` in at most ``limit`` bytes, cut at line ends where they are near."""
    name = name_of(blob)
    # As long as it can get: the numbers are not known yet.
    room = limit - len(_gap(name, len(data), 2 * len(data)).encode())
    if room <= 0:
        return _gap(name, 0, len(data)).strip().encode()[:limit].decode("utf-8", "ignore")
    tail = room // TAIL_SHARE
    first = _fit(data, room - tail, from_end=False)
    last = max(first, _fit(data, tail, from_end=True))
    shown = [piece.decode("utf-8", "replace") for piece in (data[:first], data[last:])]
    return shown[0] + _gap(name, first, last) + shown[1]


def _fit(data: bytes, limit: int, *, from_end: bool) -> int:
    """Where a piece ends, or begins, whose text takes at most ``limit`` bytes: a byte that is replaced takes three."""
    size = min(limit, len(data))
    while True:
        place = _cut_start(data, len(data) - size) if from_end else _cut_end(data, size)
        piece = data[place:] if from_end else data[:place]
        if len(piece.decode("utf-8", "replace").encode()) <= limit:
            return place
        size = size * 2 // 3


def name_of(blob: BlobRef) -> str:
    """How an output is called: ``<sha256>/<size>``."""
    return f"{blob.sha256}/{blob.size_bytes}"


def parse_name(name: str) -> BlobRef:
    """Read what :func:`name_of` wrote. Raises ``ToolFault``."""
    digest, _, size = name.partition("/")
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef") or not size.isascii() or not size.isdigit():
        raise ToolFault(f"{name[:80]!r} names no output; copy the name from the line that says what was cut.")
    return BlobRef(sha256=digest, size_bytes=int(size))


def _gap(name: str, first: int, last: int) -> str:
    return f"\n[… {last - first} bytes are not shown here; read on with output.read, output={name}, offset={first} …]\n"


def _cut_end(data: bytes, end: int) -> int:
    """A little earlier, behind the last line end, or where a character begins."""
    line = data.rfind(b"\n", max(0, end - 200), end)
    return line + 1 if line >= 0 else _to_character(data, end, -1)


def _cut_start(data: bytes, start: int) -> int:
    line = data.find(b"\n", start, start + 200)
    return line + 1 if line >= 0 else _to_character(data, start, 1)


def _to_character(data: bytes, place: int, step: int) -> int:
    """The nearest place, back or on, that does not part a character."""
    for at in range(place, place + 4 * step, step):
        if not 0 < at < len(data) or data[at] & 0xC0 != 0x80:
            return max(0, min(at, len(data)))
    return place


class ReadOutput(Arguments):
    """Arguments of ``output.read``."""

    output: str = Field(description="Its name, as the line says that tells what was cut.")
    offset: int = Field(default=0, ge=0, description="First byte.")
    size: int = Field(default=READ_BYTES, ge=1, le=READ_BYTES, description="How many bytes.")


def read_output(arguments: ReadOutput, context: ToolContext) -> ToolOutcome:
    """Give a piece of an output that was too long to be shown whole."""
    ref = parse_name(arguments.output)
    try:
        data = context.blobs.get(ref)
    except (NotFound, Tampered) as error:
        raise ToolFault(f"There is no output {arguments.output[:12]}…: {error.message}") from None
    piece = data[arguments.offset : arguments.offset + arguments.size]
    end = arguments.offset + len(piece)
    rest = f"; {len(data) - end} follow, offset={end}" if end < len(data) else "; the end"
    head = f"[bytes {arguments.offset} to {end} of {len(data)}{rest}]"
    return give(OUTPUT.spec, context, piece, head=head, summary=f"{len(piece)} bytes of an output")


OUTPUT = make_tool(
    "output.read",
    ReadOutput,
    read_output,
    touch=lambda arguments: f"output:{arguments.output[:12]}",
    about="Read a piece of an earlier output that was too long to be shown whole.",
    effect_class="read",
    may_repeat=True,
    output_limit_bytes=4 * READ_BYTES,
)
