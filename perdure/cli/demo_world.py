"""The demo's scratch world: a clone, a bare remote with an outside witness, a data folder. All removable."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import SetupError, UserError
from perdure.scratch import scratch_folder

# Only the first push that moves main is held, until the demo has killed the worker in the middle of it.
_HOLD = """#!/bin/sh
if [ ! -e "$GIT_DIR/go" ]; then
  : > "$GIT_DIR/held"
  while [ ! -e "$GIT_DIR/go" ]; do sleep 0.05; done
fi
"""
# The witness is the remote's: it counts what arrived, whatever Perdure believes.
_COUNT = """#!/bin/sh
while read old new ref; do echo "$ref $new" >> "$GIT_DIR/witness"; done
"""

_ZERO = "0" * 40


@dataclass(frozen=True)
class World:
    """Folders of one demo."""

    root: Path
    clone: Path
    remote: Path
    data: Path
    origin: str
    """What was cloned, for people."""

    @property
    def held(self) -> Path:
        """Appears when the remote holds the first push."""
        return self.remote / "held"

    def let_go(self) -> None:
        """Let pushes through from now on."""
        (self.remote / "go").touch()

    def witnessed(self) -> dict[str, int]:
        """How often each ref arrived at the remote, by its own hook; deletions do not count."""
        lines = (self.remote / "witness").read_text(encoding="utf-8").splitlines()
        counts: dict[str, int] = {}
        for ref, new in (line.split(" ") for line in lines):
            if new != _ZERO:
                counts[ref] = counts.get(ref, 0) + 1
        return counts

    def refs(self) -> dict[str, str]:
        """The remote's refs now."""
        listed = git(self.remote, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in listed)


@contextmanager
def scratch_world(repository: Path | None) -> Iterator[World]:
    """Make the world and remove it, whatever happens in between. Nothing of ``repository`` is touched.

    Raises:
        UserError: ``repository`` is not a git repository.
        SetupError: git is not there.
    """
    if shutil.which("git") is None:
        raise SetupError("The demo needs git, and there is none on the PATH. Install git and try again.")
    with scratch_folder("demo") as root:
        yield _make_world(root, repository)


def git(folder: Path, *args: str) -> str:
    """Run git in the scratch world with none of the user's settings; return its output.

    Raises:
        UserError: git refused; its words are in the message.
    """
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
    }
    argv = ["git", "-c", "safe.directory=*", "-c", "init.defaultBranch=main", *args]
    ended = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, errors="replace")
    if ended.returncode:
        raise UserError(f"`git {' '.join(args)}` did not work for the demo: {ended.stderr.strip()[-400:]}")
    return ended.stdout.strip()


def add_example_work(world: World) -> None:
    """Commit a feature and a fix, so that there is something to release."""
    for subject, text in (("feat: greet in every language", "hello\n"), ("fix: greet nobody twice", "hello, once\n")):
        (world.clone / "perdure-demo.txt").write_text(text, encoding="utf-8")
        git(world.clone, "add", "perdure-demo.txt")
        git(world.clone, "commit", "-q", "-m", subject)
    git(world.clone, "push", "-q", "origin", "main")


def _make_world(root: Path, repository: Path | None) -> World:
    name = repository.resolve().name if repository else "greeter"
    origin = str(repository or "a small example")
    world = World(root, root / "clone", root / f"{name}.git", root / "data", origin)
    if repository is None:
        _make_example(world.clone)
    else:
        git(root, "clone", "-q", "--no-local", str(repository.resolve()), str(world.clone))
        git(world.clone, "remote", "remove", "origin")
    git(world.clone, "config", "user.name", "Demo Maintainer")
    git(world.clone, "config", "user.email", "demo@example.org")
    git(world.clone, "checkout", "-q", "-B", "main")
    git(root, "init", "-q", "--bare", str(world.remote))
    git(world.clone, "remote", "add", "origin", str(world.remote))
    git(world.clone, "push", "-q", "origin", "main", "--tags")
    for name, text in (("pre-receive", _HOLD), ("post-receive", _COUNT)):
        hook = world.remote / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(text, encoding="utf-8")
        hook.chmod(0o755)
    return world


def _make_example(folder: Path) -> None:
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "Demo Maintainer")
    git(folder, "config", "user.email", "demo@example.org")
    (folder / "pyproject.toml").write_text('[project]\nname = "greeter"\nversion = "1.2.0"\n', encoding="utf-8")
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.0] - 2026-01-15\n\n- Greets.\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "feat: greet")
    git(folder, "tag", "-a", "v1.2.0", "-m", "v1.2.0")
    (folder / "greeter.py").write_text("print('hello')\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "feat: greet from the command line")
