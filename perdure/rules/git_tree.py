"""A commit's files, read from its objects: never from the work tree, never through a link."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from perdure.contracts.base import path_text
from perdure.errors import UserError
from perdure.workspace.git import Repository, open_repository

_LINK_MODE = "120000"
_FILE_MODES = ("100644", "100755")


def open_input(value: Any) -> Repository:
    """Open the repository that a ``git-repository`` input names: ``{"path": …}`` or a path.

    Raises:
        UserError: there is none.
    """
    place = value.get("path", "") if isinstance(value, dict) else value
    if not isinstance(place, str) or not place:
        raise UserError(f"repo={value!r} names no repository. Expected a path, for example repo=.")
    return open_repository(Path(place))


def package_path(repository: Repository, value: Any) -> str:
    """Return the folder of a package, relative to the repository's root with ``/``; empty for the root itself.

    Raises:
        UserError: it lies outside of the repository.
    """
    given = PurePosixPath(str(value or "."))
    if given.is_absolute() and repository.work_tree is not None:
        place = Path(given).resolve()
        if not place.is_relative_to(repository.work_tree):
            raise UserError(
                f"path={value!r} lies outside of the repository {repository.work_tree}. Give a path inside it."
            )
        given = PurePosixPath(place.relative_to(repository.work_tree).as_posix())
    if given.is_absolute() or ".." in given.parts:
        raise UserError(
            f"path={value!r} leaves the repository. Give a path relative to its root, for example packages/app."
        )
    return "" if given == PurePosixPath(".") else str(given)


def join(folder: str, name: str) -> str:
    """Return ``name`` beneath ``folder`` as a path of the repository."""
    return f"{folder}/{name}" if folder else name


class CommitTree:
    """The files of one folder of one commit."""

    def __init__(self, repository: Repository, commit: str, folder: str) -> None:
        self._repository = repository
        self.commit = commit
        self.folder = folder
        self._modes = _list_folder(repository, commit, folder)

    @property
    def names(self) -> list[str]:
        """Names of everything directly in the folder, sorted."""
        return sorted(self._modes)

    def has_folder(self, name: str) -> bool:
        """Whether a folder of that name is directly inside."""
        return self._modes.get(name, ("", ""))[0] == "040000"

    def is_link(self, name: str) -> bool:
        """Whether a symbolic link of that name is directly inside."""
        return self._modes.get(name, ("", ""))[0] == _LINK_MODE

    def open_folder(self, path: str) -> CommitTree | None:
        """Return the folder at ``path`` beneath this one; ``None`` when there is none."""
        found: CommitTree | None = self
        for name in PurePosixPath(path).parts:
            if found is None or not found.has_folder(name):
                return None
            found = CommitTree(found._repository, found.commit, join(found.folder, name))
        return found

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes; ``None`` when there is none of that name.

        Raises:
            UserError: it is a symbolic link, a submodule or a folder: something else than what it names would change.
        """
        mode, oid = self._modes.get(name, ("", ""))
        if not mode:
            return None
        path = join(self.folder, name)
        if mode == _LINK_MODE:
            raise UserError(
                f"{path} is a symbolic link in {self.commit[:7]}; a release does not write through links. "
                "Replace it by the file, or give path= to the folder that holds it."
            )
        if mode not in _FILE_MODES:
            raise UserError(f"{path} is no regular file in {self.commit[:7]} (mode {mode}). Expected a file there.")
        return self._repository.read("cat-file", "blob", oid)


def _list_folder(repository: Repository, commit: str, folder: str) -> dict[str, tuple[str, str]]:
    """(mode, object id) by name; names that are not UTF-8 are written as ``path_text`` does."""
    tree = repository.read("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}").decode().strip()
    for part in PurePosixPath(folder).parts:
        mode, tree = _parse_tree(repository.read("ls-tree", "-z", tree)).get(part, ("", ""))
        if mode != "040000":
            raise UserError(f"path={folder!r} is no folder in {commit[:7]}. Give the folder of a package.")
    return _parse_tree(repository.read("ls-tree", "-z", tree))


def _parse_tree(listed: bytes) -> dict[str, tuple[str, str]]:
    found = {}
    for line in listed.split(b"\0"):
        facts, _, name = line.partition(b"\t")
        if name:
            mode, _, oid = facts.decode("ascii").split(" ")
            found[path_text(name)] = (mode, oid)
    return found
