"""Packages that follow others: whose range a new version leaves gets at least a patch, and its range is rewritten.

The rule is that of the ecosystems' own tools: a range that is still met binds nobody to a release. A development
dependency is rewritten without a release; a peer dependency that is left is a breaking change; Go's minimums bind
nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from perdure.contracts.base import JsonDict
from perdure.rules.release.entries import Entry
from perdure.rules.release.evidence import made_id
from perdure.rules.release.packages.model import Dependency, find_cycles
from perdure.rules.release.packages.ranges import follow, is_met, is_readable, raise_to
from perdure.rules.release.packages.releasing import Releasing


@dataclass
class Followed:
    """What following came to."""

    ranges: list[JsonDict] = field(default_factory=list)
    """``{package, path, where, form, old, new}`` of every range to rewrite, each place once."""
    findings: list[str] = field(default_factory=list)


def follow_releases(
    packages: Sequence[Releasing],
    may_release: Callable[[Releasing], bool],
    renumber: Callable[[], None],
    *,
    always: bool = False,
) -> Followed:
    """Let dependants follow until nothing moves any more; ``renumber`` sets every released package's version.

    ``always``: a dependant follows even while its range is met, as some projects have it.

    It ends: a package's entry about another one is one entry, so that steps can only grow to major.
    """
    by_name = {one.name: one for one in packages}
    renumber()
    for _ in range(3 * len(packages) + 3):
        before = {one.name: one.version for one in packages}
        for one in packages:
            if may_release(one):
                _add_follows(one, by_name, always=always)
        renumber()
        if before == {one.name: one.version for one in packages}:
            break
    return _decide_ranges(packages, by_name, may_release)


def _add_follows(one: Releasing, by_name: Mapping[str, Releasing], *, always: bool) -> None:
    for dependency, other in _released(one, by_name):
        is_left = _is_left(dependency, other)
        if dependency.need != "dev" and (is_left or (always and dependency.where)):
            entry = _write_entry(one, dependency, other, is_left=is_left)
            known = one.follows.get(other.name)
            one.follows[other.name] = known if known and known.breaking and not entry.breaking else entry
    for name in [name for name in one.follows if name in by_name and not by_name[name].version]:
        del one.follows[name]


def _write_entry(one: Releasing, dependency: Dependency, other: Releasing, *, is_left: bool) -> Entry:
    is_peer = dependency.need == "peer" and is_left
    said = "does not meet that" if is_left else "is new: here dependants always follow"
    text = f"{'needs' if is_peer else 'depends on'} {other.name} {other.version}"
    return Entry(
        id=f"{made_id('d', other.name)}:{one.id}",
        section="Changed",
        text=text,
        sources=(f"{other.name} {other.version}",),
        bump="major" if is_peer else "patch",
        breaking=is_peer,
        reason=f"asks for {other.name} {dependency.range}, and {other.version} {said}",
    )


def _released(one: Releasing, by_name: Mapping[str, Releasing]) -> list[tuple[Dependency, Releasing]]:
    pairs = [(dependency, by_name[dependency.name]) for dependency in one.package.dependencies]
    return [(dependency, other) for dependency, other in pairs if other.version]


def _is_left(dependency: Dependency, other: Releasing) -> bool:
    """Whether a range was met and is not any more, and a rule says how it follows."""
    style, text = dependency.style, dependency.range
    if not dependency.where or not is_readable(style, text) or not is_met(style, text, other.before, other.before):
        return False
    return not is_met(style, text, other.version, other.before) and bool(follow(style, text, other.version))


def _decide_ranges(
    packages: Sequence[Releasing], by_name: Mapping[str, Releasing], may_release: Callable[[Releasing], bool]
) -> Followed:
    followed = Followed()
    seen: set[tuple[str, str]] = set()
    for one in packages:
        for dependency, other in _released(one, by_name):
            new = _new_range(one, dependency, other)
            if (told := _tell(one, dependency, other, new, is_free=may_release(one))) and told not in followed.findings:
                followed.findings.append(told)
            place = (dependency.path, dependency.where)
            if new in ("", dependency.range) or place in seen:
                continue
            seen.add(place)
            form = "python" if dependency.style in ("pep440", "poetry") else dependency.style
            facts = {"package": one.name, "path": dependency.path, "where": dependency.where}
            followed.ranges.append({**facts, "form": form, "old": dependency.range, "new": new})
    cycles = find_cycles([one.package for one in packages if one.version])
    followed.findings += [f"{' and '.join(names)} need each other: they are settled together." for names in cycles]
    return followed


def _new_range(one: Releasing, dependency: Dependency, other: Releasing) -> str:
    """What a range reads like afterwards; of a released package also a met one is raised."""
    style, text = dependency.style, dependency.range
    if not dependency.where or not is_readable(style, text) or not is_met(style, text, other.before, other.before):
        return text
    if not is_met(style, text, other.version, other.before):
        return follow(style, text, other.version)
    return raise_to(style, text, other.version) if one.version and dependency.need != "peer" else text


def _tell(one: Releasing, dependency: Dependency, other: Releasing, new: str, *, is_free: bool) -> str:
    style, text = dependency.style, dependency.range
    asks = f"{dependency.path} asks for {other.name} {text}"
    if not dependency.where or not is_readable(style, text):
        return ""
    if not is_met(style, text, other.before, other.before):
        return f"{asks}, which {other.before} did not meet before: it is left as it is."
    if not new:
        return f"{asks}, which {other.version} does not meet, and no rule says how it follows: change it by hand."
    if new != text and not one.version:
        why = "it is a development dependency" if dependency.need == "dev" else f"{one.name} is not released"
        why = why if dependency.need == "dev" or not is_free else "nothing else changed"
        return f"{asks}: that becomes {new} without a release of {one.name} ({why})."
    return ""
