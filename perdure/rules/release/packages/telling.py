"""What the stages after the analysis read: packages in order, tags, refs, ranges, changelogs, notes."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.contracts.base import JsonDict
from perdure.rules.release.change_files import leave_pre_mode
from perdure.rules.release.markdown import write_notes
from perdure.rules.release.packages.releasing import Releasing
from perdure.rules.release.packages.root_words import RootWords

_SHOWN = 3
_SUBJECT_COLUMNS = 72


def write_value(
    rule: str,
    gathered: JsonDict,
    released: Sequence[Releasing],
    ranges: Sequence[JsonDict],
    words: RootWords,
    today: str,
) -> JsonDict:
    """Return the analysis' value; ``released`` in the order in which they are tagged and published."""
    packages = [_write_package(one, today) for one in released]
    tags = _write_tags(packages)
    title = _shorten([package["title"] for package in packages])
    return {
        "rule": rule,
        "base": gathered["head"],
        "date": today,
        "title": title,
        "reasons": [f"{package['title']}: {reason}" for package in packages for reason in package["reasons"][:1]]
        + [f"{package['name']}: {reason}" for package in packages for reason in package["reasons"][1:]],
        "message": _write_message(packages),
        "packages": packages,
        "entries": [entry for package in packages for entry in package["entries"]],
        "tags": tags,
        "refs": [gathered["ref"], *(f"refs/tags/{tag['name']}" for tag in tags)] if packages else [],
        "ranges": list(ranges),
        "changelogs": _write_changelogs(packages, words),
        "consumed": _find_consumed(gathered, {one.name for one in released}),
    }


def _write_package(one: Releasing, today: str) -> JsonDict:
    notes = write_notes(f"{one.name} {one.version}", one.all_entries)
    return one.to_json(notes=notes, date=today, changelog=one.facts["changes"]["changelog"])


def _write_tags(packages: Sequence[JsonDict]) -> list[JsonDict]:
    """One tag a package, or one for those that share it; each with an id of its own."""
    by_name: dict[str, list[JsonDict]] = {}
    for package in packages:
        by_name.setdefault(package["tag"], []).append(package)
    return [
        {
            "id": members[0]["id"] if len(members) == 1 else f"shared-{members[0]['id']}",
            "name": name,
            "message": "\n".join(member["notes"] for member in members),
            "packages": [member["name"] for member in members],
        }
        for name, members in by_name.items()
    ]


def _write_changelogs(packages: Sequence[JsonDict], words: RootWords) -> list[JsonDict]:
    """What ``release.write_changelog`` gets, once for each file: one in the root for all, or each package's own."""
    if words.changelog is None:
        return [{**package, "consumed": []} for package in packages]
    by_hand = [entry.to_json() for entry in words.entries]
    entries = [*by_hand, *(_scoped(entry, package) for package in packages for entry in package["entries"])]
    return [{**packages[0], "entries": entries, "changelog": words.changelog, "left": words.left, "consumed": []}]


def _scoped(entry: JsonDict, package: JsonDict) -> JsonDict:
    return {**entry, "scope": entry["scope"] or package["name"]}


def _find_consumed(gathered: JsonDict, released: set[str]) -> list[str]:
    """Change files that this release takes over: changesets whose packages are all released, and their fragments.

    A changeset about a package that waits (not asked for, ignored) waits with it, as changesets' own tool has it.
    """
    known = {one["name"] for one in gathered["packages"]}
    consumed = [
        str(file["path"])
        for file in gathered["changesets"]
        if {change["package"] for change in file["changes"]} & known <= released
    ]
    for one in gathered["packages"]:
        if one["name"] in released:
            consumed += [str(file["path"]) for file in one["changes"]["files"]]
    return leave_pre_mode(consumed, gathered["changesets"])


def _shorten(titles: Sequence[str]) -> str:
    more = len(titles) - _SHOWN
    return ", ".join(titles[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _write_message(packages: Sequence[JsonDict]) -> str:
    """The commit's message; the subject stays short however many packages there are."""
    names = [f"{package['name']} {package['version']}" for package in packages]
    subject = f"chore(release): {', '.join(names)}"
    if len(subject) <= _SUBJECT_COLUMNS:
        return subject
    return "\n".join([f"chore(release): {len(names)} packages", "", *(f"- {name}" for name in names)])
