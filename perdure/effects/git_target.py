"""A remote through a private git directory: what it has, which commit there holds a tree, atomic leased pushes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from perdure.contracts.base import JsonDict
from perdure.effects.base import Finished, Runner
from perdure.effects.git_refs import is_none
from perdure.errors import EffectFailed, EffectUnknown, UserError
from perdure.workspace.git import GitError, Repository
from perdure.workspace.git_process import git_command, git_environment, run_git
from perdure.workspace.private import take_pack, write_object
from perdure.workspace.refs import is_object_id, zero_id
from perdure.workspace.remotes import Remote, connection, find_remote, read_remote_refs, without_secrets
from perdure.workspace.view import borrow_objects

_FETCH_LIMIT = timedelta(minutes=2)
_PUSH_LIMIT = timedelta(minutes=5)
_SEEN = "refs/perdure/seen"
_FRAME = ("To ", "error: failed to push some refs to ")


@dataclass(frozen=True)
class Target:
    """A remote through a private git directory that borrows the repository's objects and changes nothing of it."""

    repository: Repository
    remote: Remote
    git_dir: Path
    env: dict[str, str]

    def refs(self) -> dict[str, str]:
        """Object id by full ref name, as the remote has them now. Raises ``GitError``."""
        return read_remote_refs(self.remote)

    def none(self) -> str:
        """The id that stands for "no such ref"."""
        return zero_id(self.repository.object_format)

    def fetch(self, ref: str) -> str:
        """Bring what ``ref`` of the remote is at into the private directory; return its id. Raises ``GitError``."""
        args = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--")
        run_git(self.git_dir, *args, self.remote.url, f"+{ref}:{_SEEN}", env=self.env, limit=_FETCH_LIMIT)
        return run_git(self.git_dir, "rev-parse", "--verify", _SEEN).decode().strip()

    def tree_of(self, commit: str) -> str:
        """The tree of a commit. Raises ``GitError`` when it is not here."""
        return run_git(self.git_dir, "rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()

    def first_with_tree(self, base: str, tip: str, tree: str) -> str:
        """The first commit after ``base`` on the way to ``tip`` whose tree is ``tree``; empty when there is none.

        First parents only: what the branch itself was at. A merged commit of the right tree below a merge of another
        one is not what the branch ever held.
        """
        args = ("rev-list", "--first-parent", "--reverse", "--no-commit-header", "--format=%H %T", tip, f"^{base}")
        for line in run_git(self.git_dir, *args).decode().splitlines():
            commit, _, found = line.partition(" ")
            if found == tree:
                return commit
        return ""

    def has(self, commit: str, tip: str) -> bool:
        """Whether ``tip`` reaches ``commit``; no for a commit that is not here."""
        if not is_object_id(commit):
            return False
        try:
            return not run_git(self.git_dir, "rev-list", "--max-count=1", commit, f"^{tip}").strip()
        except GitError:
            return False  # its object is not here: nothing that was fetched reaches it

    def read(self, kind: str, oid: str) -> bytes:
        """The bytes of an object. Raises ``GitError``."""
        return run_git(self.git_dir, "cat-file", kind, oid)

    def take(self, pack: bytes) -> None:
        """Put a pack's objects into the private directory."""
        take_pack(self.git_dir, pack)

    def write(self, kind: str, data: bytes) -> str:
        """Write an object into the private directory; return its id."""
        return write_object(self.git_dir, kind, data)

    def run_push(self, runner: Runner, refs: Iterable[JsonDict]) -> Finished:
        """Push exact ids, all together or not at all, each leased on its old one; return how git ended."""
        argv = git_command(self.git_dir, push_arguments(self.remote.url, refs))
        return runner.run(argv, env=git_environment(self.env), cwd=self.git_dir, limit=_PUSH_LIMIT)

    def push(self, runner: Runner, ref: str, old: str, new: str) -> None:
        """Move one ref of the remote, leased; done when it is there in the end, whatever git said.

        Raises:
            EffectFailed: the remote refused, and shows it unchanged.
            EffectUnknown: it shows something else, or does not answer.
        """
        moves: list[JsonDict] = [{"ref": ref, "old": old, "new": new}]
        done = self.run_push(runner, moves)
        if done.code == 0:
            return
        said = without_secrets((done.stderr + b"\n" + done.stdout).decode("utf-8", "replace"), self.remote)
        try:
            found = self.refs().get(ref, self.none())
        except GitError as error:
            raise EffectUnknown(f"The push to {self.remote.url} failed, and now it does not answer: {error}") from None
        if found == old:
            raise EffectFailed(f"{self.remote.url} refused the push: {gist_of(said)}")
        if found != new:
            raise EffectUnknown(f"The push to {self.remote.url} failed ({gist_of(said)}), and {ref} is {found[:7]}.")


@contextmanager
def open_target(repository: Repository, body: JsonDict) -> Iterator[Target]:
    """Open the remote that a body names by ``remote`` and ``url``; the private directory is gone afterwards."""
    remote = planned_remote(repository, body)
    with connection(remote, object_format=repository.object_format) as (git_dir, env):
        borrow_objects(git_dir, repository.common_dir / "objects")
        if repository.is_shallow:
            (git_dir / "shallow").write_bytes((repository.common_dir / "shallow").read_bytes())
        yield Target(repository, remote, git_dir, dict(env))


def planned_remote(repository: Repository, body: JsonDict) -> Remote:
    """The remote as planned; user info comes from the configuration only while it still means the planned URL."""
    try:
        now = find_remote(repository, body["remote"])
    except UserError:
        now = None
    return now if now and now.url == body["url"] else Remote(body["remote"], body["url"])


def push_arguments(url: str, refs: Iterable[JsonDict]) -> list[str]:
    """Return git's arguments for an atomic, leased push of exact ids."""
    args = ["push", "--atomic", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"]
    args.append("--recurse-submodules=no")
    specs = []
    for item in refs:
        args.append(f"--force-with-lease={item['ref']}:{'' if is_none(item['old']) else item['old']}")
        specs.append(f"{'' if is_none(item['new']) else item['new']}:{item['ref']}")
    return [*args, "--", url, *specs]


def gist_of(said: str) -> str:
    """What git and the remote said of a vain push, on one line: reasons, without the frame around them."""
    lines = (" ".join(line.split()) for line in said.splitlines())
    return "; ".join(line for line in lines if line and not line.startswith(_FRAME) and line != "Done")[:1500]
