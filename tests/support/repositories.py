"""Real repositories for tests: a project with a release behind it, and a bare remote whose hook counts pushes."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_DATE": "2026-11-01T10:00:00Z",
    "GIT_COMMITTER_DATE": "2026-11-01T10:00:00Z",
    "LC_ALL": "C.UTF-8",
}

_COUNTING_HOOK = """#!/bin/sh
echo push >> "$GIT_DIR/calls"
while read old new ref; do echo "$old $new $ref" >> "$GIT_DIR/witness"; done
"""


def git(folder: Path, *args: str) -> str:
    """Run git as a user would; return its output without the last line end."""
    ended = subprocess.run(["git", *args], cwd=folder, env=_ENV, capture_output=True, text=True, check=True)
    return ended.stdout.rstrip("\n")


def commit(folder: Path, message: str, **files: str) -> str:
    """Write ``files`` (name with ``__`` for the dot) and commit them; return the commit's id."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@dataclass(frozen=True)
class Project:
    """A repository with a release v1.2.0 and unreleased work, and its bare remote."""

    path: Path
    remote: Path

    def pushes(self, ref: str) -> list[str]:
        """Every update of ``ref`` that the remote's own hook has seen, oldest first."""
        witness = self.remote / "witness"
        lines = witness.read_text().splitlines() if witness.exists() else []
        return [line for line in lines if line.endswith(f" {ref}")]

    def moves(self, ref: str) -> list[str]:
        """The reflog of a local ref: every value it has had, newest first."""
        return git(self.path, "reflog", "show", "--format=%H", ref).splitlines()


def make_project(folder: Path, *, name: str = "orders", remote: bool = True) -> Project:
    """A project at 1.2.0 with a feature and a fix since."""
    path, bare = folder / name, folder / f"{name}.git"
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    git(path, "config", "user.name", "Mara Maintainer")
    git(path, "config", "user.email", "mara@example.org")
    pyproject = '[project]\nname = "orders"\nversion = "1.2.0"  # kept\n'
    changelog = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-10-01\n\n### Added\n\n- Orders.\n"
    commit(path, "feat: orders", pyproject__toml=pyproject, CHANGELOG__md=changelog, orders__py="ORDERS = []\n")
    git(path, "tag", "-a", "v1.2.0", "-m", "v1.2.0")
    commit(path, "feat: bulk import", orders__py="ORDERS = []\nBULK = True\n")
    commit(path, "fix(api): an empty order is refused", orders__py="ORDERS = []\nBULK = True\nEMPTY = False\n")
    if remote:
        add_remote(path, "main", "v1.2.0")
    return Project(path, bare)


def add_remote(path: Path, *refs: str) -> Path:
    """Make a bare remote beside a repository that has ``refs`` already and counts what comes after; return its path."""
    bare = path.parent / f"{path.name}.git"
    git(path.parent, "init", "-q", "--bare", "-b", "main", str(bare))
    git(path, "remote", "add", "origin", str(bare))
    git(path, "push", "-q", "origin", *refs)
    hook = bare / "hooks" / "post-receive"
    hook.write_text(_COUNTING_HOOK)
    hook.chmod(0o755)
    return bare
