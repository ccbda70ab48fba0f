"""A reviewer's hand on several packages: versions by package, entries known by ids that are unique across packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perdure.contracts.decisions import Edits
from perdure.errors import UserError
from perdure.rules.release.edits import apply_edits
from perdure.rules.release.entries import Entry
from perdure.rules.release.packages.releasing import Releasing


def give_ids(entries: Sequence[Entry], identifier: str) -> list[Entry]:
    """Return the entries of one package with ids of their own: ``a41c9e0:core``."""
    # Not `replace`: it takes four times as long, and a long history has a hundred thousand entries.
    return [Entry(**(vars(entry) | {"id": f"{entry.id}:{identifier}"})) for entry in entries]


def read_versions(words: Sequence[Any] | None, packages: Sequence[Releasing]) -> dict[str, str]:
    """Return version by package name for ``["core=2.0.0"]``.

    Raises:
        UserError: a word is of another form, or names no package.
    """
    found = {}
    for word in words or []:
        name, equals, version = str(word).rpartition("=")
        one = find_package(name, packages)
        if not equals or not version or one is None:
            known = ", ".join(other.name for other in packages)
            raise UserError(f"versions={word!r} is not of the form PACKAGE=VERSION. Known packages: {known}.")
        found[one.name] = version
    return found


def find_package(name: str, packages: Sequence[Releasing]) -> Releasing | None:
    """Return the package of this name or id; of a workspace with one package nobody need name it."""
    if not name and len(packages) == 1:
        return packages[0]
    return next((one for one in packages if name and name in (one.name, one.id)), None)


def apply_hand(packages: Sequence[Releasing], edits: Sequence[Edits]) -> list[str]:
    """Apply edits oldest first to packages' own entries and wished versions; return what could not be done."""
    findings: list[str] = []
    for edit in edits:
        findings += _wish(packages, edit)
        for change in edit.changes.get("entries") or []:
            if isinstance(change, dict) and change.get("op") == "add":
                findings += _add(packages, change, edit.by)
            elif not _is_about_following(change):
                findings += _change(packages, change, edit.by)
    return findings


def apply_wording(packages: Sequence[Releasing], edits: Sequence[Edits]) -> list[str]:
    """Apply rewording and moving of entries that follow from other packages; return what could not be done."""
    findings: list[str] = []
    for edit in edits:
        for change in filter(_is_about_following, edit.changes.get("entries") or []):
            if change.get("op") == "drop":
                findings.append(f"Entry {change['id']!r} follows from another package's version: it is not dropped.")
                continue
            for one in packages:
                names = [name for name, entry in one.follows.items() if entry.id == change.get("id")]
                edited = apply_edits([one.follows[name] for name in names], [_only(edit.by, change)]) if names else None
                one.follows.update(zip(names, edited.entries, strict=True) if edited else ())
    return findings


def is_about_following(identifier: Any) -> bool:
    """Whether an id is that of an entry that follows from another package's version."""
    return str(identifier).startswith("d-")


def _is_about_following(change: Any) -> bool:
    return isinstance(change, dict) and is_about_following(change.get("id", ""))


def _only(by: str, change: Mapping[str, Any]) -> Edits:
    return Edits(by=by, changes={"entries": [dict(change)]})


def _wish(packages: Sequence[Releasing], edit: Edits) -> list[str]:
    wished = edit.changes.get("version") or {}
    wishes = wished if isinstance(wished, dict) else {"": wished}
    findings = []
    for name, version in wishes.items():
        one = find_package(str(name), packages)
        if one is None:
            known = ", ".join(other.name for other in packages)
            findings.append(f"A version by {edit.by} names no package ({name or version!r}). Known packages: {known}.")
        else:
            one.wished, one.wished_by = str(version).strip(), edit.by
    return findings


def _add(packages: Sequence[Releasing], change: Mapping[str, Any], by: str) -> list[str]:
    one = find_package(str(change.get("package") or ""), packages)
    if one is None:
        known = ", ".join(other.name for other in packages)
        return [f"An entry added by {by} names no package ({change.get('package')!r}). Known packages: {known}."]
    added = apply_edits([], [_only(by, change)])
    known_ids = {entry.id for entry in one.entries}
    one.entries += [entry for entry in give_ids(added.entries, one.id) if entry.id not in known_ids]
    return added.findings


def _change(packages: Sequence[Releasing], change: Any, by: str) -> list[str]:
    """Entries of all packages are one list: an id that begins several of them is none."""
    every = [entry for one in packages for entry in one.entries]
    edited = apply_edits(every, [Edits(by=by, changes={"entries": [change]})])
    for one in packages:
        one.entries = [entry for entry in edited.entries if entry.id.rpartition(":")[2] == one.id]
    return edited.findings
