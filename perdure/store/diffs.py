"""The whole unified diff of changed files, computed from blobs: never cut, nothing of a repository consulted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from perdure.contracts.base import BlobRef, path_bytes
from perdure.contracts.plan import FileChange
from perdure.contracts.visible import visible, visible_bytes
from perdure.errors import StageFailed
from perdure.policy.hazards import SUBMODULE, ReadBlob, is_binary
from perdure.scratch import scratch_folder
from perdure.workspace.git_process import git_environment, git_program, run_plain

_LIMIT = timedelta(minutes=2)

_FILE_HEADER = re.compile(rb"^diff --git a/old/(\d+) b/new/\1$", re.MULTILINE)
"""Stands at the start of a line only between files: a line inside a hunk begins with blank, +, -, @ or a backslash."""


@dataclass(frozen=True)
class Diff:
    """A diff and its measure."""

    text: str
    """Invisible characters are visible; ends with a newline unless empty."""
    files: int
    added: int
    """Lines; a binary counts none."""
    removed: int


def diff_changes(changes: Sequence[FileChange], read: ReadBlob) -> Diff:
    """Return the unified diff of all changes, sorted by path.

    Files lie under numbers in a folder of ours while git compares them, so that neither their names nor an attribute
    file among them can steer it. ``read`` gives a blob's bytes.

    Raises:
        StageFailed: git failed, or did not end within two minutes.
    """
    ordered = sorted(changes, key=lambda change: path_bytes(change.path))
    if not ordered:
        return Diff("", 0, 0, 0)
    hunks = _compare(ordered, read)
    texts, added, removed = [], 0, 0
    for number, change in enumerate(ordered):
        body = hunks.get(number, b"")
        texts.append(_render_file(change, body, read))
        added += _count(body, b"+")
        removed += _count(body, b"-")
    return Diff("".join(texts), len(ordered), added, removed)


def _compare(changes: Sequence[FileChange], read: ReadBlob) -> dict[int, bytes]:
    """Hunks by the number of the change; absent where content is equal, binary or a submodule's."""
    with scratch_folder("diff") as folder:
        for side, refs in (("old", [c.old for c in changes]), ("new", [c.new for c in changes])):
            (folder / side).mkdir()
            for number, ref in enumerate(refs):
                _lay_out(folder / side / str(number), ref, changes[number], read)
        output = _run_diff(folder)
    pieces = _FILE_HEADER.split(output)
    return {int(number): _only_hunks(text) for number, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def _lay_out(place: Path, ref: BlobRef | None, change: FileChange, read: ReadBlob) -> None:
    """Write one side; an absent side is an empty file, so that git pairs the numbers."""
    place.write_bytes(read(ref) if ref and SUBMODULE not in {change.old_mode, change.new_mode} else b"")


def _run_diff(folder: Path) -> bytes:
    argv = [git_program(), "--no-pager", "-c", "core.attributesFile=/dev/null", "-c", "core.quotePath=true"]
    argv += ["diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--unified=3"]
    argv += ["--src-prefix=a/", "--dst-prefix=b/", "--", "old", "new"]
    env = git_environment({"GIT_CEILING_DIRECTORIES": str(folder.parent)})
    code, output, said = run_plain(argv, stdin=b"", env=env, cwd=folder, limit=_LIMIT)
    if code not in {0, 1}:
        raise StageFailed(
            f"The diff cannot be computed: git says {visible_bytes(said.strip())!r}. Nothing was decided."
        )
    return output


def _only_hunks(text: bytes) -> bytes:
    """What stands behind git's own header lines; empty for a binary."""
    start = text.find(b"\n@@ ")
    return text[start + 1 :] if start >= 0 else b""


def _count(hunks: bytes, sign: bytes) -> int:
    return hunks.count(b"\n" + sign)


def _render_file(change: FileChange, hunks: bytes, read: ReadBlob) -> str:
    name = visible_bytes(path_bytes(change.path))
    lines = [f"diff --git a/{name} b/{name}", *_mode_lines(change)]
    if SUBMODULE in {change.old_mode, change.new_mode}:
        lines += [f"Submodule {name}: {_measure(change.old)} → {_measure(change.new)}"]
    elif hunks:
        lines += [f"--- {'a/' + name if change.old else '/dev/null'}"]
        lines += [f"+++ {'b/' + name if change.new else '/dev/null'}"]
        return "\n".join(lines) + "\n" + visible_bytes(hunks, keep_lines=True)
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
