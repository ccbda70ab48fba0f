"""The search itself, in a process of its own: a pattern that never ends is ended with it.

Reads one JSON object from stdin and writes lines of text. Imports little: it is started for every search.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perdure.errors import UserError
from perdure.policy.patterns import glob_matches
from perdure.workspace.reading import Found, find_entry, open_file, walk

MOST_SEEN = 200_000
LARGEST_BYTES = 16 << 20
"""Larger files are passed over, and counted."""
LONGEST_LINE = 300
MEMORY_BYTES = 2 << 30

NOTE = "\0"
"""No path begins so."""

NOT_A_PATTERN = 3
"""Exit code; stderr says what is wrong with it."""


def search(asked: dict[str, Any]) -> Iterator[str]:
    """Give a line for each match: ``path:number:text``; notes begin with :data:`NOTE`."""
    flags = re.IGNORECASE if asked["ignore_case"] else 0
    pattern = re.compile(re.escape(asked["pattern"]) if asked["literal"] else asked["pattern"], flags)
    left, passed = asked["most"], 0
    root, within = Path(asked["root"]), os.fsencode(asked["within"])
    for found in _files(root, within):
        if found.kind == "cut":
            yield f"{NOTE}only the first {MOST_SEEN} entries were looked at"
        if found.kind != "file" or not _is_wanted(found.path, within, asked["paths"]):
            continue
        if found.size > LARGEST_BYTES:
            passed += 1
            continue
        for line in _search_file(root, found.path, pattern):
            if left == 0:
                yield f"{NOTE}more than {asked['most']} matches; the rest is not shown. Search more narrowly."
                return
            left -= 1
            yield line
    if passed:
        yield f"{NOTE}{passed} files larger than {LARGEST_BYTES >> 20} MB were passed over; search them with a command"


def _files(root: Path, within: bytes) -> Iterator[Found]:
    entry = find_entry(root, within) if within not in (b"", b".") else None
    if entry is not None and entry.kind == "file":
        yield entry
    else:
        yield from walk(root, within, most=MOST_SEEN)


def _is_wanted(path: bytes, within: bytes, glob: str) -> bool:
    """Whether a path matches, seen from the folder that is searched; a file that was named itself does."""
    if path == within:
        return True
    inner = path[len(within) + 1 :] if within else path
    return glob_matches(glob, inner.decode("utf-8", "surrogateescape"))


def _search_file(root: Path, path: bytes, pattern: re.Pattern[str]) -> Iterator[str]:
    try:
        with open_file(root, path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except UserError:
        return  # gone, or no longer a plain file
    if b"\0" in data[:8192]:
        return
    shown = path.decode("utf-8", "replace")
    for number, line in enumerate(data.decode("utf-8", "surrogateescape").split("\n"), 1):
        match = pattern.search(line)
        if match:
            yield f"{shown}:{number}:{_cut(line, match.start())}"


def _cut(line: str, at: int) -> str:
    """A long line around its match."""
    if len(line) <= LONGEST_LINE:
        return line.removesuffix("\r")
    start = max(0, at - LONGEST_LINE // 3)
    return f"…{line[start : start + LONGEST_LINE]}…"


def main() -> int:
    """Search as stdin says."""
    asked = json.loads(sys.stdin.read())
    resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"] + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        for line in search(asked):
            sys.stdout.buffer.write(line.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n")
    except (re.error, UserError, OverflowError, RecursionError, MemoryError) as error:
        sys.stderr.write(str(error) or "the pattern is too large")
        return NOT_A_PATTERN
    return 0


if __name__ == "__main__":
    sys.exit(main())
