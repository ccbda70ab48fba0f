"""Where the path and the scope of a commit disagree on its package: named for the reviewer, never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from perdure.rules.git_commits import Commit
from perdure.rules.git_tree import CommitTree
from perdure.rules.release.conventional import parse_conventional
from perdure.rules.release.entries import clean_text
from perdure.workspace.git import Repository

_SHOWN = 5


def name_disagreements(
    repository: Repository, head: str, path: str, beneath: Sequence[Commit], every: Sequence[Commit]
) -> list[str]:
    """Return findings about a package's release: its entries are the commits ``beneath`` its folder, by path alone.

    Told are commits of the range (``every``) that lie elsewhere although their scope names this package, and commits
    beneath it whose scope names another package of the same folder.
    """
    package, parent = PurePosixPath(path).name, PurePosixPath(path).parent
    tree = CommitTree(repository, head, "" if str(parent) == "." else str(parent))
    others = {name.lower() for name in tree.names if tree.has_folder(name)} - {package.lower()}
    ids = {commit.id for commit in beneath}
    elsewhere = [one for one in every if one.id not in ids and _scope(one) == package.lower()]
    foreign = [one for one in beneath if _scope(one) in others]
    return [
        *_tell(elsewhere, f"Not listed, because they change nothing in {path}, though their scope names it"),
        *_tell(foreign, f"Listed, because they change {path}, though their scope names another package"),
    ]


def _scope(commit: Commit) -> str:
    """The scope of a change in lower case, without the name space of a package; empty for merges and prose."""
    typed = None if commit.is_merge else parse_conventional(commit.subject)
    return typed.scope.lower().rpartition("/")[2] if typed else ""


def _tell(commits: Sequence[Commit], why: str) -> list[str]:
    if not commits:
        return []
    shown = "; ".join(f"{commit.short} {clean_text(commit.subject)}" for commit in commits[:_SHOWN])
    more = f" and {len(commits) - _SHOWN} more" if len(commits) > _SHOWN else ""
    return [f"{why}: {shown}{more}."]
