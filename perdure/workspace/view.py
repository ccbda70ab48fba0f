"""A private git directory over somebody's objects and refs.

Host git works on this and on nothing else: the configuration is ours, there are no hooks, no remotes and no filters,
and what a command writes stays in the view unless it was made to write through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.scratch import scratch_folder
from perdure.workspace.config import config_text


@dataclass(frozen=True)
class Origin:
    """What a view looks at."""

    common_dir: Path
    """Holds objects, refs and packed-refs."""
    git_dir: Path
    """Holds HEAD, its reflog and the index; a linked worktree has its own."""
    object_format: str
    """``sha1`` or ``sha256``."""
    head: str
    """``ref: refs/heads/…`` or an object id: HEAD as it was read and judged."""


def quote_alternate(path: Path) -> str:
    """Write a path as one line of ``objects/info/alternates``: quoted, so that no byte of it ends the line."""
    raw = str(path).encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:03o}" for b in raw) + '"'


def write_git_dir(folder: Path, *, object_format: str, head: str, settings: Mapping[str, str] | None = None) -> None:
    """Write the skeleton of a git directory: our configuration, HEAD, no template, no hooks."""
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "objects" / "pack").mkdir()
    (folder / "info").mkdir()
    base = {"core.repositoryformatversion": "1" if object_format == "sha256" else "0", "core.bare": "true"}
    if object_format == "sha256":
        base["extensions.objectformat"] = "sha256"
    (folder / "config").write_text(config_text({**base, **(settings or {})}.items()), encoding="utf-8")
    (folder / "HEAD").write_text(head + "\n", encoding="utf-8")


def borrow_objects(folder: Path, *stores: Path) -> None:
    """Let the git directory ``folder`` read objects from other object stores."""
    lines = "".join(quote_alternate(store) + "\n" for store in stores)
    (folder / "objects" / "info" / "alternates").write_text(lines, encoding="ascii")


@contextmanager
def open_view(origin: Origin, *, settings: Mapping[str, str] | None = None) -> Iterator[Path]:
    """Make a view that reads ``origin`` and writes nothing to it; gone afterwards.

    A view is made anew for every use: HEAD is copied into it and would grow old.
    """
    with scratch_folder("view") as folder:
        write_git_dir(folder, object_format=origin.object_format, head=origin.head, settings=settings)
        borrow_objects(folder, origin.common_dir / "objects")
        for name in ("refs", "packed-refs", "shallow"):
            if name == "refs" or (origin.common_dir / name).exists():
                (folder / name).symlink_to(origin.common_dir / name)
        yield folder
