"""Settings of release tools, read from a commit of a small repository."""

from __future__ import annotations

from pathlib import Path

from perdure.rules.git_tree import CommitTree
from perdure.rules.release.settings.find import find_settings
from perdure.rules.release.settings.model import ToolSettings
from perdure.workspace.git import open_repository
from tests.rules.kit import make_repository, save


def read_settings(folder: Path, files: dict[str, str | bytes], package: str = "") -> ToolSettings:
    """Commit ``files`` (by path), and return what they set for the package in the folder ``package``."""
    path = make_repository(folder) if not (folder / "app").exists() else (folder / "app")
    commit = save(path, "chore: begin", files)
    repository = open_repository(path)
    root = CommitTree(repository, commit, "")
    return find_settings(root, CommitTree(repository, commit, package) if package else root)


def steps(settings: ToolSettings, *, is_zero: bool = False) -> dict[str, str]:
    """The step by key."""
    return {key: line.step for key, line in settings.lines_at(is_zero=is_zero).items()}
