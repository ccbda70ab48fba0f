"""A command on a copy of a workspace, of which only what may be changed is taken over."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.contracts.base import path_text
from perdure.errors import UserError
from perdure.policy.patterns import glob_matches
from perdure.scratch import scratch_folder
from perdure.workspace.beneath import read_entry, remove_entry, write_entry
from perdure.workspace.reading import Stamps, changed_paths, stamp_all

_CONTENT = ("file", "link")


@dataclass(frozen=True)
class Taken:
    """What became of a command's changes."""

    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    """Outside of the patterns; the workspace never held them."""


@contextmanager
def held_copy(root: Path, patterns: tuple[str, ...]) -> Iterator[tuple[Path, Callable[[], Taken]]]:
    """Give a copy of the workspace at ``root``, and what takes over the copy's changes that ``patterns`` let through.

    A command that is killed, or whose worker dies, has changed nothing. Nobody else may write to ``root`` meanwhile.

    Raises:
        UserError: there are more files than can be compared.
    """
    with scratch_folder("held") as folder:
        copy = folder / "tree"
        shutil.copytree(root, copy, symlinks=True, ignore=_without_devices)
        before = _stamps(copy, patterns)
        yield copy, lambda: _take_over(copy, root, patterns, before, _stamps(copy, patterns))


def _stamps(copy: Path, patterns: tuple[str, ...]) -> Stamps:
    found = stamp_all(copy)
    if found is None:
        raise UserError(
            f"The workspace holds too many files to tell what a command changes, and only {', '.join(patterns)} may be "
            "changed here. Use the tools for files."
        )
    return found


def _without_devices(folder: str, names: list[str]) -> list[str]:
    """Pipes and sockets that a command left are not copied: reading one would wait for ever."""
    modes = {name: (Path(folder) / name).lstat().st_mode for name in names}
    plain = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    return [name for name, mode in modes.items() if not any(is_kind(mode) for is_kind in plain)]


def _take_over(copy: Path, root: Path, patterns: tuple[str, ...], before: Stamps, after: Stamps) -> Taken:
    kept: list[str] = []
    dropped: list[str] = []
    changed = [path for path in changed_paths(before, after) if not _is_folder(before, after, path)]
    # What went goes first: a file may become a folder, and a folder a link.
    for path in sorted(changed, key=lambda path: (_kind(after, path) in _CONTENT, path)):
        text = path_text(path)
        may = any(glob_matches(pattern, text) for pattern in patterns)
        (kept if may and _copy_over(copy, root, path, _kind(after, path)) else dropped).append(text)
    return Taken(tuple(sorted(kept)), tuple(sorted(dropped)))


def _copy_over(copy: Path, root: Path, path: bytes, kind: str) -> bool:
    """Whether one path of the workspace is now as in the copy, where it has this kind."""
    old = read_entry(root, path)
    if kind not in _CONTENT:
        gone = old is None or (old.mode != "other" and remove_entry(root, path, expected=old))
        return gone and kind in ("", "folder")
    new = read_entry(copy, path)
    return new is not None and write_entry(root, path, new.mode, new.data, expected=old)


def _kind(stamps: Stamps, path: bytes) -> str:
    found = stamps.get(path)
    return found[0] if found else ""


def _is_folder(before: Stamps, after: Stamps, path: bytes) -> bool:
    """Folders are made and go with what is in them."""
    return {_kind(before, path), _kind(after, path)} <= {"folder", ""}
