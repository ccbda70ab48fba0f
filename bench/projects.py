"""What is released: a small project with a remote, a copy that a script releases, and one whose next diff is 20 MB."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.kit import environment

COMMITS = 20
"""Unreleased commits of the small project."""

_CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-10-01\n\n### Added\n\n- Orders.\n"

RELEASE_SCRIPT = Path(__file__).with_name("release.sh")


@dataclass(frozen=True)
class Project:
    """A clone on ``main`` with a release v1.2.0 behind it, and its bare remote."""

    path: Path
    remote: Path


def git(folder: Path, *args: str) -> str:
    """Run git as its user would; return what it printed."""
    return subprocess.run(
        ["git", *args], cwd=folder, env=environment(folder), capture_output=True, text=True, check=True
    ).stdout.strip()


def make_project(folder: Path, name: str) -> Project:
    """A small Python project: one release, twenty commits since, a remote that has them all."""
    project = _begin(folder, name, {"pyproject.toml": f'[project]\nname = "{name}"\nversion = "1.2.0"\n'})
    for number in range(COMMITS):
        kind = ("feat", "fix", "docs", "refactor")[number % 4]
        (project.path / f"part_{number}.py").write_text(f"PART = {number}\n" * 20)
        _commit(project.path, f"{kind}: part {number} does what was asked for")
    git(project.path, "push", "-q", "origin", "main")
    return project


def copy_project(made: Project, folder: Path, name: str) -> Project:
    """The same project again, with a remote of its own; much quicker than making one."""
    copy = Project(folder / name, folder / f"{name}.git")
    shutil.copytree(made.path, copy.path, symlinks=True)
    shutil.copytree(made.remote, copy.remote, symlinks=True)
    git(copy.path, "remote", "set-url", "origin", str(copy.remote))
    return copy


def make_huge_project(folder: Path, name: str, diff_bytes: int) -> Project:
    """A project whose release changes one line of half ``diff_bytes``: a package.json without line ends.

    The plan's diff has that line twice, as it was and as it will be.
    """
    padding = "0123456789abcdef" * (diff_bytes // 2 // 16)
    package = f'{{"name": "{name}", "version": "1.2.0", "description": "{padding}"}}'
    project = _begin(folder, name, {"package.json": package})
    (project.path / "part.js").write_text("export const part = 1\n")
    _commit(project.path, "feat: a part")
    git(project.path, "push", "-q", "origin", "main")
    return project


def _begin(folder: Path, name: str, files: dict[str, str]) -> Project:
    project = Project(folder / name, folder / f"{name}.git")
    project.path.mkdir(parents=True)
    git(project.path, "init", "-q", "-b", "main")
    git(project.path, "config", "user.name", "Mara Maintainer")
    git(project.path, "config", "user.email", "mara@example.org")
    for path, text in files.items():
        (project.path / path).write_text(text)
    (project.path / "CHANGELOG.md").write_text(_CHANGELOG)
    _commit(project.path, "feat: begin")
    git(project.path, "tag", "-a", "v1.2.0", "-m", "v1.2.0")
    git(folder, "init", "-q", "--bare", "-b", "main", str(project.remote))
    git(project.path, "remote", "add", "origin", str(project.remote))
    git(project.path, "push", "-q", "origin", "main", "v1.2.0")
    return project


def _commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
