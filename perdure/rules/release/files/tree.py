"""All files of one commit by path, for formats that look further than one folder. Nothing is read through a link."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from copy import copy
from functools import lru_cache

from perdure.contracts.base import JsonDict, path_text
from perdure.rules.git_branch import find_branch
from perdure.rules.git_tree import CommitTree, join, open_input, package_path
from perdure.workspace.git import Repository

_REGULAR = ("100644", "100755")


class CommitFiles:
    """The files of a commit; ``folder`` is the package's, with ``/``, empty for the root."""

    def __init__(self, repository: Repository, commit: str, folder: str) -> None:
        self._repository = repository
        self.commit = commit
        self.folder = folder
        # Says clearly when the folder is none.
        self._top = CommitTree(repository, commit, folder)
        self._objects = _list_files(repository, commit)
        self._sorted = sorted(self._objects)
        self._contents: dict[str, bytes] = {}
        self._beneath: list[str] | None = None

    @classmethod
    def open(cls, arguments: JsonDict) -> CommitFiles:
        """Open the newest commit of ``branch`` (default: HEAD's) in ``repo``, at the folder ``path``.

        Raises:
            UserError: there is no such repository, branch or folder.
        """
        repository = open_input(arguments["repo"])
        _, commit = find_branch(repository, str(arguments.get("branch") or ""), str(arguments.get("follow") or ""))
        return cls(repository, commit, package_path(repository, arguments.get("path")))

    def at(self, folder: str) -> CommitFiles:
        """The same commit seen from another package's folder; what was read is shared."""
        other = copy(self)
        other.folder, other._top = folder, CommitTree(self._repository, self.commit, folder)
        other._beneath = None
        return other

    @property
    def top(self) -> CommitTree:
        """The package's own folder."""
        return self._top

    def has(self, path: str) -> bool:
        """Whether there is a regular file at ``path`` (from the repository's root)."""
        return path in self._objects

    def read(self, path: str) -> bytes:
        """Return a regular file's bytes. ``path`` is one that :meth:`has`."""
        self.load([path])
        return self._contents[path]

    def load(self, paths: Iterable[str]) -> None:
        """Read many files by one call of git; :meth:`read` gives them afterwards."""
        wanted = [path for path in paths if path not in self._contents]
        if not wanted:
            return
        oids = "".join(f"{self._objects[path]}\n" for path in wanted)
        answer = self._repository.read("cat-file", "--batch", stdin=oids.encode("ascii"))
        at = 0
        for path in wanted:
            start = answer.index(b"\n", at) + 1
            size = int(answer[at : start - 1].split(b" ")[2])
            self._contents[path] = answer[start : start + size]
            at = start + size + 1

    def read_own(self, name: str) -> bytes | None:
        """Return the bytes of a file directly in the package's folder; ``None`` when there is none.

        Raises:
            UserError: it is a symbolic link or no regular file: something else than what it names would change.
        """
        return self._top.read(name)

    def match(self, patterns: Iterable[str]) -> list[str]:
        """Return the paths beneath the package's folder that match a pattern, sorted, the shallow ones first."""
        start = join(self.folder, "")
        wanted = compile_patterns(tuple(patterns))
        found = [path for path in self._list_beneath() if wanted.fullmatch(path)]
        return [start + path for path in sorted(found, key=lambda path: (path.count("/"), path))]

    def folders(self) -> set[str]:
        """Every folder beneath the package's that holds a file, relative to it."""
        return {path.rpartition("/")[0] for path in self._list_beneath()} - {""}

    def _list_beneath(self) -> list[str]:
        """The files beneath the folder, relative to it. Found once: each kind of version file asks for some of them."""
        if self._beneath is None:
            start = join(self.folder, "")
            first, end = bisect_left(self._sorted, start), bisect_right(self._sorted, start + chr(sys.maxunicode))
            self._beneath = [path.removeprefix(start) for path in self._sorted[first:end]]
        return self._beneath

    def above(self) -> list[str]:
        """The package's folder and those that hold it, the nearest first; the last is the root (empty)."""
        parts = self.folder.split("/") if self.folder else []
        return ["/".join(parts[:length]) for length in range(len(parts), -1, -1)]


@lru_cache(maxsize=64)
def compile_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all: a tree may have 100,000 paths."""
    pieces = {"**/": r"(?:[^/]+/){0,4}", "*": r"[^/]*"}
    split = [re.split(r"(\*\*/|\*)", pattern) for pattern in patterns]
    return re.compile("|".join("".join(pieces.get(part, re.escape(part)) for part in parts) for parts in split))


def _list_files(repository: Repository, commit: str) -> dict[str, str]:
    """Object id by path of every regular file."""
    found = {}
    for line in repository.read("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        facts, _, name = line.partition(b"\t")
        if name:
            mode, _, oid = facts.decode("ascii").split(" ")
            if mode in _REGULAR:
                found[path_text(name)] = oid
    return found
