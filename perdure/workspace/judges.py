"""Files that judge: put back as they were before somebody's work is judged by them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from perdure.contracts.base import path_bytes
from perdure.contracts.plan import FileChange
from perdure.effects.base import Blobs
from perdure.workspace.beneath import read_entry, remove_entry, write_entry

DEFAULT_JUDGES: tuple[str, ...] = (
    *("tests/**", "test/**", "spec/**", "**/tests/**", "**/test/**", "**/__tests__/**"),
    *("**/test_*.py", "**/*_test.*", "**/*.test.*", "**/*.spec.*", "**/conftest.py"),
    *("Makefile", "tox.ini", "noxfile.py", "pytest.ini", "Jenkinsfile", ".gitlab-ci.yml", ".github/**", ".ci/**"),
)
"""What judges an agent's work where its template names nothing else: tests, and what says how they are run."""


def find_judges(changes: Sequence[FileChange], patterns: Sequence[str]) -> list[FileChange]:
    """Return those of a draft's changes that touch a file that judges, in their order."""
    return [change for change in changes if any(_matches(change.path, pattern) for pattern in patterns)]


def put_back(folder: Path, changed: Sequence[FileChange], blobs: Blobs) -> None:
    """Make these paths beneath ``folder`` what they were in the base; new ones go."""
    for change in changed:
        path = path_bytes(change.path)
        found = read_entry(folder, path)
        if change.old is not None:
            write_entry(folder, path, change.old_mode, blobs.get(change.old), expected=found)
        elif found is not None:
            remove_entry(folder, path, expected=found)


def _matches(path: str, pattern: str) -> bool:
    """``**/x`` is also ``x`` itself; ``*`` crosses folders, since whoever guards would rather guard too much."""
    return fnmatchcase(path, pattern) or (pattern.startswith("**/") and fnmatchcase(path, pattern[3:]))
