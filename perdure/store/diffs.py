"""The whole unified diff of changed files, computed from blobs: never cut, nothing of a repository consulted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

from perdure.contracts.base import BlobRef, path_bytes
from perdure.contracts.plan import FileChange
from perdure.contracts.visible import visible, visible_bytes
from perdure.errors import StageFailed
from perdure.policy.hazards import SUBMODULE, ReadBlob, is_binary
from perdure.scratch import scratch_folder
from perdure.workspace.git_process import git_environment, git_program, run_plain

_LIMIT = timedelta(minutes=2)

_GROUP_BYTES, _GROUP_FILES = 1 << 20, 256
_CHUNK_BYTES = 1 << 16

_FILE_HEADER = re.compile(rb"^diff --git a/old/(\d+) b/new/\1$", re.MULTILINE)
"""Stands at the start of a line only between files: a line inside a hunk begins with blank, +, -, @ or a backslash."""


@dataclass(frozen=True)
class Diff:
    """A diff and its measure."""

    text: str
    """Invisible characters are visible; ends with a newline unless empty. Empty when larger than what was asked for."""
    size_bytes: int
    """Of the whole text in UTF-8, also when ``text`` was left out."""
    files: int
    added: int
    """Lines; a binary counts none."""
    removed: int


@dataclass(frozen=True)
class Piece:
    """A part of a diff: whole lines."""

    text: str
    added: int = 0
    removed: int = 0


def diff_changes(changes: Sequence[FileChange], read: ReadBlob, *, most_bytes: int | None = None) -> Diff:
    """Return the unified diff of all changes, sorted by path; measured only, when larger than ``most_bytes``.

    Raises like :func:`stream_changes`.
    """
    texts: list[str] = []
    size = added = removed = 0
    for piece in stream_changes(changes, read):
        size, added, removed = size + len(piece.text.encode()), added + piece.added, removed + piece.removed
        texts.append(piece.text)
        if most_bytes is not None and size > most_bytes:
            texts.clear()
    return Diff("".join(texts), size, len(changes), added, removed)


def stream_changes(changes: Sequence[FileChange], read: ReadBlob) -> Iterator[Piece]:
    """Give the unified diff piece by piece, sorted by path: never more of it in memory than a few large files.

    Files lie under numbers in a folder of ours while git compares them, so that neither their names nor an attribute
    file among them can steer it. ``read`` gives a blob's bytes.

    Raises:
        StageFailed: git failed, or did not end within two minutes.
    """
    ordered = sorted(changes, key=lambda change: path_bytes(change.path))
    for group in _grouped(ordered):
        if len(group) == 1:
            yield from _stream_file(group[0], read)
            continue
        hunks = _compare(group, read)
        for number, change in enumerate(group):
            body = hunks.get(number, b"")
            text = _render_head(change, read, has_hunks=bool(body)) + visible_bytes(body, keep_lines=True)
            yield Piece(text, _count(body, b"+"), _count(body, b"-"))


def _grouped(changes: Sequence[FileChange]) -> Iterator[list[FileChange]]:
    """Small files together, for one git costs 4 ms; a large one alone."""
    group: list[FileChange] = []
    size = 0
    for change in changes:
        own = sum(ref.size_bytes for ref in (change.old, change.new) if ref)
        if group and (size + own > _GROUP_BYTES or len(group) == _GROUP_FILES):
            yield group
            group, size = [], 0
        group.append(change)
        size += own
    if group:
        yield group


def _stream_file(change: FileChange, read: ReadBlob) -> Iterator[Piece]:
    with _compared([change], read) as output:
        line = output.readline()
        while line and not line.startswith(b"@@ "):
            line = output.readline()
        yield Piece(_render_head(change, read, has_hunks=bool(line)))
        lines = [line] if line else []
        while lines:
            added, removed = (sum(one.startswith(sign) for one in lines) for sign in (b"+", b"-"))
            yield Piece(visible_bytes(b"".join(lines), keep_lines=True), added, removed)
            lines = output.readlines(_CHUNK_BYTES)


def _compare(changes: Sequence[FileChange], read: ReadBlob) -> dict[int, bytes]:
    """Hunks by the number of the change; absent where content is equal, binary or a submodule's."""
    with _compared(changes, read) as output:
        pieces = _FILE_HEADER.split(output.read())
    return {int(number): _only_hunks(text) for number, text in zip(pieces[1::2], pieces[2::2], strict=True)}


@contextmanager
def _compared(changes: Sequence[FileChange], read: ReadBlob) -> Iterator[BinaryIO]:
    """Give what git says about the changes, from a file: it may be larger than the memory that it should take."""
    with scratch_folder("diff") as folder:
        for side, refs in (("old", [c.old for c in changes]), ("new", [c.new for c in changes])):
            (folder / side).mkdir()
            for number, ref in enumerate(refs):
                _lay_out(folder / side / str(number), ref, changes[number], read)
        _run_diff(folder)
        with (folder / "said").open("rb") as output:
            yield output


def _lay_out(place: Path, ref: BlobRef | None, change: FileChange, read: ReadBlob) -> None:
    """Write one side; an absent side is an empty file, so that git pairs the numbers."""
    place.write_bytes(read(ref) if ref and SUBMODULE not in {change.old_mode, change.new_mode} else b"")


def _run_diff(folder: Path) -> None:
    """Write git's output to the file ``said``."""
    argv = [git_program(), "--no-pager", "-c", "core.attributesFile=/dev/null", "-c", "core.quotePath=true"]
    argv += ["diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--unified=3"]
    argv += ["--src-prefix=a/", "--dst-prefix=b/", "--output=said", "--", "old", "new"]
    env = git_environment({"GIT_CEILING_DIRECTORIES": str(folder.parent)})
    code, _, said = run_plain(argv, stdin=b"", env=env, cwd=folder, limit=_LIMIT)
    if code not in {0, 1}:
        raise StageFailed(
            f"The diff cannot be computed: git says {visible_bytes(said.strip())!r}. Nothing was decided."
        )


def _only_hunks(text: bytes) -> bytes:
    """What stands behind git's own header lines; empty for a binary."""
    start = text.find(b"\n@@ ")
    return text[start + 1 :] if start >= 0 else b""


def _count(hunks: bytes, sign: bytes) -> int:
    return hunks.count(b"\n" + sign)


def _render_head(change: FileChange, read: ReadBlob, *, has_hunks: bool) -> str:
    """What stands before a file's hunks; where there are none, what changed all the same."""
    name = visible_bytes(path_bytes(change.path))
    lines = [f"diff --git a/{name} b/{name}", *_mode_lines(change)]
    if SUBMODULE in {change.old_mode, change.new_mode}:
        lines += [f"Submodule {name}: {_measure(change.old)} → {_measure(change.new)}"]
    elif has_hunks:
        lines += [f"--- {'a/' + name if change.old else '/dev/null'}"]
        lines += [f"+++ {'b/' + name if change.new else '/dev/null'}"]
    elif change.old != change.new:  # binary, empty, or beyond what git compares: named exactly, never passed over
        binary = any(ref and is_binary(read(ref)) for ref in (change.old, change.new))
        lines += [f"{'Binary' if binary else 'Content'}: {_measure(change.old)} → {_measure(change.new)}"]
    return "\n".join(lines) + "\n"


def _mode_lines(change: FileChange) -> Iterator[str]:
    old, new = visible(change.old_mode), visible(change.new_mode)
    if not old and new:
        yield f"new file mode {new}"
    elif old and not new:
        yield f"deleted file mode {old}"
    elif old != new:
        yield f"old mode {old}"
        yield f"new mode {new}"


def _measure(ref: BlobRef | None) -> str:
    return f"{ref.size_bytes} bytes SHA-256 {ref.sha256}" if ref else "absent"
