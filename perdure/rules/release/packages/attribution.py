"""Which commits count for which package: by the paths that they change; what their scope says is shown beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from perdure.contracts.base import path_text
from perdure.rules.git_commits import Commit
from perdure.rules.release.conventional import parse_conventional
from perdure.rules.release.entries import clean_text
from perdure.rules.release.packages.model import Package
from perdure.workspace.git import Repository

_BATCH = 4000
_SHOWN = 5
BOTH, PATH_ALONE, OTHER_SCOPE = "path and scope", "path", "path, against its scope"


@dataclass(frozen=True)
class Attribution:
    """What counts for one package."""

    by: Mapping[str, str] = field(default_factory=dict)
    """How, by commit id: ``path and scope``, ``path``, ``path, against its scope``; newest first."""
    scope_alone: Sequence[str] = ()
    """Commits whose scope names the package although they change nothing in it: not counted."""


def read_changed_paths(repository: Repository, ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the paths that each commit changes; merges change nothing of their own."""
    changed: dict[str, list[str]] = {}
    for start in range(0, len(ids), _BATCH):
        asked = "".join(f"{name}\n" for name in ids[start : start + _BATCH]).encode()
        args = ("diff-tree", "--stdin", "-r", "--root", "--name-only", "-z", "--no-renames", "--format=%x01%H")
        said = repository.read(*args, stdin=asked)
        for part in said.split(b"\x01")[1:]:
            name, _, rest = part.partition(b"\0")
            changed[name.decode("ascii").strip()] = [
                path_text(path.lstrip(b"\n")) for path in rest.split(b"\0") if path
            ]
    return changed


def find_owner(path: str, folders: Iterable[str]) -> str | None:
    """Return the deepest of ``folders`` that holds a path; ``None`` when none does. The root (empty) holds all."""
    known = folders if isinstance(folders, frozenset) else frozenset(folders)
    parts = path.split("/")[:-1]
    found = ("/".join(parts[:length]) for length in range(len(parts), -1, -1))
    return next((folder for folder in found if folder in known), None)


def attribute(
    commits: Sequence[Commit], changed: Mapping[str, Sequence[str]], packages: Sequence[Package]
) -> dict[str, Attribution]:
    """Return what counts for each package, by its path, of commits newest first."""
    folders = frozenset(package.path for package in packages)
    scopes = _scopes(packages)
    by: dict[str, dict[str, str]] = {folder: {} for folder in folders}
    alone: dict[str, list[str]] = {folder: [] for folder in folders}
    for commit in commits:
        named = {scopes[scope] for scope in read_scopes(commit) if scope in scopes}
        owners = {find_owner(path, folders) for path in changed.get(commit.id, ())} - {None}
        for owner in owners & folders:
            by[str(owner)][commit.id] = BOTH if owner in named else OTHER_SCOPE if named - owners else PATH_ALONE
        for folder in named - owners:
            alone[folder].append(commit.id)
    return {folder: Attribution(by[folder], alone[folder]) for folder in folders}


def read_scopes(commit: Commit) -> list[str]:
    """The scopes of a typed commit in lower case, ``feat(core,app): …`` has two; none for merges and prose."""
    typed = None if commit.is_merge else parse_conventional(commit.subject)
    return [scope for scope in re.split(r"[,|\s]+", typed.scope.lower()) if scope] if typed else []


def _scopes(packages: Sequence[Package]) -> dict[str, str]:
    """Folder by what a scope may call a package: its name, the name without its scope, its folder's name."""
    names: dict[str, str] = {}
    for package in packages:
        for name in (package.name, package.name.rpartition("/")[2], package.path.rpartition("/")[2]):
            names.setdefault(name.lower(), package.path)
    names.pop("", None)
    return names


def tell_attribution(package: Package, found: Attribution, commits: Mapping[str, Commit]) -> list[str]:
    """Say what counts for a released package and how, and what its name alone did not make count."""
    told = []
    for how in (BOTH, PATH_ALONE, OTHER_SCOPE):
        names = [name for name, one in found.by.items() if one == how and name in commits]
        if names:
            told.append(f"by {how} {_list(names, commits, with_subject=how == OTHER_SCOPE)}")
    folder = package.path or "the root"
    lines = [f"{package.name} ({folder}): {'; '.join(told)}."] if told else []
    if names := [name for name in found.scope_alone if name in commits]:
        shown = _list(names, commits, with_subject=True)
        lines.append(f"Not listed for {package.name}, because they change nothing in {folder}: {shown}.")
    return lines


def tell_shared(found: Mapping[str, Attribution], names: Mapping[str, str], commits: Mapping[str, Commit]) -> list[str]:
    """Say which commits count for several packages. ``names``: package name by path, of those that are released."""
    owners: dict[str, list[str]] = {}
    for path, name in names.items():
        for one in found[path].by:
            owners.setdefault(one, []).append(name)
    shared = [(one, sorted(several)) for one, several in owners.items() if len(several) > 1 and one in commits]
    if not shared:
        return []
    shown = "; ".join(f"{commits[one].short} for {', '.join(several)}" for one, several in shared[:_SHOWN])
    more = f" and {len(shared) - _SHOWN} more" if len(shared) > _SHOWN else ""
    return [f"Commits that change several packages count for each: {shown}{more}."]


def _list(names: Sequence[str], commits: Mapping[str, Commit], *, with_subject: bool) -> str:
    chosen = [commits[name] for name in names[:_SHOWN]]
    joint = "; " if with_subject else ", "
    shown = joint.join(f"{one.short} {clean_text(one.subject)}" if with_subject else one.short for one in chosen)
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
