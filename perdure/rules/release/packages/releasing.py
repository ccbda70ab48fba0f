"""One package's release while it is being settled: its facts, its entries, and the version that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.rules.git_commits import Commit, commit_from_json
from perdure.rules.release.bump import Last, Suggestion
from perdure.rules.release.choice import Numbering, Wish, choose_version
from perdure.rules.release.edits import Edited
from perdure.rules.release.entries import Entry
from perdure.rules.release.habits import Habits
from perdure.rules.release.overrides import Override
from perdure.rules.release.packages.model import Package, package_from_json
from perdure.rules.release.recalled import Recalled, Situation
from perdure.rules.release.tags import parse_tag_form
from perdure.rules.release.type_map import TypeMap
from perdure.rules.release.versions import find_scheme, is_zero_major


@dataclass
class Releasing:
    """One package of the workspace."""

    facts: JsonDict
    """As gathered."""
    package: Package
    commits: Sequence[Commit]
    """That count for it, newest first."""
    entries: list[Entry] = field(default_factory=list)
    suggestion: Suggestion | None = None
    """Set once it is released."""
    follows: dict[str, Entry] = field(default_factory=dict)
    """Entries that other packages' new versions make, by those packages' names."""
    wished: str = ""
    wished_by: str = ""
    """A version that a reviewer chose, and who."""
    given: str = ""
    """A version that the job was started with."""
    counts_manifest: bool = False
    """Whether the manifest's version is a release even where no tag says so."""
    waiting: list[JsonDict] = field(default_factory=list)
    """Items under ``[Unreleased]`` that stay there: an earlier release held them."""
    types: TypeMap = field(default_factory=lambda: TypeMap(Habits()))
    """What its types of changes count as."""
    situation: Situation | None = None
    """What remembered overrides are judged by; set once its entries are found."""
    standing: Sequence[Override] = ()
    """Remembered overrides that stand."""
    recalled: Recalled = field(default_factory=lambda: Recalled([]))
    """Those of them that count here."""

    @property
    def name(self) -> str:
        return self.package.name

    @property
    def id(self) -> str:
        return str(self.facts["id"])

    @property
    def version(self) -> str:
        """The new version; empty while the package is not released."""
        return self.suggestion.version if self.suggestion else ""

    @property
    def last(self) -> str:
        """The last final version. Changesets number by the manifest: a release that nobody tagged counts there too."""
        tagged, said = str(self.facts["last_version"]), self.package.version
        scheme = find_scheme(self.facts["scheme"])
        if not self.counts_manifest or not scheme.is_legal(said) or not scheme.is_final(said):
            return tagged
        return said if not tagged or scheme.key(said) > scheme.key(tagged) else tagged

    @property
    def is_zero(self) -> bool:
        """Whether it is in initial development (0.x)."""
        return bool(self.last) and is_zero_major(find_scheme(self.facts["scheme"]), self.last)

    @property
    def before(self) -> str:
        """What ranges in the base commit were written against."""
        return self.package.version or self.last

    @property
    def all_entries(self) -> list[Entry]:
        """Its own entries, then what follows from others."""
        return [*self.entries, *self.follows.values()]

    def to_json(self, **more: object) -> JsonDict:
        """Return plain JSON for the stages after this one."""
        assert self.suggestion is not None  # only released packages are written
        last = self.last
        return {
            "id": self.id,
            "name": self.name,
            "path": self.package.path,
            "group": self.package.group,
            "version": self.version,
            "tag": parse_tag_form(self.facts["tag_form"]).write(self.version),
            "scheme": self.facts["scheme"],
            "last_version": last,
            "last_tag": self.facts["last_tag"],
            "bump": self.suggestion.bump,
            "left": self.waiting,
            "map": dict(self.types.lines),
            "entries": [entry.to_json() for entry in self.all_entries],
            "reasons": self.suggestion.reasons,
            "title": f"{self.name} {last} → {self.version}" if last else f"{self.name} {self.version} (first release)",
            **more,
        }


def read_gathered(gathered: JsonDict) -> dict[str, Commit]:
    """Return the commits of a ``release.packages`` value by their ids, newest first."""
    return {value["id"]: commit_from_json(value) for value in gathered["commits"]}


def open_releasing(gathered: JsonDict, commits: Mapping[str, Commit]) -> list[Releasing]:
    """Return every package of a ``release.packages`` value, in its order; ``commits`` are those gathered, by id."""
    return [
        Releasing(
            facts,
            package_from_json(facts),
            [commits[name] for name in facts["by"] if name in commits],
            counts_manifest=gathered["uses_changesets"],
        )
        for facts in gathered["packages"]
    ]


def number_together(
    members: Sequence[Releasing], beside: Sequence[Releasing], taken: Sequence[str], today: date, pre: str
) -> tuple[Suggestion, list[str]]:
    """Return the version that follows for packages that share one (often a single one), and findings.

    ``beside``: packages that are not released now, above whose versions it must be too.

    Raises:
        UserError: the version that was given, or the proposed one, breaks a rule; the message names the package.
    """
    first = members[0]
    entries = [entry for one in members for entry in one.all_entries]
    wishes = [one for one in members if one.wished]
    wish = wishes[-1] if wishes else first
    given = next((one.given for one in members if one.given), "")
    commits = [commit for one in members for commit in one.commits]
    numbers = [_numbering(one, [*members, *beside], taken, today, pre) for one in members]
    try:
        edited = Edited(entries, wish.wished, wish.wished_by)
        suggestion, findings = choose_version(edited, given, commits, numbers[0], _list_remembered(members))
        for one in numbers[1:]:
            if problem := one.find_illegal(suggestion.version):
                raise UserError(problem)
    except UserError as error:
        told = error.message.replace("(version=… chooses one.)", f"(versions='[\"{first.name}=…\"]' chooses one.)")
        raise UserError(f"{first.name}: {told}") from None
    return suggestion, [f"{first.name}: {finding}" for finding in findings]


def _list_remembered(members: Sequence[Releasing]) -> list[Wish]:
    """Versions that earlier reviews chose for these same changes, the newest first."""
    chosen = [one.recalled.version for one in members if one.recalled.version]
    return [override.wish for override in sorted(chosen, key=lambda override: override.at, reverse=True)]


def _numbering(one: Releasing, members: Sequence[Releasing], taken: Sequence[str], today: date, pre: str) -> Numbering:
    """Where the numbering of a group stands, with the tag form of one of its members."""
    scheme = find_scheme(one.facts["scheme"])

    def highest(versions: Mapping[str, None]) -> str:
        legal = [version for version in versions if version and scheme.is_legal(version)]
        return max(legal, key=scheme.key, default="")

    last = highest(dict.fromkeys(member.last for member in members))
    candidate = highest(dict.fromkeys(member.facts["last_candidate"] for member in members))
    manifest = highest(dict.fromkeys(member.package.version for member in members)) or one.package.version
    numbering = Last(last, candidate, manifest, "", today)
    return Numbering(numbering, taken, parse_tag_form(one.facts["tag_form"]), scheme, pre)
