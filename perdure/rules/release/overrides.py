"""What reviewers did to earlier plans of the thread, and which of it still stands: evidence of the kind "override".

An override belongs to what it was made on: a commit, a change file, an item under ``[Unreleased]``. The newest one of a
kind on a thing stands, until somebody forgets it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from perdure.contracts.base import JsonDict
from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Memory, RememberedEdit
from perdure.rules.release.choice import Wish
from perdure.rules.release.concerns import Place, concern_edits, concern_memory
from perdure.rules.release.conventional import parse_conventional
from perdure.rules.release.edits import added_id, find_ids
from perdure.rules.release.entries import Entry, clean_text, find_section, read_entries
from perdure.rules.release.results import PROPOSE, find_value

VERSION = "version"
"""The target of an override of the version."""

_REPEATED = 2
"""So many things that the same was done to make it look like a rule."""
_SHOWN = 5


@dataclass(frozen=True)
class Override:
    """One thing that a person did to a plan."""

    op: str
    """``reword``, ``move``, ``drop``, ``add``, ``version``; ``forget`` is never among those that stand."""
    target: str
    """An entry's whole id, or :data:`VERSION`; of one package among several with that package's id behind it."""
    text: str
    """The new text, section or version; of an ``add`` the entry's text."""
    section: str
    """Of an ``add``."""
    by: str
    at: datetime
    why: str
    seen: JsonDict
    """The ``release.propose`` value that it was done to."""

    @property
    def on(self) -> str:
        """The day."""
        return self.at.date().isoformat()

    @property
    def signed(self) -> str:
        """ "ann on 2026-11-30: clearer"."""
        return f"{self.by} on {self.on}" + (f": {self.why}" if self.why else "")

    @property
    def wish(self) -> Wish:
        """The version that it asks for."""
        return Wish(self.text, f"{self.text} was chosen by {self.signed}, for these same changes", self.by)

    @property
    def entry(self) -> Entry | None:
        """The entry that it was done to; ``None`` for a version and for an added entry."""
        return next((entry for entry in read_entries(self.seen) if entry.id == self.target), None)

    def to_json(self) -> JsonDict:
        """Return plain JSON for the plan's value."""
        return {"op": self.op, "id": self.target, "text": self.text, "by": self.by, "on": self.on, "why": self.why}


def find_standing(memory: Memory, place: Place, edits: Sequence[Edits]) -> list[Override]:
    """Return the remembered overrides of a package that stand, oldest first, without what ``edits`` do anew."""
    standing: dict[tuple[str, str], Override] = {}
    for remembered in concern_memory(memory, place).edits:
        for override in _read(remembered, place):
            _take(standing, override)
    for edit in concern_edits(edits, place):
        _give_way(standing, edit, place)
    return list(standing.values())


def _read(remembered: RememberedEdit, place: Place) -> Iterator[Override]:
    seen, why = find_value(remembered.seen, PROPOSE) or {}, _one_line(remembered.why)

    def make(op: str, target: str, text: str, section: str = "") -> Override:
        return Override(op, target, text, section, remembered.by, remembered.at, why, seen)

    if version := str(remembered.changes.get("version") or "").strip():
        yield make(VERSION, place.own(VERSION), version)
    known = [*(entry["id"] for entry in seen["entries"]), *(one["id"] for one in seen.get("remembered", []))]
    for change in _operations(remembered.changes):
        op, wanted = str(change.get("op", "")), str(change.get("id", ""))
        text, section = clean_text(str(change.get("text") or "")), find_section(str(change.get("section") or "Added"))
        if op == "add":
            yield make(op, place.own(added_id(section, text)), text, section)
            continue
        places = find_ids(known, wanted)
        target = known[places[0]] if places else wanted
        yield make(op, target, section if op == "move" else text)


def _take(standing: dict[tuple[str, str], Override], override: Override) -> None:
    mine = [key for key in standing if key[0] == override.target]
    undoes_an_add = override.op == "drop" and (override.target, "add") in standing
    if override.op == "forget" or undoes_an_add:
        for key in mine:
            del standing[key]
        return
    standing.pop((override.target, override.op), None)
    standing[override.target, override.op] = override


def _give_way(standing: dict[tuple[str, str], Override], edit: Edits, place: Place) -> None:
    """Take out what this job's reviewers forget, or do in another way."""
    if edit.changes.get("version"):
        standing.pop((place.own(VERSION), VERSION), None)
    for change in _operations(edit.changes):
        targets = [target for target, _ in standing]
        named = {targets[place] for place in find_ids(targets, str(change.get("id", "")))}
        ops = {"forget": {op for _, op in standing}, "drop": {"reword", "move"}}.get(change["op"], {change["op"]})
        for key in [key for key in standing if key[0] in named and key[1] in ops]:
            del standing[key]


def _operations(changes: JsonDict) -> list[JsonDict]:
    return [one for one in changes.get("entries") or [] if isinstance(one, dict) and one.get("op")]


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def suggest_repeated(standing: Sequence[Override], entries: Sequence[Entry]) -> list[str]:
    """Say where the same was done to several things of a kind, and entries of that kind are here: a rule, maybe.

    Nothing of it is applied: the sentence names the command that would.
    """
    groups: dict[tuple[str, str, str], list[Override]] = defaultdict(list)
    for override in standing:
        entry = override.entry
        if entry is not None and override.op in ("move", "drop"):
            for kind in _kinds(entry):
                groups[override.op, kind, override.text if override.op == "move" else ""].append(override)
    told: set[str] = set()
    found = []
    for (op, kind, section), made in groups.items():
        alike = [entry for entry in entries if _may_follow(entry, kind, section) and entry.id not in told]
        if len({override.target for override in made}) >= _REPEATED and alike:
            told |= {entry.id for entry in alike}
            found.append(_suggest(op, kind, section, made, alike))
    return found


def _kinds(entry: Entry) -> list[str]:
    typed = parse_conventional(entry.reason)
    scope = [f"scope {entry.scope}"] if entry.scope else []
    return [*scope, *([f"type {typed.type}"] if typed else [])]


def _may_follow(entry: Entry, kind: str, section: str) -> bool:
    return kind in _kinds(entry) and entry.section != section and not entry.edited_by


def _suggest(op: str, kind: str, section: str, made: Sequence[Override], alike: Sequence[Entry]) -> str:
    done = f"moved to {section}" if op == "move" else "dropped"
    option = [f"--{op} {entry.id}" + (f"={section}" if section else "") for entry in alike[:_SHOWN]]
    count = len({override.target for override in made})
    return (
        f"{count} entries of {kind} were {done} in earlier reviews (last by {made[-1].by} on {made[-1].on}). "
        f"Not done here by itself; `perdure edit JOB {' '.join(option)}` does it."
    )
