"""Remembered overrides on the entries of a new plan: applied where they belong, and always said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.rules.release.changelog_items import item_key
from perdure.rules.release.concerns import bare_id
from perdure.rules.release.edits import added_entry, find_ids
from perdure.rules.release.entries import Entry
from perdure.rules.release.evidence import made_id
from perdure.rules.release.overrides import VERSION, Override


@dataclass(frozen=True)
class Situation:
    """What a plan is made for; an override of the version belongs to exactly one."""

    base: str
    last_tag: str
    last_version: str
    commits: Sequence[str]
    """Whole ids of the range, and the base."""
    found: Sequence[Entry]
    """The entries that the evidence gives."""

    @property
    def evidence(self) -> str:
        """A short name for the entries as found: the same for the same ids and steps."""
        return made_id("e", *sorted(f"{bare_id(entry.id)} {entry.bump}" for entry in self.found))

    @property
    def is_by_hand(self) -> bool:
        """Whether change files or ``[Unreleased]`` give the entries: stronger than an override of a commit."""
        return _is_by_hand(entry.id for entry in self.found)

    def has_commit(self, target: str) -> bool:
        """Whether an entry's id is that of a commit in the range."""
        short = bare_id(target).partition(".")[0]
        return any(commit.startswith(short) for commit in self.commits)

    def is_same_range(self, seen: JsonDict) -> bool:
        """Whether a plan was made since the same release, on this line of work."""
        is_same = (seen["last_tag"], seen["last_version"]) == (self.last_tag, self.last_version)
        known = {entry["id"] for entry in seen["entries"]} & {entry.id for entry in self.found}
        return is_same and (seen["base"] in self.commits or bool(known))

    def is_exactly(self, seen: JsonDict) -> bool:
        """Whether a plan was made on the same base since the same release from the same entries."""
        mine = (self.base, self.last_tag, self.last_version, self.evidence)
        return mine == (seen["base"], seen["last_tag"], seen["last_version"], seen.get("evidence"))


@dataclass
class Recalled:
    """Entries with what is remembered about them."""

    entries: list[Entry]
    used: list[Override] = field(default_factory=list)
    version: Override | None = None
    findings: list[str] = field(default_factory=list)


def apply_remembered(standing: Sequence[Override], situation: Situation) -> Recalled:
    """Apply overrides that belong to this situation, oldest first; each one that does is a finding that names it."""
    recalled = Recalled(list(situation.found))
    for override in standing:
        _APPLY[override.op](recalled, override, situation)
    return recalled


def tell_forgetting(used: Sequence[Override]) -> list[str]:
    """Say how what is remembered is taken back, where anything of it counts in a plan."""
    return ["What is remembered is forgotten with `perdure edit JOB --forget ID` (or `version`)."] if used else []


def _change(recalled: Recalled, override: Override, situation: Situation) -> None:
    place = _find_place(recalled, override, situation)
    if place is None:
        return
    entry = recalled.entries[place]
    field_name, done = ("text", "reworded") if override.op == "reword" else ("section", f"moved to {override.text}")
    if getattr(entry, field_name) == override.text:
        return
    fields: dict[str, Any] = {field_name: override.text}
    changed = replace(entry, **fields, edited_by=override.by)
    recalled.entries[place] = changed
    before = _quote(entry) if override.op == "reword" else entry.section
    told = f"{_quote(changed)} ({entry.id}) was {done} by {override.signed} (found as {before})."
    _tell(recalled, override, told)


def _drop(recalled: Recalled, override: Override, situation: Situation) -> None:
    place = _find_place(recalled, override, situation)
    if place is not None:
        entry = recalled.entries.pop(place)
        _tell(recalled, override, f"{_quote(entry)} ({entry.id}) is left out: dropped by {override.signed}.")


def _add(recalled: Recalled, override: Override, situation: Situation) -> None:
    entry = replace(added_entry(override.section, override.text, override.by), id=override.target)
    is_there = item_key(entry.text) in {item_key(one.text) for one in recalled.entries}
    if is_there or not situation.is_same_range(override.seen):
        return
    if situation.is_by_hand and not _is_by_hand(one["id"] for one in override.seen["entries"]):
        recalled.findings.append(_name_weaker(override, _quote(entry)))
        return
    recalled.entries.append(entry)
    _tell(recalled, override, f"{_quote(entry)} ({entry.id}) was added by {override.signed}.")


def _choose(recalled: Recalled, override: Override, situation: Situation) -> None:
    if situation.is_exactly(override.seen):
        recalled.version = override
        recalled.used.append(override)
    elif situation.is_same_range(override.seen):
        recalled.findings.append(
            f"Not proposed again: the version {override.text}, chosen by {override.signed}. "
            "What it was chosen for has changed since."
        )


_APPLY: Mapping[str, Callable[[Recalled, Override, Situation], None]] = {
    "reword": _change,
    "move": _change,
    "drop": _drop,
    "add": _add,
    VERSION: _choose,
}


def _find_place(recalled: Recalled, override: Override, situation: Situation) -> int | None:
    places = find_ids([entry.id for entry in recalled.entries], override.target)
    if len(places) == 1:
        return places[0]
    if not places and situation.is_by_hand and situation.has_commit(override.target):
        recalled.findings.append(_name_weaker(override, override.target))
    return None


def _name_weaker(override: Override, what: str) -> str:
    return f"Not done again, because what changed is written by hand now: {override.op} of {what} by {override.signed}."


def _tell(recalled: Recalled, override: Override, told: str) -> None:
    recalled.used.append(override)
    recalled.findings.append(told)


def _quote(entry: Entry) -> str:
    return '"' + entry.text.split("\n", 1)[0] + '"'


def _is_by_hand(ids: Iterable[str]) -> bool:
    return any(one.startswith("u-") for one in ids)
