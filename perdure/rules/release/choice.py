"""Which version is taken: a reviewer's word, the input, a commit's ``Release-As``, else what the entries call for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.errors import UserError
from perdure.rules.git_commits import Commit
from perdure.rules.release.bump import (
    Last,
    Suggestion,
    ask_to_leave,
    find_illegal,
    leaves_initial_development,
    suggest_pre_release,
    suggest_version,
)
from perdure.rules.release.edits import Edited
from perdure.rules.release.entries import Entry, clean_text
from perdure.rules.release.named import find_named
from perdure.rules.release.tags import TagForm
from perdure.rules.release.versions import VersionScheme

_RELEASE_AS = re.compile(r"(?im)^release-as:[ \t]*v?(?P<version>\S+)[ \t]*$")


@dataclass(frozen=True)
class Numbering:
    """Where the numbering stands, and what it may not repeat."""

    last: Last
    taken: Sequence[str]
    """Names of tags here and on the remote."""
    form: TagForm
    scheme: VersionScheme
    pre: str = ""
    """Label of the pre-release that is asked for; empty for a final version."""

    def suggest(self, entries: Sequence[Entry]) -> Suggestion:
        """Return what the entries call for."""
        if self.pre:
            return suggest_pre_release(entries, self.last, self.scheme, self.pre)
        return suggest_version(entries, self.last, self.scheme)

    def find_illegal(self, version: str) -> str:
        """Return which rule a version breaks; empty when it is legal."""
        return find_illegal(version, self.last, self.taken, self.form, self.scheme)

    def leaves_initial_development(self, version: str) -> bool:
        """Whether a version would end 0.x."""
        return leaves_initial_development(version, self.last.version, self.scheme)

    def say_chosen(self, said: str, version: str) -> Suggestion:
        """Return a version that a person chose, with the reason, and that it ends 0.x where it does."""
        more = ", and that ends initial development (0.x)" if self.leaves_initial_development(version) else ""
        return Suggestion(version, "chosen", [f"{said}{more}."])


@dataclass(frozen=True)
class Wish:
    """A version that somebody asked for."""

    version: str
    reason: str
    """For the plan when it is taken, without its full stop."""
    who: str
    """For the finding when it is not: "rhea"."""
    is_person: bool = True
    """Whether a person says so, about this release: only a person ends 0.x."""


def find_release_as(commits: Sequence[Commit]) -> list[Wish]:
    """Return what the newest commit with a ``Release-As:`` footer asks for, as a list of at most one."""
    for commit in commits:
        match = _RELEASE_AS.search(commit.body) if "elease-" in commit.body else None
        if match:
            version = match["version"]
            return [
                Wish(version, f"{version} is asked for by {commit.short} (Release-As)", commit.short, is_person=False)
            ]
    return []


def find_announced(commits: Sequence[Commit], numbers: Numbering, entries: Sequence[Entry]) -> list[Wish]:
    """Return the version that the range announces to its readers, as a list of at most one; none of a pre-release."""
    found = None if numbers.pre else find_named(commits, numbers.last, numbers.scheme)
    if found is None or not entries:
        return []
    version, commit = found
    other = numbers.suggest(entries).version
    if other == version:
        return []
    told = f'{version} is announced by {commit.short} ("{clean_text(commit.subject)}")'
    return [Wish(version, f"{told}; by its changes it would be {other}", commit.short, is_person=False)]


def choose_version(
    edited: Edited,
    given: str,
    commits: Sequence[Commit],
    numbers: Numbering,
    remembered: Sequence[Wish] = (),
    announced: Sequence[Wish] = (),
) -> tuple[Suggestion, list[str]]:
    """Return the version to release and findings: a wish that breaks a rule is named, and the next one is tried.

    A reviewer's word goes before the one ``given`` with the job, then what is ``remembered``, then a commit's wish,
    then what is ``announced``.

    Raises:
        UserError: the version ``given`` with the job, or the proposed one, breaks a rule.
    """
    wishes = [Wish(edited.version, f"{edited.version} was chosen by {edited.version_by}", edited.version_by)]
    findings: list[str] = []
    for wish in [*wishes, *([] if given else [*remembered, *find_release_as(commits), *announced])]:
        problem = _find_problem(wish, numbers)
        if wish.version and not problem:
            return numbers.say_chosen(wish.reason, wish.version), findings
        findings += [f"The version that {wish.who} asked for was not taken: {problem}"] if problem else []
    suggestion = numbers.say_chosen(f"{given} was given with the job", given)
    if not given:
        suggestion = numbers.suggest(edited.entries)
    problem = numbers.find_illegal(suggestion.version)
    if problem and edited.entries:
        raise UserError(f"{problem} (version=… chooses one.)" if not given else problem)
    return suggestion, findings


def _find_problem(wish: Wish, numbers: Numbering) -> str:
    problem = numbers.find_illegal(wish.version) if wish.version else ""
    if problem or wish.is_person or not numbers.leaves_initial_development(wish.version):
        return problem
    return f"{numbers.last.version} is initial development (0.x). {ask_to_leave(wish.version)}"
