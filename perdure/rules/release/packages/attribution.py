"""Which commits count for which package: by the paths that they change; what their scope says is shown beside it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from perdure.rules.git_commits import Commit
from perdure.rules.release.conventional import parse_conventional
from perdure.rules.release.entries import clean_text
from perdure.rules.release.packages.model import Package

_SHOWN = 5
BOTH, PATH_ALONE, OTHER_SCOPE = "path and scope", "path", "path, against its scope"


@dataclass(frozen=True)
class Attribution:
    """What counts for one package."""

    by: Mapping[str, str] = field(default_factory=dict)
    """How, by commit id: ``path and scope``, ``path``, ``path, against its scope``; newest first."""
    scope_alone: Sequence[str] = ()
    """Commits whose scope names the package although they change nothing in it: not counted."""


def attribute(
    commits: Sequence[Commit], changed: Mapping[str, Collection[str]], packages: Sequence[Package]
) -> dict[str, Attribution]:
    """Return what counts for each package, by its path, of commits newest first.

    ``changed``: the paths of the packages that a commit changes, by its id.
    """
    folders = {package.path for package in packages}
    scopes = _scopes(packages)
    by: dict[str, dict[str, str]] = {folder: {} for folder in folders}
    alone: dict[str, list[str]] = {folder: [] for folder in folders}
    for commit in commits:
        named = {scopes[scope] for scope in read_scopes(commit) if scope in scopes}
        owners = set(changed.get(commit.id, ()))
        for owner in owners:
            by[owner][commit.id] = BOTH if owner in named else OTHER_SCOPE if named - owners else PATH_ALONE
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
