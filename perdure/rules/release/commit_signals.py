"""What each commit of a range says: silent ones and undone ones left out, the rest as type, scope and step."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from perdure.rules.git_commits import Commit
from perdure.rules.release.commit_types import LISTED, PIPELINE, is_known
from perdure.rules.release.conventional import ConventionalCommit, parse_conventional
from perdure.rules.release.gitmoji import split_gitmoji
from perdure.rules.release.release_commits import is_release_commit
from perdure.rules.release.reverts import Cancelled, cancel_reverts
from perdure.rules.release.versions import Bump

_UNFINISHED = ("fixup! ", "squash! ", "amend! ")
_BULLET = re.compile(r"[*-] +(?P<text>\S.*)")


@dataclass(frozen=True)
class Signal:
    """One change that a commit tells of."""

    commit: Commit
    typed: ConventionalCommit | None
    """``None``: prose."""
    part: int = 0
    """0 for the commit's subject; from 2 for the bullets of a squashed body after the first."""
    is_bullet: bool = False
    """Whether it is a bullet of a squashed body, whose subject is prose."""

    @cached_property
    def step(self) -> Bump | None:
        """How far it moves the version by its type alone; ``None`` for prose and for types that are not listed.

        A bullet is a step on the way to what the subject tells: "feat: add the option" within the repair of something.
        It is at most a patch, unless it says that something breaks. So is a feature of the pipeline.
        """
        step = self.plain_step
        return "patch" if step == "minor" and (self.is_bullet or self.is_pipeline) else step

    @property
    def plain_step(self) -> Bump | None:
        """What the convention says of its type, wherever it stands."""
        if self.typed is None:
            return None
        if self.typed.breaking:
            return "major"
        return LISTED[self.typed.type][1] if self.typed.type in LISTED else None

    @cached_property
    def is_pipeline(self) -> bool:
        """Whether it changes what builds and delivers the project, by its scope, and breaks nothing."""
        typed = self.typed
        return typed is not None and not typed.breaking and typed.type in LISTED and typed.scope.lower() in PIPELINE

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """What a project's habits may name it by, the most special first: ``feat(dict)``, ``feat``.

        None for prose and bullets. What a type counts as says nothing of the pipeline's changes of that type.
        """
        if self.typed is None or self.is_bullet:
            return ()
        if self.typed.breaking:
            return ("breaking",)
        special = (f"{self.typed.type}({self.typed.scope})",) if self.typed.scope else ()
        return special if self.is_pipeline else (*special, self.typed.type)


class Reading:
    """What commits say, each read once however many packages list it. Lives as long as one plan is made."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool, frozenset[str]], tuple[Signal, ...]] = {}

    def read(self, commit: Commit, types: frozenset[str], *, is_revert: bool) -> tuple[Signal, ...]:
        """Return the changes that a commit tells of; none for one that says nothing."""
        key = (commit.id, is_revert, types)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = () if _is_silent(commit) else tuple(_read(commit, types, is_revert=is_revert))
        return found


def read_signals(
    commits: Sequence[Commit], types: Collection[str] = (), reading: Reading | None = None
) -> tuple[list[Signal], Cancelled]:
    """Return what ``commits`` (newest first) say, in their order, and what reverts left out.

    ``types`` are known besides the usual ones: those that the project's settings name. ``reading`` remembers what was
    read for another package.

    Merges, release commits, unfinished ones (``fixup!``) and what was undone in the range say nothing.
    """
    cancelled = cancel_reverts(commits)
    released, known, read = set(cancelled.released), frozenset(types), (reading or Reading()).read
    told = (commit for commit in commits if commit.id not in cancelled.ids)
    return [signal for one in told for signal in read(one, known, is_revert=one.id in released)], cancelled


def follows_convention(signals: Sequence[Signal]) -> bool:
    """Whether at least half of them have a type; an empty range does."""
    return 2 * sum(signal.typed is not None for signal in signals) >= len(signals)


def _is_silent(commit: Commit) -> bool:
    is_unfinished = commit.subject.startswith(_UNFINISHED)
    return commit.is_merge or not commit.subject or is_unfinished or is_release_commit(commit.subject)


def _read(commit: Commit, types: Collection[str], *, is_revert: bool) -> list[Signal]:
    typed = _parse(commit, types, is_revert=is_revert)
    if typed is None and (squashed := _read_squashed(commit)):
        return squashed
    return [Signal(commit, typed)]


def _parse(commit: Commit, types: Collection[str], *, is_revert: bool) -> ConventionalCommit | None:
    """Read a commit by the convention or its emoji; ``None`` for prose, ``subsystem: text`` included."""
    emoji, rest = split_gitmoji(commit.subject)
    typed = parse_conventional(f"{rest}\n\n{commit.body}" if commit.body else rest)
    if is_revert and (typed is None or typed.type == "revert" or typed.type not in LISTED):
        described = typed.description if typed and typed.type == "revert" else commit.subject
        return ConventionalCommit("revert", "", described, "", (), bool(typed and typed.breaking), "")
    if typed is not None and (typed.breaking or is_known(typed.type) or typed.type in types):
        return replace(typed, breaking=True) if emoji == "breaking" else typed
    return _from_emoji(emoji, rest) if emoji else None


def _from_emoji(emoji: str, text: str) -> ConventionalCommit:
    is_breaking = emoji == "breaking"
    return ConventionalCommit("change" if is_breaking else emoji, "", text, "", (), is_breaking, "")


def _read_squashed(commit: Commit) -> list[Signal]:
    """Typed bullets in the body of a squashed commit whose subject is prose, each a change of its own."""
    bullets = [match["text"] for line in commit.body.split("\n") if (match := _BULLET.fullmatch(line.strip()))]
    typed = [found for text in bullets if (found := parse_conventional(text)) and is_known(found.type)]
    return [Signal(commit, found, place if place > 1 else 0, is_bullet=True) for place, found in enumerate(typed, 1)]
