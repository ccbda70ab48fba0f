"""What the tests of the house share."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tracked_files() -> list[Path]:
    """Every file that git tracks, relative to the root, sorted. Read from git, so that no leftover counts."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True)
    return sorted(Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())


def text_of(path: Path) -> str:
    """The text of a file beneath the root; bytes that are no UTF-8 are replaced."""
    return (ROOT / path).read_text("utf-8", errors="replace")
