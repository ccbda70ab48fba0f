"""Looking at files of a running installation, some of which go while one looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

Seen = TypeVar("Seen")


def look_at(paths: Iterable[Path], look: Callable[[Path], Seen]) -> Iterator[tuple[Path, Seen]]:
    """Each path with what a look at it gives; those that were taken away since they were listed are left out."""
    for path in paths:
        try:
            yield path, look(path)
        except FileNotFoundError:
            continue


def read_files(folder: Path) -> dict[Path, bytes]:
    """Every file beneath a folder with its bytes."""
    return dict(look_at((path for path in folder.rglob("*") if path.is_file()), Path.read_bytes))
