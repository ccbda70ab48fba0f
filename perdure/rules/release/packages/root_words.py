"""What people wrote in the workspace's root, which no package owns: taken over into its changelog, or named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from perdure.contracts.base import JsonDict
from perdure.rules.release.bump import soften_bump
from perdure.rules.release.changelog_markup import WRITTEN_FORMATS
from perdure.rules.release.entries import Entry
from perdure.rules.release.evidence import waiting_entry
from perdure.rules.release.packages.releasing import Releasing
from perdure.rules.release.released_items import leave_out_released
from perdure.rules.release.versions import BUMPS, find_scheme

_SHOWN = 5


@dataclass(frozen=True)
class RootWords:
    """What waits in the root of a workspace."""

    changelog: JsonDict | None = None
    """The root's changelog as gathered, when all that is released is told of there in one section; else ``None``."""
    entries: list[Entry] = field(default_factory=list)
    """Items under its ``[Unreleased]`` that come into that section. They move no version: they name no package."""
    left: list[JsonDict] = field(default_factory=list)
    """Items that stay there, because an earlier release held them."""
    findings: list[str] = field(default_factory=list)


def find_root_words(gathered: JsonDict, packages: Sequence[Releasing]) -> RootWords:
    """Return what becomes of the root's ``[Unreleased]`` and change files; each that stays is named.

    Packages of one tag that have no changelog of their own while the root has one are told of there. A package that
    lies in the root itself brings its words along as its own.
    """
    root, released = gathered["root"], [one for one in packages if one.version]
    owner = next((one for one in packages if not one.package.path and not one.facts["private"]), None)
    is_written = _is_written(root["changelog"], released)
    changelog = root["changelog"] if is_written else None
    if owner is not None and owner.version:
        return RootWords(changelog, left=owner.waiting if is_written else [])
    if owner is not None:  # not asked for, or nothing to release: its words wait for it
        return RootWords(changelog, left=root["changelog"].get("unreleased", []) if is_written else [])
    files = _name_files(root["files"])
    if not is_written:
        return RootWords(findings=[*_name_items(root["changelog"]), *files])
    history = {**released[0].facts, "repository": gathered["repository"], "path": ""}
    waiting = leave_out_released(history, root["changelog"], released[0].facts["scheme"])
    source = f"{root['changelog']['path']} [Unreleased]"
    entries = [waiting_entry(item, source) for item in waiting.changelog.get("unreleased", [])]
    findings = [*root["findings"], *waiting.findings, *_tell_taken(entries, source, released[0]), *files]
    return RootWords(changelog, entries, waiting.left, findings)


def _is_written(changelog: JsonDict, released: Sequence[Releasing]) -> bool:
    is_there = changelog.get("format") in WRITTEN_FORMATS and changelog["format"] != "absent"
    is_shared = len(released) > 1 and len({one.facts["tag_form"] + one.version for one in released}) == 1
    has_own = any(_has_changelog(one) for one in released if one.package.path)
    return is_there and is_shared and not has_own


def _has_changelog(one: Releasing) -> bool:
    return one.facts["changes"]["changelog"].get("format") not in (None, "absent")


def _tell_taken(entries: Sequence[Entry], source: str, first: Releasing) -> list[str]:
    """A step that an item asks for is the reviewer's to take: the sentence names the way."""
    if not entries:
        return []
    told = f"Taken over from {source}, without moving the version: {_list([entry.text for entry in entries])}."
    widest = max((entry.bump for entry in entries), key=BUMPS.index)
    step = soften_bump(widest, first.last, find_scheme(first.facts["scheme"]))
    taken = first.suggestion.bump if first.suggestion else ""
    if taken not in BUMPS or BUMPS.index(step) <= BUMPS.index(taken):  # a day or a first release takes no step
        return [told]
    return [f"{told} What is written there asks for a {step} step: `perdure edit JOB --version {first.id}=…` takes it."]


def _name_items(changelog: JsonDict) -> list[str]:
    items = [str(item["text"]) for item in changelog.get("unreleased", [])]
    told = f"{changelog.get('path')} [Unreleased] stays as it is, because no package is released there"
    return [f"{told}: {_list(items)}."] if items else []


def _name_files(files: Sequence[JsonDict]) -> list[str]:
    told = "Change files of the root stay, because they name no package"
    return [f"{told}: {', '.join(str(file['path']) for file in files)}."] if files else []


def _list(texts: Sequence[str]) -> str:
    shown = "; ".join('"' + text.split("\n", 1)[0] + '"' for text in texts[:_SHOWN])
    return shown + (f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else "")
