"""What is judged: series of release tags in bare repositories, read from a file; each gives pairs of releases."""

from __future__ import annotations

import fnmatch
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from perdure.errors import UserError
from perdure.rules.git_branch import list_refs, list_tags
from perdure.rules.git_commits import read_tag_commits
from perdure.rules.release.tags import ReleaseTag, TagForm, find_release_tags, guess_forms, parse_tag_form
from perdure.rules.release.versions import VersionScheme, find_scheme
from perdure.workspace.git import Repository, open_repository


@dataclass(frozen=True)
class Series:
    """One project's releases."""

    repository: Path
    form: str = ""
    """Tag form; empty: the most frequent one among the tags that look like versions."""
    scheme: str = "semver"
    path: str = "."
    tags: tuple[str, ...] = ()
    """Only these are targets (names or globs); empty: every final release."""

    @property
    def name(self) -> str:
        """A short name for reports."""
        place = self.repository.parent if self.repository.name == "repo" else self.repository
        return place.name.removesuffix(".git") + (f":{self.path}" if self.path != "." else "")


@dataclass(frozen=True)
class Pair:
    """A release that really happened, and the one before it."""

    target: ReleaseTag
    commit: str
    """The commit that the target's tag names."""
    last: ReleaseTag


def read_series(path: Path) -> list[Series]:
    """Read one series a line: a bare repository's path, then its tag form, options (``scheme=``, ``path=``) and tags.

    ``#`` begins a comment. Raises ``UserError`` with the line for what cannot be read.
    """
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        words = shlex.split(line, comments=True)
        if words:
            found.append(_read_line(words, path, f"{path}:{number}"))
    return found


def _read_line(words: list[str], file: Path, where: str) -> Series:
    series = Series((file.parent / words[0]).resolve())
    if not series.repository.is_dir():
        raise UserError(f"{where}: there is no folder {series.repository}. Expected a bare repository.")
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if "{version" in word:
            series = replace(series, form=value if key in ("tag", "form") else word)
        elif equals and key in ("scheme", "path"):
            series = replace(series, scheme=value) if key == "scheme" else replace(series, path=value)
        else:
            series = replace(series, tags=(*series.tags, word))
    return series


def open_series(series: Series) -> tuple[Repository, TagForm, VersionScheme]:
    """Return the repository with the series' form and scheme. Raises ``UserError`` when no tag looks like a version."""
    repository, scheme = open_repository(series.repository), find_scheme(series.scheme)
    if series.form:
        return repository, parse_tag_form(series.form), scheme
    names = [name for name in list_tags(repository) if _is_wanted(name, series)]
    guesses = [form for form, _, _ in guess_forms(names) if find_release_tags(names, form, scheme)]
    if not guesses:
        raise UserError(
            f"No tag of {series.repository} names a {series.scheme} version. Give its form: 'v{{version}}'."
        )
    return repository, guesses[0], scheme


def find_pairs(series: Series, repository: Repository, form: TagForm, scheme: VersionScheme) -> list[Pair]:
    """Return the final releases that have an earlier final one in their history, oldest version first."""
    commits = read_tag_commits(repository)
    releases = [tag for tag in find_release_tags(commits, form, scheme) if scheme.is_final(tag.version)]
    pairs = []
    for target in reversed(releases):
        last = _find_last(repository, target, releases, commits, scheme) if _is_wanted(target.name, series) else None
        if last is not None:
            pairs.append(Pair(target, commits[target.name], last))
    return pairs


def _find_last(
    repository: Repository,
    target: ReleaseTag,
    releases: list[ReleaseTag],
    commits: dict[str, str],
    scheme: VersionScheme,
) -> ReleaseTag | None:
    """The highest lower release that the target's history holds and that is not the target's own commit."""
    head = commits[target.name]
    merged = {ref.removeprefix("refs/tags/") for ref in list_refs(repository, "refs/tags", f"--merged={head}")}
    lower = [tag for tag in releases if scheme.key(tag.version) < scheme.key(target.version)]
    return next((tag for tag in lower if tag.name in merged and commits[tag.name] != head), None)


def _is_wanted(name: str, series: Series) -> bool:
    return not series.tags or any(fnmatch.fnmatchcase(name, pattern) for pattern in series.tags)
