"""The source ``release.packages``: a workspace's packages, and what happened in each since its own last release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_branch import find_branch, list_tags, refuse_unready
from perdure.rules.git_commits import Commit, read_listed
from perdure.rules.git_remote import read_remote, refuse_behind
from perdure.rules.git_tree import open_input
from perdure.rules.release.change_files import find_changesets, find_fragments
from perdure.rules.release.changelog_files import describe_changelog
from perdure.rules.release.files.tree import CommitFiles
from perdure.rules.release.last_release import LastRelease, find_last_release, list_merged, refuse_unknown_releases
from perdure.rules.release.packages.attribution import Attribution, attribute, read_changed_paths
from perdure.rules.release.packages.discover import discover
from perdure.rules.release.packages.model import Package, make_ids
from perdure.rules.release.packages.tag_forms import PackageTags, find_tag_forms, is_released_by_tag
from perdure.rules.release.packages.version_places import describe_group, describe_package, find_range_locks
from perdure.rules.release.versions import VersionScheme, find_scheme
from perdure.workspace.git import Repository
from perdure.workspace.refs import short_ref

PACKAGES = "release.packages"
_NO_FILES: JsonDict = {"files": [], "version": "", "package": "", "path": ""}


def gather_packages(arguments: JsonDict, context: RuleContext) -> RuleResult:
    """Find the packages in the branch's newest commit; of each its last release, commits, version and change files.

    ``with``: ``repo``; optional ``packages`` (folders or globs instead of what the workspace says), ``tag`` (a form
    with ``{name}`` or ``{path}``; without it as the tags show), ``scheme`` (``auto``: PEP 440 for Python, else SemVer),
    ``branch`` and ``remote``.

    Raises:
        UserError: the repository is not ready for a release, or holds no packages; the message says what to do.
    """
    repository = open_input(arguments["repo"])
    ref, head = find_branch(repository, str(arguments.get("branch") or ""))
    refuse_unready(repository)
    files = CommitFiles(repository, head, "")
    workspace = discover(files, arguments.get("packages") or [])
    names = list_tags(repository)
    remote = read_remote(repository, str(arguments.get("remote") or ""))
    refuse_behind(repository, remote, ref, head)
    schemes = {one.name: _scheme(one, str(arguments.get("scheme") or "auto")) for one in workspace.packages}
    public = [one for one in workspace.packages if not one.private or is_released_by_tag(one, names, schemes[one.name])]
    given = str(arguments.get("tag") or "")
    public = public or (workspace.packages if given else [])
    forms, findings = find_tag_forms(public, names, schemes, given)
    merged = list_merged(repository, head)
    last = {
        one.name: find_last_release(
            repository, head, names, forms[one.name].form, schemes[one.name], starts_anew=True, merged=merged
        )
        for one in public
    }
    for one in public:
        refuse_unknown_releases(remote, names, last[one.name], forms[one.name].form, schemes[one.name])
    commits, counted = _read_history(repository, head, workspace.packages, last)
    ids = make_ids(workspace.packages)
    described = [
        _describe(one, ids[one.path], files, forms, schemes, last, counted[one.path]) for one in workspace.packages
    ]
    changesets, left_alone = find_changesets(files.top)
    value: JsonDict = {
        "rule": PACKAGES,
        "repository": str(repository.place),
        "branch": short_ref(ref),
        "ref": ref,
        "head": head,
        "shallow": False,
        "packages": described,
        "groups": {group: describe_group(files, group, described) for group in _groups(described)},
        "root": _describe_changes(files),
        "changesets": changesets,
        "uses_changesets": workspace.uses_changesets,
        "linked": workspace.linked,
        "follows_always": workspace.follows_always,
        "ignored": workspace.ignored,
        "locks": find_range_locks(files),
        "commits": [commit.to_json() for commit in commits],
        "tags": names,
        "remote": remote.name,
        "remote_url": remote.url,
        "remote_refs": remote.refs,
    }
    findings = [*workspace.findings, *findings, *([remote.finding] if remote.finding else []), *left_alone]
    findings += [f"Left out: {why}." for why in workspace.left]
    findings += [last[one.name].finding for one in public if last[one.name].finding]
    return RuleResult(value, _summarize(workspace.packages, public, commits), findings=findings)


def _scheme(package: Package, name: str) -> VersionScheme:
    usual = "pep440" if package.kind == "python" else "semver"
    return find_scheme(usual if name == "auto" else name)


def _read_history(
    repository: Repository, head: str, packages: Sequence[Package], last: Mapping[str, LastRelease]
) -> tuple[list[Commit], dict[str, Attribution]]:
    """Return (commits that count for some package, newest first; what counts for each package, by its path).

    Every package has a range of its own: what its last release reaches is not in it. Of a package without a release
    only the commits beneath its folder are looked at: to read what each commit of a long history changes costs more
    than everything else (13 s of CPU for 40,000 commits, 4 s so; measured 2026-12).
    """
    order = repository.read("rev-list", "--topo-order", head).decode("ascii").split()
    ranges = {base: _range(repository, head, base) for base in {one.commit for one in last.values()} if base}
    new = [one.path for one in packages if one.name in last and not last[one.name].commit]
    # Where nobody has a release every folder is meant, so that nothing is saved by naming them.
    beneath = _find_beneath(repository, head, new) if ranges and "" not in new else set(order if new else ())
    wanted = beneath.union(*ranges.values())
    ranges[""] = wanted
    listed = [name for name in order if name in wanted]
    changed = read_changed_paths(repository, listed)
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


def _describe(
    package: Package,
    identifier: str,
    files: CommitFiles,
    forms: Mapping[str, PackageTags],
    schemes: Mapping[str, VersionScheme],
    last: Mapping[str, LastRelease],
    found: Attribution,
) -> JsonDict:
    """One package with its history; a private one is only known by name, so that what it asks for can follow."""
    tags = forms.get(package.name)
    since = last.get(package.name, LastRelease())
    group = package.group
    if tags is not None and [one.form for one in forms.values()].count(tags.form) > 1:
        group = group or f"tag {tags.form}"
    here = files.at(package.path)
    return {
        **replace(package, group=group, private=tags is None).to_json(),
        "id": identifier,
        "tag_form": str(tags.form) if tags else "",
        "scheme": schemes[package.name].name,
        "last_tag": since.tag,
        "last_tag_commit": since.commit,
        "last_version": since.version,
        "last_candidate": since.candidate,
        "by": dict(found.by),
        "scope_alone": list(found.scope_alone),
        "files": describe_package(here, package) if tags else _NO_FILES,
        "changes": _describe_changes(here) if tags else {"changelog": {}, "files": []},
    }


def _describe_changes(files: CommitFiles) -> JsonDict:
    """A folder's changelog and fragments."""
    changelog, said = describe_changelog(files.top)
    fragments, more = find_fragments(files.top)
    return {"changelog": changelog, "files": fragments, "findings": [*said, *more]}


def _groups(described: Sequence[JsonDict]) -> list[str]:
    return sorted({one["group"] for one in described if one["group"] and not one["private"]})


def _summarize(packages: Sequence[Package], public: Sequence[Package], commits: Sequence[Any]) -> str:
    if not public:
        raise UserError(
            f"All {len(packages)} packages are private (their manifests forbid to publish them), and no tag names one. "
            "Give tag='{name}@{version}' to release them all the same."
        )
    return f"{len(public)} of {len(packages)} packages, {len(commits)} commits since their releases"


RULE = Rule(
    name=PACKAGES,
    rule_class="source",
    run=gather_packages,
    needs=frozenset({"repo"}),
    takes=frozenset({"packages", "tag", "scheme", "branch", "remote"}),
    about="A workspace's packages (npm, pnpm, yarn, lerna, Cargo, uv, Poetry, Go), each with its own history.",
)
