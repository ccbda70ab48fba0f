"""The analysis ``release.propose_packages``: which packages are released, as what, and who follows whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_commits import Commit
from perdure.rules.release.commit_signals import Reading
from perdure.rules.release.entries import Entry
from perdure.rules.release.evidence import Gathered, collect_entries, made_id
from perdure.rules.release.packages.attribution import Attribution, tell_attribution, tell_shared
from perdure.rules.release.packages.dependants import Followed, follow_releases
from perdure.rules.release.packages.edit_checks import find_package_edit_problems
from perdure.rules.release.packages.gather import PACKAGES
from perdure.rules.release.packages.hand import apply_hand, apply_wording, give_ids, read_versions
from perdure.rules.release.packages.model import order_by_dependencies
from perdure.rules.release.packages.releasing import Releasing, number_together, open_releasing, read_gathered
from perdure.rules.release.packages.remembering import Words, recall_wording, tell_remembered, write_remembered
from perdure.rules.release.packages.root_words import find_root_words
from perdure.rules.release.packages.telling import write_value
from perdure.rules.release.released_items import leave_out_released
from perdure.rules.release.results import PROPOSE_PACKAGES, find_value

NAME = PROPOSE_PACKAGES


@dataclass
class _Settling:
    """The whole plan while it is settled."""

    gathered: JsonDict
    commits: Mapping[str, Commit]
    packages: list[Releasing]
    only: set[str]
    today: date
    pre: str
    words: Words
    findings: list[str] = field(default_factory=list)

    def may_release(self, one: Releasing) -> bool:
        """Whether a package may be released at all."""
        is_wanted = not self.only or bool(self.only & {one.name, one.id})
        return is_wanted and not one.facts["private"] and one.name not in self.gathered["ignored"]

    def renumber(self) -> None:
        """Set the version of every package that has something to release; groups move as one."""
        self.findings.clear()
        taken = [*self.gathered["tags"], *(ref.removeprefix("refs/tags/") for ref in self.gathered["remote_refs"])]
        for members, beside in self._groups():
            if any(one.all_entries for one in members):
                suggestion, findings = number_together(members, beside, taken, self.today, self.pre)
                self.findings += findings
                for one in members:
                    one.suggestion = suggestion

    def _groups(self) -> Iterator[tuple[list[Releasing], list[Releasing]]]:
        """Give (packages that take one version, packages whose versions it must be above too).

        Linked packages are numbered together as far as they have something to release.
        """
        free = [one for one in self.packages if self.may_release(one)]
        linked = {name: number for number, names in enumerate(self.gathered["linked"]) for name in names}
        groups: dict[str, list[Releasing]] = {}
        for one in free:
            number = linked.get(one.name)
            key = f"linked {number}" if number is not None and not one.facts["group"] else one.facts["group"]
            groups.setdefault(key or f"alone {one.name}", []).append(one)
        for key, members in groups.items():
            if not key.startswith("linked "):
                yield members, []
            elif released := [one for one in members if one.all_entries]:
                yield released, [one for one in members if not one.all_entries]


def propose_packages(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Propose the release of a workspace's packages from what was gathered.

    ``with``: ``from`` (all gathered values by source name); optional ``versions`` (``core=2.0.0``), ``only`` (names of
    packages) and ``pre``. A package with nothing to release is left out and said; without any the value's ``packages``
    is empty.

    Raises:
        UserError: a version breaks a rule (named, with its package), or a name is no package's.
    """
    gathered = find_value(arguments["from"], PACKAGES)
    if gathered is None:
        raise UserError(f"{NAME} needs a gather source that uses {PACKAGES!r}; 'from' holds none.")
    commits = read_gathered(gathered)
    packages = open_releasing(gathered, commits)
    only = _read_only(arguments.get("only") or [], packages)
    said = Words(context.remembered, context.edits)
    settling = _Settling(gathered, commits, packages, only, context.now.date(), str(arguments.get("pre") or ""), said)
    given = read_versions(arguments.get("versions"), packages)
    findings = _collect(settling)
    for one in packages:
        one.given = given.get(one.name, "")
    findings += apply_hand(packages, context.edits)
    always = bool(gathered["follows_always"])
    followed = follow_releases(packages, settling.may_release, settling.renumber, always=always)
    _fill_groups(packages)
    findings += [*recall_wording(packages), *apply_wording(packages, context.edits), *settling.findings]
    findings += _tell(settling, followed)
    order = {one.path: place for place, one in enumerate(order_by_dependencies([each.package for each in packages]))}
    released = sorted((one for one in packages if one.version), key=lambda one: order[one.package.path])
    words = find_root_words(gathered, packages)
    findings += [*words.findings, *tell_remembered(packages)]
    value = write_value(NAME, gathered, released, followed.ranges, words, context.now.date().isoformat())
    value |= write_remembered(packages)
    return RuleResult(value, value["title"] or "nothing to release", findings=findings)


def _read_only(words: Sequence[str], packages: Sequence[Releasing]) -> set[str]:
    known = {name for one in packages for name in (one.name, one.id)}
    if unknown := [word for word in words if word not in known]:
        listed = ", ".join(one.name for one in packages)
        raise UserError(f"only={unknown[0]!r} is no package of this workspace. Known packages: {listed}.")
    return set(words)


def _collect(settling: _Settling) -> list[str]:
    """Give every package that may be released its entries; return findings."""
    findings: list[str] = []
    gathered = settling.gathered
    every, reading = list(settling.commits), Reading()
    for one in filter(settling.may_release, settling.packages):
        changes, history = one.facts["changes"], {**one.facts, "repository": gathered["repository"]}
        by_hand = [*gathered["changesets"], *changes["files"]]
        commits = [] if gathered["uses_changesets"] else one.commits
        waiting = leave_out_released(history, changes["changelog"], one.facts["scheme"])
        one.types = settling.words.find_map(one)
        collected = collect_entries(Gathered(commits, waiting.changelog, by_hand, one.name, one.types.habits, reading))
        one.entries, one.waiting = give_ids(collected.entries, one.id), waiting.left
        said = [*changes.get("findings", []), *waiting.findings, *one.types.findings, *collected.findings]
        findings += [f"{one.name}: {finding}" for finding in said]
        findings += settling.words.recall(one, gathered["head"], every)
        if gathered["uses_changesets"] and one.commits and not one.entries:
            count = f"{len(one.commits)} commit{'s' * (len(one.commits) != 1)}"
            since = one.facts["last_tag"] or "its beginning"
            told = f"no changeset names it, so it is not released for itself ({count} since {since})"
            findings.append(f"{one.name}: {told}.")
    return findings


def _fill_groups(packages: Sequence[Releasing]) -> None:
    """A package that is released for its group's sake says so: its changelog has no empty section."""
    for one in packages:
        if one.version and not one.all_entries:
            text = "released together with the other packages of its version"
            source = (f"group {one.package.group}",)
            entry = Entry(f"{made_id('t', one.name)}:{one.id}", "Other", text, source, "patch", reason=text)
            one.entries = [entry]


def _tell(settling: _Settling, followed: Followed) -> list[str]:
    """What a reviewer should know of the whole: who counts for what, who is left out, who follows."""
    commits = settling.commits
    found = {one.package.path: Attribution(one.facts["by"], one.facts["scope_alone"]) for one in settling.packages}
    released = [one for one in settling.packages if one.version]
    told = [line for one in released for line in tell_attribution(one.package, found[one.package.path], commits)]
    told += tell_shared(found, {one.package.path: one.name for one in released}, commits)
    return [*told, *followed.findings, *_tell_left(settling)]


def _tell_left(settling: _Settling) -> list[str]:
    """Packages that are not released, by the reason why."""
    reasons: dict[str, list[str]] = {}
    for one in settling.packages:
        if one.version:
            continue
        if one.facts["private"]:
            why = "private"
        elif one.name in settling.gathered["ignored"]:
            why = "ignored by .changeset/config.json"
        elif not settling.may_release(one):
            why = "not asked for"
        else:
            why = "nothing to release"
        reasons.setdefault(why, []).append(one.name)
    return [f"Left out, {why}: {', '.join(names)}." for why, names in reasons.items()]


RULE = Rule(
    name=NAME,
    rule_class="analysis",
    run=propose_packages,
    needs=frozenset({"from"}),
    takes=frozenset({"versions", "only", "pre"}),
    check_edits=find_package_edit_problems,
    about="Which packages of a workspace are released, each with entries and a version; dependants follow.",
)

__all__ = ["NAME", "RULE", "propose_packages"]
