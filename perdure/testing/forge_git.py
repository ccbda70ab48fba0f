"""What a forge does with its repository: merging in the three usual ways, protecting a branch."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PROTECT = """#!/bin/sh
# The branch is protected: only the forge itself moves it.
[ "$1" = "refs/heads/{branch}" ] && {{ echo "protected branch: open a request" >&2; exit 1; }}
exit 0
"""


@dataclass(frozen=True)
class ForgeGit:
    """A bare repository."""

    path: Path

    def run(self, *args: str, stdin: str = "", check: bool = True) -> str:
        """Run git in it as the forge."""
        env = {
            "PATH": os.defpath,
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{role}_NAME": "Forge" for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": "forge@example.org" for role in ("AUTHOR", "COMMITTER")},
        }
        argv = ["git", f"--git-dir={self.path}", *args]
        ended = subprocess.run(argv, env=env, input=stdin, capture_output=True, text=True)
        if check and ended.returncode:
            raise AssertionError(f"{' '.join(args)}: {ended.stderr}")
        return ended.stdout.strip()

    def resolve(self, name: str) -> str:
        """The id of a ref or revision; empty when there is none."""
        return self.run("rev-parse", "--verify", "--quiet", name, check=False)

    def protect(self, branch: str) -> None:
        """Refuse pushes to a branch."""
        hook = self.path / "hooks" / "update"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(_PROTECT.format(branch=branch))
        hook.chmod(0o755)

    def merge(self, base: str, head: str, how: str, change: str = "") -> str:
        """Move ``base`` to what a ``merge``, ``squash`` or ``rebase`` of ``head`` gives; return that commit."""
        old, proposed = self.resolve(f"refs/heads/{base}"), self.resolve(f"refs/heads/{head}")
        tree = self.run("merge-tree", "--write-tree", old, proposed)
        if change:
            tree = self.with_file(tree, "README.md", change)
        parents = ["-p", old] + (["-p", proposed] if how == "merge" else [])
        message = self.run("log", "-1", "--format=%B", proposed)
        words = {"merge": f"Merge branch '{head}'", "squash": f"{message} (#1)", "rebase": message}
        commit = self.run("commit-tree", tree, *parents, "-m", words[how])
        self.run("update-ref", f"refs/heads/{base}", commit, old)
        return commit

    def commit(self, branch: str, path: str, text: str, message: str = "feat: of somebody else") -> str:
        """Put one more commit on a branch, past the protection."""
        old = self.resolve(f"refs/heads/{branch}")
        tree = self.with_file(f"{old}^{{tree}}", path, text)
        commit = self.run("commit-tree", tree, "-p", old, "-m", message)
        self.run("update-ref", f"refs/heads/{branch}", commit, old)
        return commit

    def with_file(self, tree: str, path: str, text: str) -> str:
        """A tree with one top-level file more or other."""
        blob = self.run("hash-object", "-w", "--stdin", stdin=text)
        rows = [line for line in self.run("ls-tree", tree).splitlines() if not line.endswith(f"\t{path}")]
        return self.run("mktree", stdin="\n".join([*rows, f"100644 blob {blob}\t{path}"]) + "\n")
