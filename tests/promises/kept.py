"""How a promise is written down: the line that keeps it, what stands there without it, and the test that notices.

``line`` is exact text and stands exactly once in its file. ``without`` is the same code with the promise broken, as
small as possible. ``test`` is one test function (all its parameters); it is green with the line and red without it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """One line that keeps one promise."""

    promise: str
    file: str
    line: str
    without: str
    test: str

    @property
    def name(self) -> str:
        """A short name: where, and which test."""
        return f"{self.file} · {self.test.rpartition('::')[2]}"
