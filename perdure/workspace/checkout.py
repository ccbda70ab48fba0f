"""Bringing a person's checkout along when its branch was moved: exactly the changed paths, never over a foreign change.

May be stopped anywhere and called again: every path holds its old or its new content at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from perdure.contracts.base import BlobRef
from perdure.effects.base import Blobs, Runner
from perdure.errors import EffectFailed, EffectUnknown, UserError
from perdure.scratch import scratch_folder
from perdure.workspace.beneath import Entry, read_entry, remove_entry, write_entry
from perdure.workspace.config import CONTENT_KEYS, pick, user_config
from perdure.workspace.git import Repository, open_repository
from perdure.workspace.git_process import git_command, git_environment, run_git
from perdure.workspace.private import ABSENT, RawChange, make_private, parse_raw, read_blobs, take_pack, work_tree
from perdure.workspace.writing import WRITE_LIMIT, refuse_links

_GITLINK = "160000"
_BUSY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


class _Form:
    """What a path may hold at one of the two commits."""

    def __init__(self, git_dir: Path, root: Path, path: bytes, mode: str, oid: str, stored: bytes) -> None:
        self.mode = mode
        self.stored = stored
        self._git_dir = git_dir
        self._root = root
        self._path = path
        self._oid = oid

    @cached_property
    def shown(self) -> bytes:
        """The bytes after line-end and encoding rules, as git would check them out."""
        if self.mode == "120000":
            return self.stored
        path = self._path.decode("utf-8", "surrogateescape")
        args = ("cat-file", "--filters", f"--path={path}", self._oid)
        return run_git(self._git_dir, *args, env=work_tree(self._root), cwd=self._root)

    def matches(self, entry: Entry | None, *, modes_count: bool) -> bool:
        """Whether the path holds this; bytes are compared with the blob's first, which costs no process."""
        return self.is_stored(entry, modes_count=modes_count) or self.is_shown(entry, modes_count=modes_count)

    def is_stored(self, entry: Entry | None, *, modes_count: bool) -> bool:
        """Whether the path holds exactly the blob's bytes (or nothing, when that is what it should hold)."""
        if entry is None or self.mode == ABSENT:
            return entry is None and self.mode == ABSENT
        return self._same_mode(entry, modes_count) and entry.data == self.stored

    def is_shown(self, entry: Entry | None, *, modes_count: bool) -> bool:
        """Whether the path holds the bytes that git would check out; asks git."""
        if entry is None or self.mode == ABSENT:
            return False
        return self._same_mode(entry, modes_count) and entry.data == self.shown

    def _same_mode(self, entry: Entry, modes_count: bool) -> bool:
        return entry.mode == self.mode or (not modes_count and {entry.mode, self.mode} <= {"100644", "100755"})


@dataclass(frozen=True)
class Checkout:
    """A work tree whose branch goes from one commit to another."""

    repository: Repository
    root: Path
    git_dir: Path
    """Ours: knows the objects of both commits and the work tree's line-end rules."""
    changes: list[RawChange]
    _forms: dict[tuple[bytes, bool], _Form] = field(default_factory=dict, repr=False)

    def obstacles(self) -> list[str]:
        """What stands in the way, one sentence each: foreign content, staged changes, sparse or filtered paths."""
        found = [self._obstacle(change) for change in self.changes]
        return [*filter(None, found), *self._index_obstacles()]

    def bring_along(self, runner: Runner) -> list[str]:
        """Bring index and files from old to new; return what could not be, one sentence each. Idempotent."""
        try:
            refuse_links(self.repository)
            problems = self._index_obstacles()
            if not problems:
                self._update_index(runner)
        except (EffectFailed, EffectUnknown) as error:
            return [f"The checkout's index was not brought along: {error}"]
        return problems + [text for change in self.changes if (text := self._bring(change))]

    def _obstacle(self, change: RawChange) -> str:
        try:
            entry = read_entry(self.root, change.path)
        except UserError as error:
            return error.message
        if change.new_mode == _GITLINK or self._is_ours(change, entry):
            return ""
        what = "is there and is not tracked" if change.status == "A" else "holds something else"
        return f"{_shown(change.path)} {what}; it would be overwritten. Commit it, or move it away."

    def _is_ours(self, change: RawChange, entry: Entry | None) -> bool:
        """Whether a path holds its old or its new content. Git is asked only when neither blob is there as it is."""
        forms = [self._form(change, old=old) for old in (False, True)]
        is_stored = any(form.is_stored(entry, modes_count=self._modes) for form in forms)
        return is_stored or any(form.is_shown(entry, modes_count=self._modes) for form in forms)

    def _bring(self, change: RawChange) -> str:
        """Bring one path along; return why not, or nothing."""
        problem = self._obstacle(change)
        entry = None if problem or change.new_mode == _GITLINK else read_entry(self.root, change.path)
        new = self._form(change, old=False)
        if problem or change.new_mode == _GITLINK or new.matches(entry, modes_count=self._modes):
            return problem
        if new.mode == ABSENT:
            assert entry is not None  # else it would match
            moved = remove_entry(self.root, change.path, expected=entry)
        else:
            moved = write_entry(self.root, change.path, new.mode, new.shown, expected=entry)
        return "" if moved else f"{_shown(change.path)} was changed just now by somebody else; it was left alone."

    @property
    def _modes(self) -> bool:
        return (self.repository.config("core.filemode") or "true").lower() != "false"

    def _form(self, change: RawChange, *, old: bool) -> _Form:
        key = (change.path, old)
        if key not in self._forms:
            mode, oid = (change.old_mode, change.old_id) if old else (change.new_mode, change.new_id)
            stored = self._contents.get(oid, b"")
            self._forms[key] = _Form(self.git_dir, self.root, change.path, mode, oid, stored)
        return self._forms[key]

    @cached_property
    def _contents(self) -> dict[str, bytes]:
        """Bytes by blob id, of both commits."""
        sides = [side for change in self.changes for side in _both(change)]
        return read_blobs(self.git_dir, (oid for mode, oid in sides if mode not in (ABSENT, _GITLINK)))

    def _index(self) -> dict[bytes, list[tuple[str, str, str]]]:
        """(tag, mode, id) of each changed path's entries in the person's index, read from a copy."""
        self.repository.copy_index(self.git_dir)
        paths = [change.path.decode("utf-8", "surrogateescape") for change in self.changes]
        out = b""
        for start in range(0, len(paths), 500):
            args = ("ls-files", "-v", "-s", "-z", "--", *paths[start : start + 500])
            out += run_git(self.git_dir, *args, env=work_tree(self.root), cwd=self.root)
        entries: dict[bytes, list[tuple[str, str, str]]] = {}
        for item in filter(None, out.split(b"\0")):
            meta, _, path = item.partition(b"\t")
            tag, mode, oid, _stage = meta.decode("ascii").split(" ")
            entries.setdefault(path, []).append((tag, mode, oid))
        return entries

    def _index_obstacles(self) -> list[str]:
        entries = self._index()
        return [text for change in self.changes if (text := _index_obstacle(change, entries.get(change.path, [])))]

    def _update_index(self, runner: Runner) -> None:
        entries = self._index()
        lines = b"".join(_index_line(change) for change in self.changes if not _is_staged(change, entries))
        if not lines:
            return
        self._run_on_index(runner, ("update-index", "-z", "--index-info"), lines, (0,))
        # Only times and sizes, for a quick `git status`; whether it works does not matter.
        self._run_on_index(runner, ("update-index", "-q", "--refresh"), b"", (0, 1))

    def _run_on_index(self, runner: Runner, args: tuple[str, ...], stdin: bytes, codes: tuple[int, ...]) -> None:
        env = {**work_tree(self.root), "GIT_INDEX_FILE": str(self.repository.git_dir / "index")}
        argv = git_command(self.git_dir, args)
        done = runner.run(argv, env=git_environment(env), cwd=self.root, stdin=stdin, limit=WRITE_LIMIT)
        if done.code not in codes:
            raise EffectFailed(done.output.decode("utf-8", "replace").strip())


@contextmanager
def open_checkout(repository: Repository, old: str, new: str, pack: BlobRef | None, blobs: Blobs) -> Iterator[Checkout]:
    """Give the checkout of ``repository``'s work tree between two commits; objects it lacks come from ``pack``."""
    assert repository.work_tree is not None  # find_checkout gives no bare one
    with scratch_folder("checkout") as folder:
        settings = {**pick(CONTENT_KEYS, user_config(), repository.configs), "core.splitindex": "false"}
        git_dir = make_private(folder / "git", repository, settings=settings)
        if pack is not None:
            take_pack(git_dir, blobs.get(pack))
        args = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
        changes = parse_raw(run_git(git_dir, *args))
        # Removals first: a file may become a folder.
        changes.sort(key=lambda change: change.new_mode != ABSENT)
        yield Checkout(repository, repository.work_tree, git_dir, changes)


def find_checkout(repository: Repository, ref: str) -> Repository | None:
    """Return the work tree (as a repository) that has ``ref`` checked out; ``None`` when none has."""
    candidates = [repository.place]
    if repository.common_dir.name == ".git":
        candidates.append(repository.common_dir.parent)
    for link in sorted((repository.common_dir / "worktrees").glob("*/gitdir")):
        candidates.append(Path(link.read_text(encoding="utf-8", errors="surrogateescape").strip()).parent)
    for candidate in candidates:
        if candidate.is_dir():
            found = open_repository(candidate)
            if found.common_dir == repository.common_dir and found.work_tree and found.head_ref() == ref:
                return found
    return None


def unfinished(repository: Repository) -> list[str]:
    """Git operations that a person left in the middle, by the file that says so."""
    return [name for name in _BUSY if (repository.git_dir / name).exists()]


def filtered_paths(repository: Repository, paths: list[bytes]) -> list[str]:
    """Those of ``paths`` that the work tree's attributes send through a filter program (which never runs)."""
    if repository.work_tree is None or not paths:
        return []
    with scratch_folder("attributes") as folder:
        git_dir = make_private(folder / "git", repository, settings={})
        args = ("check-attr", "-z", "--stdin", "filter")
        root = repository.work_tree
        out = run_git(git_dir, *args, stdin=b"\0".join(paths) + b"\0", env=work_tree(root), cwd=root)
    fields = out.split(b"\0")
    found = zip(fields[::3], fields[2::3], strict=False)
    return [_shown(path) for path, value in found if value not in (b"unspecified", b"unset")]


def _index_obstacle(change: RawChange, entries: list[tuple[str, str, str]]) -> str:
    path = _shown(change.path)
    if any(tag.upper() == "S" for tag, _, _ in entries):
        return f"{path} is outside of the sparse checkout. Add it (`git sparse-checkout add`), then try again."
    expected = [[(mode, oid)] if mode != ABSENT else [] for mode, oid in _both(change)]
    if [(mode, oid) for _, mode, oid in entries] not in expected:
        return f"{path} has a staged change of its own. Commit it or unstage it."
    return ""


def _both(change: RawChange) -> list[tuple[str, str]]:
    return [(change.old_mode, change.old_id), (change.new_mode, change.new_id)]


def _is_staged(change: RawChange, entries: dict[bytes, list[tuple[str, str, str]]]) -> bool:
    wanted = [] if change.new_mode == ABSENT else [(change.new_mode, change.new_id)]
    return [(mode, oid) for _, mode, oid in entries.get(change.path, [])] == wanted


def _index_line(change: RawChange) -> bytes:
    mode = "0" if change.new_mode == ABSENT else change.new_mode
    return f"{mode} {change.new_id}\t".encode() + change.path + b"\0"


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "replace")
