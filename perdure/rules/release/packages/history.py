"""What happened in each package of a workspace since its own last release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perdure.rules.git_commits import Commit, read_listed
from perdure.rules.release.last_release import LastRelease
from perdure.rules.release.packages.attribution import Attribution, attribute
from perdure.rules.release.packages.changed import find_changed_packages
from perdure.rules.release.packages.model import Package
from perdure.workspace.git import Repository


def read_history(
    repository: Repository, head: str, packages: Sequence[Package], last: Mapping[str, LastRelease]
) -> tuple[list[Commit], dict[str, Attribution]]:
    """Return (commits that count for some package, newest first; what counts for each package, by its path).

    Every package has a range of its own: what its last release reaches is not in it. Of a package without a release
    only the commits beneath its folder are looked at: to read all commits of a long history costs more than the rest.
    """
    order = repository.read("rev-list", "--topo-order", head).decode("ascii").split()
    ranges = {base: _range(repository, head, base) for base in {one.commit for one in last.values()} if base}
    new = [one.path for one in packages if one.name in last and not last[one.name].commit]
    # Where nobody has a release every folder is meant, so that nothing is saved by naming them.
    beneath = _find_beneath(repository, head, new) if ranges and "" not in new else set(order if new else ())
    wanted = beneath.union(*ranges.values())
    ranges[""] = wanted
    listed = [name for name in order if name in wanted]
    changed = find_changed_packages(repository, listed, {one.path for one in packages})
    every = read_listed(repository, listed)
    found = attribute(every, changed, packages)
    cut = {
        one.path: _cut(found[one.path], ranges[last[one.name].commit] if one.name in last else set())
        for one in packages
    }
    kept = {name for one in cut.values() for name in [*one.by, *one.scope_alone]}
    return [commit for commit in every if commit.id in kept], cut


def _range(repository: Repository, head: str, base: str) -> set[str]:
    return set(repository.read("rev-list", head, f"^{base}").decode("ascii").split())


def _find_beneath(repository: Repository, head: str, folders: Sequence[str]) -> set[str]:
    """Commits that change something beneath one of ``folders``; merges left out: they add nothing of their own."""
    limits = ("--full-history", "--no-merges")
    said = repository.read("rev-list", *limits, head, "--", *folders) if folders else b""
    return set(said.decode("ascii").split())


def _cut(found: Attribution, inside: set[str]) -> Attribution:
    by = {name: how for name, how in found.by.items() if name in inside}
    return Attribution(by, [name for name in found.scope_alone if name in inside])
