"""Why files that one would look for are not written: sentences for the reviewer."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.rules.git_tree import join
from perdure.rules.release.files.registry import LOCKS_WITHOUT_VERSION
from perdure.rules.release.files.tree import CommitFiles
from perdure.rules.release.files.workspaces import FoundFile


def say_left(found: Sequence[FoundFile], current: str) -> list[str]:
    """Name repetitions that say another version than the package."""
    wanted = current or "the same as others"
    return [
        f"{file.path} says {place.version} ({place.where}), not {wanted}: it is left."
        for file in found
        for place in file.found.places
        if place.follows and place.key != "parent" and place.version != current
    ]


def explain_others(files: CommitFiles, chosen: Sequence[FoundFile]) -> list[str]:
    """Say which lock files hold no version of the package itself, and what takes its version from the tag."""
    names = [*LOCKS_WITHOUT_VERSION, "composer.lock", "go.mod"]
    there = {name for name in names if files.has(join(files.folder, name))}
    own = {file.path for file in chosen if file.found.places}
    said = [
        f"{join(files.folder, lock)} does not hold the package's own version: nothing is written there."
        for lock, manifest in LOCKS_WITHOUT_VERSION.items()
        if lock in there and join(files.folder, manifest) in own
    ]
    if "composer.lock" in there and join(files.folder, "composer.json") in own:
        said.append("composer.lock hashes composer.json with its version: run `composer update --lock` afterwards.")
    if any(file.only_last for file in chosen):
        said.append("The workspace's members have several versions: those that say the last release's are written.")
    if "go.mod" in there and not own:
        said.append("go.mod: Go modules take their version from the tag, so no file is written.")
    return said
