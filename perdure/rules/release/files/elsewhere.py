"""Files of a draft that still say the old version: perhaps dependencies of the same number, perhaps forgotten."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from perdure.contracts.base import JsonDict, path_text

_SIZE_LIMIT_BYTES = 1 << 20
_LINES_SHOWN = 3
_FILES_SHOWN = 20
_FOREIGN_FOLDERS = frozenset({".git", "node_modules", "vendor", "third_party", "bower_components"})
# They say old versions by their nature, or versions of others.
_FOREIGN_FILES = re.compile(
    r"(?:change(?:s|log)|history|news|releases?|release[-_]?notes)(?:\..*)?"
    r"|.*\.lock|.*-lock\.(?:json|yaml)|npm-shrinkwrap\.json|go\.sum|.*\.min\.js|.*\.svg",
    re.IGNORECASE,
)


def find_elsewhere(root: Path, folder: str, version: str) -> list[JsonDict]:
    """Return ``{path, lines}`` of the text files beneath ``folder`` that hold ``version`` on its own, sorted by path.

    ``lines`` count from 1. Changelogs, lock files, vendored folders, links and files above 1 MB are passed over.
    """
    if not version:
        return []
    wanted = re.compile(rb"(?<![0-9A-Za-z.])v?" + re.escape(version.encode()) + rb"(?![0-9A-Za-z]|[-+.!][0-9A-Za-z])")
    found = []
    for path in _walk(root / folder if folder else root):
        lines = _find_lines(path, wanted)
        if lines:
            found.append({"path": path_text(os.fsencode(path.relative_to(root))), "lines": lines})
    return sorted(found, key=lambda item: item["path"])


def tell_elsewhere(found: Sequence[JsonDict], version: str) -> list[str]:
    """Return a finding that names the files (above twenty: the first ones and how many more), or nothing."""
    if not found:
        return []
    shown = [f"{item['path']}:{_join(item['lines'])}" for item in found[:_FILES_SHOWN]]
    more = f" and {len(found) - _FILES_SHOWN} more files" if len(found) > _FILES_SHOWN else ""
    return [f"These still say {version} and were not written: {', '.join(shown)}{more}."]


def _join(lines: Sequence[int]) -> str:
    return ",".join(map(str, lines[:_LINES_SHOWN])) + (",…" if len(lines) > _LINES_SHOWN else "")


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _FOREIGN_FOLDERS]
        for name in names:
            path = Path(parent, name)
            if not _FOREIGN_FILES.fullmatch(name) and not path.is_symlink() and path.is_file():
                yield path


def _find_lines(path: Path, wanted: re.Pattern[bytes]) -> list[int]:
    if path.stat().st_size > _SIZE_LIMIT_BYTES:
        return []
    data = path.read_bytes()
    if b"\0" in data[:8000]:
        return []
    return [number for number, line in enumerate(data.split(b"\n"), start=1) if wanted.search(line)]
