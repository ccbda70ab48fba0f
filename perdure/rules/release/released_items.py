"""Items under ``[Unreleased]`` that are released already: after a release by hand nobody may have moved them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.rules.git_tree import CommitTree
from perdure.rules.release.changelog_files import describe_changelog
from perdure.rules.release.changelog_items import item_key
from perdure.rules.release.versions import find_scheme
from perdure.workspace.git import GitError, Repository, open_repository

_COMMIT = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")
_REFERENCE = re.compile(r"#\d+|\b[A-Z]{2,}-\d+\b")
_TELLING_WORDS = 4
"""Shorter items ("Update dependencies.") may well be true of two releases."""


@dataclass(frozen=True)
class Waiting:
    """What waits under ``[Unreleased]``, without what is released."""

    changelog: JsonDict
    left: list[JsonDict] = field(default_factory=list)
    """Items that stay in the file: no section of a version lists them, so that nobody's words are lost."""
    findings: list[str] = field(default_factory=list)


def leave_out_released(history: JsonDict, changelog: JsonDict, scheme: str) -> Waiting:
    """Return the ``changelog`` of a ``release.change_files`` value without the items that the last release held.

    Those are items that a version's section lists too, that stood under ``[Unreleased]`` when the last final release
    was tagged, or whose commits are all part of it. Each one is named.
    """
    items = changelog.get("unreleased", [])
    if not items or changelog.get("becomes_release") or not history["last_tag_commit"]:
        return Waiting(changelog)
    judge = _Judge(history, changelog, scheme)
    kept, left, findings = [], [], []
    for item in items:
        reason, is_listed = judge.find_reason(item)
        if not reason:
            kept.append(item)
            continue
        where = "It goes from there." if is_listed else f"It stays there: move it under {history['last_version']}."
        findings.append(f'Left out of [Unreleased]: "{_first_line(item)}" {reason}. {where}')
        left += [] if is_listed else [item]
    return Waiting({**changelog, "unreleased": kept}, left, findings)


class _Judge:
    """Knows what the last release held."""

    def __init__(self, history: JsonDict, changelog: JsonDict, scheme: str) -> None:
        self._repository = open_repository(Path(history["repository"]))
        self._commit = str(history["last_tag_commit"])
        self._name = history["last_tag"] or history["last_version"]
        self._listed: Mapping[str, str] = changelog.get("listed", {})
        is_final = find_scheme(scheme).is_final(history["last_version"]) if history["last_version"] else False
        # A pre-release by hand leaves its items for the final one.
        self._stood = set(_read_waiting(self._repository, self._commit, history["path"])) if is_final else set()

    def find_reason(self, item: JsonDict) -> tuple[str, bool]:
        """Return (why it is released, whether a version lists it); an empty reason when it is not."""
        key = item_key(item["text"])
        listed, stood = self._listed.get(key, ""), (item["section"], key) in self._stood
        if listed and (stood or is_telling(item["text"])):
            return f"is listed under {listed} already", True
        if stood:
            return f"stood there already when {self._name} was released", False
        commits = _COMMIT.findall(item["text"])
        if commits and all(_is_part(self._repository, name, self._commit) for name in commits):
            return f"is of {', '.join(commits)}, which is part of {self._name}", False
        return "", False


def is_telling(text: str) -> bool:
    """Whether an item says enough to be known by its text."""
    return len(text.split()) >= _TELLING_WORDS or bool(_REFERENCE.search(text))


def _read_waiting(repository: Repository, commit: str, folder: str) -> Iterator[tuple[str, str]]:
    try:
        changelog, _ = describe_changelog(CommitTree(repository, commit, folder))
    except UserError:
        return  # the package or a readable changelog was not there then
    if not changelog.get("becomes_release"):
        yield from ((item["section"], item_key(item["text"])) for item in changelog["unreleased"])


def _is_part(repository: Repository, name: str, release: str) -> bool:
    try:
        commit = repository.read("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        base = repository.read("merge-base", commit.decode().strip(), release)
    except GitError:
        return False  # no commit of that name, or of another history
    return commit.split() == base.split()[:1]


def _first_line(item: JsonDict) -> str:
    return str(item["text"]).split("\n", 1)[0]
