"""The project's own type map: proposed from its history, confirmed by an approval, remembered by the thread.

What a person set or confirmed stands before what the tags show. A habit that nobody confirmed, or that differs from
what was confirmed, is proposed as new: the plan follows it, says so, and its approval confirms it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Confirmed, Memory, RememberedEdit
from perdure.contracts.plan import Settled
from perdure.rules.release.commit_types import LISTED
from perdure.rules.release.concerns import Place, concern_edits, concern_memory
from perdure.rules.release.habits import Habit, Habits
from perdure.rules.release.settings.model import Line as RuleLine
from perdure.rules.release.versions import BUMPS, Bump

_NO_RULES: Mapping[str, RuleLine] = {}
_ABOUT = "release.map"
_KEY = re.compile(r"(?P<type>[a-z]+)(?:\([^()\s][^()]*\))?")
_BREAKING = "breaking"


@dataclass(frozen=True)
class Line:
    """A line of the map that people have settled."""

    step: Bump
    said: str
    """ "confirmed by ann on 2026-11-30", "set by ann on 2026-11-30: rare"."""
    by: str
    is_set: bool
    """Whether a person wrote it; else an approval confirmed what was learnt."""


@dataclass(frozen=True)
class TypeMap:
    """The map of one plan."""

    habits: Habits
    """What counts: settled lines, and learnt ones where nothing is settled."""
    lines: Mapping[str, Bump] = field(default_factory=dict)
    """All that differs from the convention, by key, sorted."""
    settles: Sequence[Settled] = ()
    """New lines, which an approval confirms."""
    settled: Sequence[str] = ()
    """Keys of the lines that people settled."""
    findings: Sequence[str] = ()
    authors: Sequence[str] = ()
    """Who set a line that counts here."""


def find_map(
    habits: Habits, memory: Memory, edits: Sequence[Edits], place: Place, rules: Mapping[str, RuleLine] = _NO_RULES
) -> TypeMap:
    """Return the map of a package: what its tags show, under its settings, under what people have settled.

    ``rules`` are the lines of the project's settings: facts of the base commit, which no approval needs to confirm.
    """
    settled = _find_settled(concern_memory(memory, place), concern_edits(edits, place), place.path)
    rules = {key: line for key, line in rules.items() if not {key, _type_of(key)} & set(settled)}
    learnt = {key: habit for key, habit in habits.steps.items() if not _is_ruled(key, rules) or key in settled}
    new = {key: habit for key, habit in learnt.items() if _is_new(key, habit, settled.get(key))}
    ruled = rule_habits(rules)
    steps = {**learnt, **ruled.steps}
    steps |= {key: Habit(line.step, 0, 0, line.said) for key, line in settled.items() if key not in new}
    steps |= {key: replace(habit, said=_tell_new(habit, settled.get(key))) for key, habit in new.items()}
    about = _about(place.path)
    return TypeMap(
        habits=replace(habits, steps=steps, silent=ruled.silent),
        lines={
            key: habit.step for key, habit in sorted(steps.items()) if habit.step != (plain_step(key) or habit.step)
        },
        settles=[Settled(about=about, name=key, value=steps[key].step, because=steps[key].told) for key in sorted(new)],
        settled=sorted(settled),
        findings=[*_name_refused(settled, habits), *_name_overruled(ruled.steps, habits)],
        authors=sorted({line.by for line in settled.values() if line.is_set}),
    )


def rule_habits(rules: Mapping[str, RuleLine]) -> Habits:
    """Return what the project's settings say, as habits that nobody had to learn."""
    steps = {
        key: Habit(line.step, 0, 0, line.where, is_rule=True) for key, line in rules.items() if line.step != "none"
    }
    return Habits(steps, silent={key: line.where for key, line in rules.items() if line.step == "none"})


def plain_step(key: str) -> Bump | None:
    """What the convention says of a line of the map; ``None`` for a type that is not listed."""
    if key == _BREAKING:
        return "major"
    listed = LISTED.get(key.partition("(")[0])
    return listed[1] if listed else None


def find_map_problems(lines: Any) -> list[str]:
    """Return why lines of a map, {key: step}, cannot be set; empty when they can."""
    if not isinstance(lines, dict):
        return [f"map={lines!r} is no map; expected lines such as {{perf: minor}}."]
    return [problem for key, step in lines.items() for problem in _judge(str(key), step)]


def _judge(key: str, step: Any) -> Iterator[str]:
    if _KEY.fullmatch(key) is None or plain_step(key) is None:
        known = ", ".join([*LISTED, _BREAKING])
        yield f"{key!r} is no line of a type map; expected a type ({known}), with a scope where wanted: feat(words)."
    if step not in BUMPS:
        yield f"{key}={step} names no step; expected one of {', '.join(BUMPS)}."


def _find_settled(memory: Memory, edits: Sequence[Edits], path: str) -> dict[str, Line]:
    """Lines that people set or confirmed, the newest word on each."""
    settled: dict[str, Line] = {}
    words: list[RememberedEdit | Confirmed] = [*memory.edits, *memory.confirmed]
    for said in sorted(words, key=lambda word: word.at):
        if isinstance(said, Confirmed):
            _confirm(settled, said, _about(path))
        else:
            _set(settled, said.changes, said.by, _tell_when(said))
    for edit in edits:
        _set(settled, edit.changes, edit.by, "in this review")
    return settled


def _set(settled: dict[str, Line], changes: JsonDict, by: str, when: str) -> None:
    for key, step in (changes.get("map") or {}).items():
        if not find_map_problems({key: step}):
            settled[key] = Line(step, f"set by {by} {when}", by, is_set=True)
    for change in changes.get("entries") or []:
        if isinstance(change, dict) and change.get("op") == "forget":
            settled.pop(str(change.get("id", "")), None)


def _confirm(settled: dict[str, Line], confirmed: Confirmed, about: str) -> None:
    said = f"confirmed by {confirmed.by} on {confirmed.at.date().isoformat()}"
    for one in confirmed.what:
        is_known = one.name in settled and settled[one.name].step == one.value
        if one.about == about and not is_known and not find_map_problems({one.name: one.value}):
            step: Any = one.value
            settled[one.name] = Line(step, said, "", is_set=False)


def _tell_when(edit: RememberedEdit) -> str:
    why = " ".join(edit.why.split()).rstrip(".")
    return f"on {edit.at.date().isoformat()}" + (f": {why}" if why else "")


def _is_new(key: str, habit: Habit, line: Line | None) -> bool:
    if line is None:
        return habit.step != plain_step(key)
    return not line.is_set and habit.step != line.step


def _tell_new(habit: Habit, line: Line | None) -> str:
    return f"{habit.told}; {line.step} was {line.said}" if line else habit.told


def _name_refused(settled: Mapping[str, Line], habits: Habits) -> list[str]:
    """Say where a person's word stands against what the tags show."""
    return [
        f"{key} counts as {line.step}: {line.said}. The tags show {habit.step}: {habit.told}."
        for key, line in sorted(settled.items())
        if line.is_set and (habit := habits.steps.get(key)) and habit.step != line.step
    ]


def _name_overruled(ruled: Mapping[str, Habit], habits: Habits) -> list[str]:
    """Say where the project's settings stand against what its tags show."""
    return [
        f"{key} counts as {ruled[key].step}: {ruled[key].told}. The tags show {habit.step}: {habit.told}."
        for key, habit in sorted(habits.steps.items())
        if key in ruled and habit.step != ruled[key].step
    ]


def _is_ruled(key: str, rules: Mapping[str, RuleLine]) -> bool:
    return key in rules or _type_of(key) in rules


def _type_of(key: str) -> str:
    return key.partition("(")[0]


def _about(path: str) -> str:
    return f"{_ABOUT} {path}".rstrip()
