"""Writing into somebody's repository: exact objects and refs by compare-and-swap, running nothing that it brings."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from perdure.effects.base import Finished, Runner
from perdure.errors import EffectFailed
from perdure.scratch import scratch_folder
from perdure.workspace.git import Repository
from perdure.workspace.git_process import git_command, git_environment
from perdure.workspace.refs import zero_id
from perdure.workspace.view import write_git_dir

WRITE_LIMIT = timedelta(minutes=5)
"""Wall limit of one writing git command."""


@dataclass(frozen=True)
class Writer:
    """A git directory of ours whose objects and refs are the repository's own. Every command goes by the runner."""

    repository: Repository
    git_dir: Path
    runner: Runner
    env: Mapping[str, str]
    """Who and when, for the reflog."""

    def run(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Finished:
        """Run a writing git command.

        Raises:
            EffectFailed: git said no; carries what it said.
            EffectUnknown: it met its wall limit.
        """
        argv = git_command(self.git_dir, args)
        full = git_environment({**self.env, **(env or {})})
        finished = self.runner.run(argv, env=full, cwd=self.git_dir, stdin=stdin, limit=WRITE_LIMIT)
        if finished.code != 0:
            said = finished.output.decode("utf-8", "replace").strip()
            raise EffectFailed(f"git {args[0]} failed in {self.repository.place} (exit {finished.code}): {said}")
        return finished

    def move_ref(self, ref: str, old: str, new: str, reason: str) -> None:
        """Move ``ref`` from ``old`` to ``new`` in one step, only while it is at ``old``; zero ids mean "none".

        Raises:
            EffectFailed: it is not at ``old``, or git refuses.
        """
        refuse_links(self.repository, ref)
        if new == zero_id(self.repository.object_format):
            line = f"delete {ref}\0{old}\0"
        elif old == zero_id(self.repository.object_format):
            line = f"create {ref}\0{new}\0"
        else:
            line = f"update {ref}\0{new}\0{old}\0"
        self.run("update-ref", "-m", reason, "--stdin", "-z", stdin=f"option no-deref\0{line}".encode())


@contextmanager
def open_writer(repository: Repository, runner: Runner, env: Mapping[str, str]) -> Iterator[Writer]:
    """Give a writer onto ``repository``.

    Raises:
        EffectFailed: a place that would be written is a symbolic link.
    """
    refuse_links(repository)
    with scratch_folder("writer") as folder:
        head = repository.head_text()
        write_git_dir(folder, object_format=repository.object_format, head=head, settings=_settings(repository))
        shutil.rmtree(folder / "objects")
        for name in ("objects", "refs", "packed-refs"):
            (folder / name).symlink_to(repository.common_dir / name)
        if repository.is_shallow:
            (folder / "shallow").symlink_to(repository.common_dir / "shallow")
        _link_logs(folder, repository)
        yield Writer(repository, folder, runner, env)


def _settings(repository: Repository) -> dict[str, str]:
    """Keys that say with which permissions and records git writes; none can name a program."""
    is_bare = repository.work_tree is None
    settings = {
        "core.logallrefupdates": repository.config("core.logallrefupdates") or ("false" if is_bare else "true"),
        # Approved work survives a power failure: objects and refs are synced before the receipt is written.
        "core.fsync": "committed,loose-object",
    }
    shared = repository.config("core.sharedrepository")
    return {**settings, "core.sharedrepository": shared} if shared else settings


def _link_logs(folder: Path, repository: Repository) -> None:
    """Write reflogs through: shared ones of refs, and HEAD's own of the work tree."""
    (folder / "logs").mkdir()
    for real in (repository.common_dir / "logs" / "refs", repository.git_dir / "logs"):
        real.mkdir(parents=True, exist_ok=True)
    (folder / "logs" / "refs").symlink_to(repository.common_dir / "logs" / "refs")
    (folder / "logs" / "HEAD").symlink_to(repository.git_dir / "logs" / "HEAD")


def refuse_links(repository: Repository, ref: str = "") -> None:
    """Refuse to write where a link would lead the write elsewhere, or ``ref`` stands for another ref.

    Raises:
        EffectFailed: names the link.
    """
    common = repository.common_dir
    places = [common / name for name in ("objects", "objects/pack", "refs", "packed-refs", "logs", "logs/refs")]
    places += [repository.git_dir / name for name in ("logs", "logs/HEAD", "index", "index.lock")]
    for start in (common, common / "logs"):
        parts = ref.split("/")
        places += [start.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1) if ref]
    for place in places:
        if place.is_symlink():
            raise EffectFailed(f"{place} is a symbolic link; nothing is written through links. Nothing was changed.")
    loose = common / ref
    if ref and loose.is_file() and loose.read_bytes()[:4] == b"ref:":
        # Also one that points nowhere: git would take it for absent.
        raise EffectFailed(f"{ref} stands for another ref; a ref that points at a ref is not moved.")
