"""A project's own type map, learnt from its earlier releases: which commits it released as which step.

Nothing here is a setting: a habit is what the project's own tags show, and the plan names it where it decided.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from perdure.contracts.base import JsonDict
from perdure.rules.git_commits import Commit
from perdure.rules.release.commit_signals import Signal, follows_convention, read_signals
from perdure.rules.release.versions import BUMPS, Bump

_WINDOW = 8
"""So many of the latest releases that say something about a key count: policies change over the years."""
_FEWEST = 2
"""One release may have been a slip. Two alike are a policy: asked for more, projects were misread for months."""
_SHARE = (3, 4)
"""At least three of four must agree: up to three releases, all."""
_FEWEST_LISTED = 4
_NO_CHANGELOG: Mapping[str, Sequence[str]] = {}
_WORD = re.compile(r"[^\W_]+")
_REQUEST = re.compile(r" *\([#!]\d+\)$")


@dataclass(frozen=True)
class PastRelease:
    """One earlier release."""

    commits: Sequence[Commit]
    """Newest first."""
    step: Bump
    """What the project really made of them."""
    is_alike: bool = True
    """Whether its step tells of the next one: both in initial development (0.x), or both after it."""
    version: str = ""


@dataclass(frozen=True)
class Habit:
    """What a project makes of changes of one kind."""

    step: Bump
    seen: int
    """So many of the latest ``of`` releases that such changes decided had this step."""
    of: int
    said: str = ""
    """How it is known when not from the tags: "confirmed by ann on 2026-11-30"."""
    is_rule: bool = False
    """Whether the project's settings say so: then it counts for types that the convention does not list as well."""

    @property
    def told(self) -> str:
        """How it is known."""
        return self.said or f"so it was in {self.seen} of the last {self.of} releases that such changes decided"


@dataclass(frozen=True)
class Habits:
    """What the earlier releases show."""

    steps: Mapping[str, Habit] = field(default_factory=dict)
    """By key: ``feat``, ``feat(dict)``, ``breaking``."""
    quiet: int = 0
    """Releases that held nothing but changes that users do not notice."""
    listed: Mapping[str, bool] = field(default_factory=dict)
    """By key of a type that the common convention does not list: whether the project's own changelog does."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """By key of a kind of change that the project's settings leave out: where they say so."""

    @property
    def types(self) -> frozenset[str]:
        """Types that the project's settings name."""
        return frozenset(key.partition("(")[0] for key, habit in self.steps.items() if habit.is_rule)

    def find(self, signal: Signal) -> tuple[str, Habit] | None:
        """The most special habit about a change; ``None`` when there is none."""
        if not self.steps:
            return None  # most packages have learnt nothing, and some have 40,000 changes
        known = ((key, self.steps[key]) for key in _list_keys(signal) if key in self.steps)
        learnt = signal.keys if signal.step is not None else ()
        return next(((key, habit) for key, habit in known if habit.is_rule or key in learnt), None)

    def step(self, signal: Signal) -> Bump | None:
        """How far a change moves the version in this project; ``None`` when its type is not listed."""
        found = self.find(signal)
        return found[1].step if found else signal.step

    def find_silent(self, signal: Signal) -> str:
        """Where the project's settings leave a change out; empty when they do not."""
        if not self.silent:
            return ""
        for key in _list_keys(signal):
            if key in self.silent or key in self.steps:
                return self.silent.get(key, "")
        return ""

    def lists(self, signal: Signal) -> bool:
        """Whether the project's changelog lists changes of a kind that is not listed by its type alone."""
        return next((self.listed[key] for key in signal.keys if key in self.listed), False)

    def to_json(self) -> JsonDict:
        """Return plain JSON; inverse of :func:`habits_from_json`."""
        steps = {key: vars(habit) for key, habit in self.steps.items()}
        return {"steps": steps, "quiet": self.quiet, "listed": dict(self.listed)}


def habits_from_json(value: JsonDict) -> Habits:
    """Return the habits that :meth:`Habits.to_json` wrote."""
    steps = {key: Habit(**habit) for key, habit in value["steps"].items()}
    return Habits(steps, value["quiet"], value.get("listed", {}))  # values gathered by an earlier code lack the last


def learn_habits(
    releases: Sequence[PastRelease],
    changelog: Mapping[str, Sequence[str]] = _NO_CHANGELOG,
    types: Collection[str] = (),
) -> Habits:
    """Learn from releases, oldest first. Only a release whose step one kind of change decided alone tells of it.

    ``changelog`` gives the items that the project's own changelog has for a release, by version. ``types`` are those
    that the project's settings name besides the usual ones.
    """
    seen: dict[str, list[Bump]] = {}
    quiet = 0
    for release in releases:
        signals, _ = read_signals(release.commits, types)
        deciding = _find_deciding(signals)
        quiet += bool(signals) and all(signal.typed is not None for signal in signals) and not _count(deciding, types)
        for key in _shared_keys(deciding) if release.is_alike else ():
            seen.setdefault(key, []).append(release.step)
    habits = {key: habit for key, steps in seen.items() if (habit := _settle(steps[-_WINDOW:]))}
    return Habits(habits, quiet, learn_listed(releases[-_WINDOW:], changelog))


def learn_listed(releases: Sequence[PastRelease], changelog: Mapping[str, Sequence[str]]) -> dict[str, bool]:
    """Return, of kinds of change that are not listed by their type, whether ``changelog`` lists three in four of them.

    A change is listed when an item of its release's section holds its description, word by word. By key of the kind;
    those of which fewer than four changes were in releases that have a section are left out.
    """
    seen: dict[str, list[bool]] = {}
    for release in releases:
        items = [_join_words(item) for item in changelog.get(release.version, ())]
        for signal in read_signals(release.commits)[0] if items else ():
            told = any(_describe(signal) in item for item in items)
            for key in signal.keys if signal.step is None else ():
                seen.setdefault(key, []).append(told)
    return {
        key: sum(told) * _SHARE[1] >= len(told) * _SHARE[0] for key, told in seen.items() if len(told) >= _FEWEST_LISTED
    }


def _list_keys(signal: Signal) -> list[str]:
    """A signal's keys, and those that only settings have: its scope alone, and the type of the pipeline's changes."""
    typed = signal.typed
    if typed is None or not typed.scope or not signal.keys or typed.breaking:
        return list(signal.keys)
    return [f"{typed.type}({typed.scope})", f"*({typed.scope})", typed.type]


def _describe(signal: Signal) -> str:
    return _join_words(_REQUEST.sub("", signal.typed.description) if signal.typed else "")


def _join_words(text: str) -> str:
    """Only its words, with a blank around each: marks, links and wrapping aside."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _find_deciding(signals: Sequence[Signal]) -> list[Signal]:
    """The changes with the highest step by the types alone; none where most follow no convention."""
    steps = [signal.step for signal in signals if signal.step is not None]
    if not steps or not follows_convention(signals):
        return []
    highest = max(steps, key=BUMPS.index)
    return [signal for signal in signals if signal.step == highest]


def _count(deciding: Sequence[Signal], types: Collection[str]) -> int:
    """How many of them users notice. Repairs of the pipeline alone tell of a habit where no tool decided by itself."""
    return sum(bool(types) or not signal.is_pipeline for signal in deciding)


def _shared_keys(signals: Sequence[Signal]) -> set[str]:
    return set.intersection(*(set(signal.keys) for signal in signals)) if signals else set()


def _settle(steps: Sequence[Bump]) -> Habit | None:
    step, seen = Counter(steps).most_common(1)[0]
    agreed = len(steps) >= _FEWEST and seen * _SHARE[1] >= len(steps) * _SHARE[0]
    return Habit(step, seen, len(steps)) if agreed else None
