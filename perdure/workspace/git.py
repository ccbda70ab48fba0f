"""Somebody's git repository, read without running anything that it brings."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from perdure.contracts.names import slug
from perdure.errors import SetupError, UserError
from perdure.workspace.config import CONTENT_KEYS, Config, pick, read_config, user_config
from perdure.workspace.git_process import READ_LIMIT, GitError, run_git
from perdure.workspace.refs import is_object_id, is_ref
from perdure.workspace.view import Origin, open_view

READING = frozenset(
    """
    cat-file describe diff-tree for-each-ref log ls-tree merge-base name-rev rev-list rev-parse show show-ref
    """.split()  # noqa: SIM905 - a list reads worse
)
"""Commands that :meth:`Repository.read` takes."""

_KNOWN_EXTENSIONS = frozenset(
    """
    noop preciousobjects partialclone objectformat compatobjectformat worktreeconfig refstorage relativeworktrees
    """.split()  # noqa: SIM905 - a list reads worse
)
_SHARED = ("refs/heads/", "refs/tags/", "refs/remotes/")
"""Refs that all work trees of a repository share."""

EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}

__all__ = ["READING", "GitError", "Repository", "identity", "open_repository"]


@dataclass(frozen=True)
class Repository:
    """A repository as found on disk. Make one for each use: what was read of its configuration is kept."""

    work_tree: Path | None
    """The folder with the checked-out files; ``None`` for a bare repository."""
    git_dir: Path
    """The work tree's own git directory (HEAD, index)."""
    common_dir: Path
    """The directory that all work trees share (objects, refs, config)."""
    _config: dict[str, list[str]] = field(repr=False, default_factory=dict)

    @property
    def identity(self) -> str:
        """A stable id: the real path of the common directory. The same for all work trees of a repository."""
        return str(self.common_dir)

    @property
    def place(self) -> Path:
        """The path to open it by again: the work tree, or the git directory when it is bare."""
        return self.work_tree or self.git_dir

    @cached_property
    def slug(self) -> str:
        """A short name: of ``remote.origin.url`` when there is one, else of the folder."""
        url = self.config("remote.origin.url") or ""
        path = urlsplit(url).path if "://" in url else url.rpartition(":")[2]
        name = path.rstrip("/").rpartition("/")[2].removesuffix(".git")
        folder = self.place.name.removesuffix(".git") or "repository"
        return slug(name or folder)

    @property
    def object_format(self) -> str:
        """``sha1`` or ``sha256``."""
        return (self.config("extensions.objectformat") or "sha1").lower()

    @property
    def is_shallow(self) -> bool:
        """Whether its history is cut."""
        return (self.common_dir / "shallow").is_file()

    @property
    def configs(self) -> Config:
        """All values of the repository's own configuration, as plain text."""
        return self._config

    def config(self, key: str) -> str | None:
        """Return the last plain value of ``key``; section and name in any case, the subsection exactly."""
        section, _, rest = key.partition(".")
        subsection, dot, name = rest.rpartition(".")
        found = self._config.get(f"{section.lower()}.{subsection}{dot}{name.lower()}")
        return found[-1] if found else None

    def head_ref(self) -> str | None:
        """Return the full name of the branch that HEAD is on; ``None`` when it is detached."""
        head = self.head_text()
        return head.removeprefix("ref: ") if head.startswith("ref: ") else None

    def head_text(self) -> str:
        """Return HEAD as ``ref: refs/…`` or an object id.

        Raises:
            GitError: it is neither.
        """
        path = self.git_dir / "HEAD"
        text = f"ref: {path.readlink()}" if path.is_symlink() else _read_small(path)
        name = text.removeprefix("ref:").strip()
        if text.startswith("ref:") and is_ref(name):
            return f"ref: {name}"
        if is_object_id(text.strip()):
            return text.strip()
        raise GitError(
            f"{path} holds {text[:80]!r}; expected 'ref: refs/heads/…' or an object id. Repair the repository."
        )

    def origin(self) -> Origin:
        """What a view of this repository looks at, HEAD read just now."""
        return Origin(self.common_dir, self.git_dir, self.object_format, self.head_text())

    def read(self, *args: str, stdin: bytes = b"", limit: timedelta = READ_LIMIT) -> bytes:
        """Run a reading git command (one of :data:`READING`) on a private view and return its stdout.

        Replacements (``refs/replace``), hooks, filters, textconv and external diff programs take no part.

        Raises:
            GitError: git failed; its ``code`` and ``stderr`` say how. Also when ``args`` is not a reading command.
        """
        _refuse_writing(args)
        options = ["--no-ext-diff", "--no-textconv"] if args[0] in {"log", "show", "diff-tree"} else []
        with open_view(self.origin()) as view:
            try:
                return run_git(view, args[0], *options, *args[1:], stdin=stdin, limit=limit)
            except GitError as error:
                raise GitError(
                    f"{error} (in {self.place}){self._hint()}", code=error.code, stderr=error.stderr
                ) from None

    def resolve(self, name: str) -> str | None:
        """Return the object id that a full ref (or ``HEAD``) points at; ``None`` when there is no such ref."""
        if name != "HEAD" and not is_ref(name):
            return None
        found = self._loose(name) or self._packed(name)
        if found is not None:
            return found or None
        try:
            return self.read("rev-parse", "--verify", "--quiet", "--end-of-options", name).decode().strip()
        except GitError as error:
            if error.code == 1:
                return None
            raise

    def _loose(self, name: str) -> str | None:
        """Read a ref's own file, as git does first; ``None`` when it has none, or one that git had better read."""
        head = self.head_text() if name == "HEAD" else f"ref: {name}"
        if not head.startswith("ref: "):
            return head
        path = self.common_dir / head.removeprefix("ref: ")
        if path.is_symlink() or not path.is_file():
            return None
        text = _read_small(path).strip()
        return text if is_object_id(text) else None

    def _packed(self, name: str) -> str | None:
        """Look into ``packed-refs``, as git does for a ref without a file of its own.

        Empty: there is no such ref. ``None``: git had better look (a ref's file that is no plain one, another kind).
        """
        path = self.common_dir / name
        if not name.startswith(_SHARED) or path.is_symlink() or path.is_file():
            return None
        packed = self.common_dir / "packed-refs"
        if not packed.is_file() and os.path.lexists(packed):
            return None  # a device or a pipe in its place is not opened
        try:
            lines = packed.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ""
        except OSError:
            return None
        end = b" " + name.encode("utf-8", "surrogateescape")
        ids = [line.removesuffix(end).decode("ascii", "replace") for line in lines if line.endswith(end)]
        if not ids:
            return ""
        return ids[0] if is_object_id(ids[0]) else None

    def is_dirty(self) -> list[str]:
        """Return tracked paths whose index entry or file differs from HEAD, sorted; empty when clean or bare.

        Compared on a copy of the index, under the line-ending rules of the repository and the user, running no filter:
        a file that a filter turned into something else counts as changed once its time stamp changes.
        """
        if self.work_tree is None:
            return []
        settings = {**pick(CONTENT_KEYS, user_config(), self._config), "core.bare": "false"}
        with open_view(self.origin(), settings=settings) as view:
            self.copy_index(view)
            env = {"GIT_WORK_TREE": str(self.work_tree)}
            run_git(view, "update-index", "-q", "--refresh", env=env, cwd=self.work_tree, codes=(0, 1))
            base = self.resolve("HEAD") or EMPTY_TREE[self.object_format]
            args = ("diff-index", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames")
            out = run_git(view, *args, "--ignore-submodules=dirty", base, "--", env=env, cwd=self.work_tree)
        return sorted(path.decode("utf-8", "surrogateescape") for path in out.split(b"\0") if path)

    def copy_index(self, view: Path) -> None:
        """Copy the work tree's index into ``view`` (with what a split index shares)."""
        for source in (self.git_dir / "index", *self.git_dir.glob("sharedindex.*")):
            if source.is_file() and not source.is_symlink():
                (view / source.name).write_bytes(source.read_bytes())

    def _hint(self) -> str:
        if self.config("extensions.partialclone"):
            return (
                ". It is a partial clone: fetch what is missing with `git fetch --refetch --no-filter`, then try again."
            )
        return ""


def open_repository(path: Path) -> Repository:
    """Find the repository that holds ``path``, reading ``.git`` folders and files ourselves.

    Raises:
        UserError: ``path`` does not exist or is in no repository.
        SetupError: the repository is of a kind that is not read (reftable, unknown extensions).
    """
    try:
        start = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise UserError(f"{path} does not exist. Give the path of a git repository.") from None
    for folder in (start, *start.parents):
        found = _repository_at(folder)
        if found is not None:
            _refuse_unreadable(found)
            return found
    raise UserError(f"{start} is not inside a git repository. Run `git init` there, or give another path.")


def identity(repository: Repository, environ: Mapping[str, str] | None = None) -> tuple[str, str] | None:
    """Return (name, email) for new commits, or ``None`` when nobody said who it is.

    From the repository's configuration, then the user's, then ``GIT_COMMITTER_*`` and ``GIT_AUTHOR_*`` in ``environ``.
    """
    env = environ or {}
    for source in (repository.configs, user_config()):
        name, email = pick(("user.name",), source), pick(("user.email",), source)
        if name and email:
            return _clean(name["user.name"]), _clean(email["user.email"])
    for who in ("COMMITTER", "AUTHOR"):
        if env.get(f"GIT_{who}_NAME") and env.get(f"GIT_{who}_EMAIL"):
            return _clean(env[f"GIT_{who}_NAME"]), _clean(env[f"GIT_{who}_EMAIL"])
    both = pick(("user.name", "user.email"), user_config(), repository.configs)
    return (_clean(both["user.name"]), _clean(both["user.email"])) if len(both) == 2 else None


def _refuse_writing(args: tuple[str, ...]) -> None:
    if not args or args[0] not in READING:
        raise GitError(f"git {args[:1]} is not a reading command; known: {', '.join(sorted(READING))}.")
    if any(arg.startswith("--ou") for arg in args):
        # `--output=FILE` (and its abbreviations) makes log, show and diff-tree write a file anywhere.
        raise GitError(f"git {args[0]} may not write a file (--output); read its answer instead.")


def _clean(text: str) -> str:
    """Drop what git drops from a name in a commit header: angle brackets, line ends, NUL, outer blanks."""
    return re.sub(r"[<>\n\r\0]", "", text).strip()


def _repository_at(folder: Path) -> Repository | None:
    inner = folder / ".git"
    if inner.is_file():
        return _make(_follow_git_file(inner), folder)
    if _is_git_dir(inner):
        return _make(inner.resolve(), folder)
    if _is_git_dir(folder):
        return _make(folder, folder.parent if folder.name == ".git" else None)
    return None


def _make(git_dir: Path, work_tree: Path | None) -> Repository:
    common = _common_dir(git_dir)
    config = read_config(common / "config")
    if config.get("extensions.worktreeconfig", ["false"])[-1].lower() == "true":
        for key, values in read_config(git_dir / "config.worktree").items():
            config.setdefault(key, []).extend(values)
    is_bare = config.get("core.bare", ["false"])[-1].lower() == "true" and git_dir == common
    return Repository(None if is_bare else work_tree, git_dir, common, config)


def _follow_git_file(path: Path) -> Path:
    """Return the git directory that a ``.git`` file (linked worktree, submodule) names."""
    text = _read_small(path)
    target = (path.parent / text.removeprefix("gitdir:").strip()).resolve()
    if not text.startswith("gitdir:") or not _is_git_dir(target):
        raise UserError(
            f"{path} names no git directory ({text[:80]!r}). Was the repository it belongs to moved or pruned?"
        )
    return target


def _common_dir(git_dir: Path) -> Path:
    link = git_dir / "commondir"
    return (git_dir / _read_small(link).strip()).resolve() if link.is_file() else git_dir.resolve()


def _is_git_dir(folder: Path) -> bool:
    """Whether git would take ``folder`` for a git directory: HEAD, objects and refs, perhaps by ``commondir``."""
    head = folder / "HEAD"
    if not (head.is_file() or head.is_symlink()):
        return False
    common = _common_dir(folder)
    return (common / "objects").is_dir() and (common / "refs").is_dir()


def _refuse_unreadable(repository: Repository) -> None:
    storage = (repository.config("extensions.refstorage") or "files").lower()
    if storage != "files":
        raise SetupError(
            f"{repository.place} keeps its refs as {storage!r} (extensions.refStorage), which is not supported yet; "
            "expected 'files'. Convert a clone of it: `git clone --ref-format=files <path> <new path>`."
        )
    for key in repository.configs:
        if key.startswith("extensions.") and key.removeprefix("extensions.") not in _KNOWN_EXTENSIONS:
            raise SetupError(
                f"{repository.place} uses the git extension {key!r}, which is not known here. "
                "Use a clone without it, or a newer Perdure."
            )


def _read_small(path: Path) -> str:
    """Read a small file of a git directory. A device or pipe in its place is not opened."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise GitError(f"{path} is no regular file. Repair the repository.")
    with path.open("rb") as file:
        return file.read(8192).decode("utf-8", "surrogateescape")
