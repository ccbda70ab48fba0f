"""What the thread remembers of each package: the mechanism of a single package's release, once for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perdure.contracts.base import JsonDict
from perdure.contracts.decisions import Edits
from perdure.contracts.memory import Memory
from perdure.rules.release.concerns import Place
from perdure.rules.release.habits import Habits
from perdure.rules.release.overrides import VERSION, Override, find_standing, suggest_repeated
from perdure.rules.release.packages.hand import is_about_following
from perdure.rules.release.packages.releasing import Releasing
from perdure.rules.release.recalled import Recalled, Situation, apply_remembered, tell_forgetting
from perdure.rules.release.settings.model import settings_from_json
from perdure.rules.release.type_map import TypeMap, find_map


@dataclass(frozen=True)
class Words:
    """What people said: in earlier reviews of the thread, and in this job's."""

    memory: Memory
    edits: Sequence[Edits]

    def find_map(self, one: Releasing) -> TypeMap:
        """Return the type map of a package: its settings, under what people have settled. Tags teach nothing here."""
        rules = settings_from_json(one.facts.get("settings", {})).lines_at(is_zero=one.is_zero)
        return find_map(Habits(), self.memory, self.edits, place_of(one), rules)

    def recall(self, one: Releasing, base: str, commits: Sequence[str]) -> list[str]:
        """Apply what is remembered to the entries that were found for a package; return findings.

        ``commits``: whole ids of all commits that were gathered.
        """
        standing = find_standing(self.memory, place_of(one), self.edits)
        facts = one.facts
        one.situation = Situation(base, facts["last_tag"], one.last, [base, *commits], one.entries)
        one.standing = standing
        recalled = apply_remembered([each for each in standing if not is_about_following(each.target)], one.situation)
        one.entries, one.recalled = recalled.entries, recalled
        return [f"{one.name}: {finding}" for finding in recalled.findings]


def place_of(one: Releasing) -> Place:
    """Where a package's overrides are remembered."""
    return Place(one.package.path, one.id, one.name)


def recall_wording(packages: Iterable[Releasing]) -> list[str]:
    """Reword and move what follows from other packages as before, while it follows from the same versions."""
    findings: list[str] = []
    for one in packages:
        if one.situation is None or not one.follows:
            continue
        sources = {entry.id: entry.sources for entry in one.follows.values()}
        made = [each for each in one.standing if each.entry and each.entry.sources == sources.get(each.target)]
        found = list(one.follows.values())
        recalled = apply_remembered(made, Situation(**{**vars(one.situation), "found": found}))
        one.follows = dict(zip(one.follows, recalled.entries, strict=True))
        one.recalled = Recalled(one.entries, [*one.recalled.used, *recalled.used], one.recalled.version)
        findings += [f"{one.name}: {finding}" for finding in recalled.findings]
    return findings


def tell_remembered(packages: Sequence[Releasing]) -> list[str]:
    """Say how to forget, and what was done so often that it may be a rule."""
    repeated = [
        f"{one.name}: {told}" for one in packages for told in suggest_repeated(one.standing, one.entries) if one.version
    ]
    return [*tell_forgetting([each for _, each in _list_used(packages)]), *repeated]


def write_remembered(packages: Sequence[Releasing]) -> JsonDict:
    """Return the part of the plan's value that later reviews and jobs read: what counted, of whom, and where it was."""
    used = _list_used(packages)
    released = [one for one in packages if one.version]
    authors = {*(each.by for _, each in used), *(name for one in released for name in one.types.authors)}
    return {
        "remembered": [{**each.to_json(), "path": one.package.path} for one, each in used],
        "settled": [place_of(one).own_line(line) for one in packages for line in one.types.settled],
        "authors": sorted(authors),
        "known": [_know(one) for one in packages if one.situation is not None],
    }


def _know(one: Releasing) -> JsonDict:
    """What a later job must know of a package to tell whether an edit was made on the same thing."""
    evidence = one.situation.evidence if one.situation else ""
    last: Mapping[str, str] = {"last_tag": one.facts["last_tag"], "last_version": one.last, "evidence": evidence}
    return {"path": one.package.path, "id": one.id, "name": one.name, **last}


def _list_used(packages: Sequence[Releasing]) -> list[tuple[Releasing, Override]]:
    """What counts in the plan; a version counts only where there is a release."""
    return [(one, each) for one in packages for each in one.recalled.used if one.version or each.op != VERSION]
