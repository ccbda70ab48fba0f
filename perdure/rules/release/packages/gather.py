"""The source ``release.packages``: a workspace's packages, and what happened in each since its own last release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from perdure.contracts.base import JsonDict
from perdure.errors import UserError
from perdure.rules.base import Rule, RuleContext, RuleResult
from perdure.rules.git_branch import find_branch, list_tags, refuse_unready
from perdure.rules.git_remote import RemoteState, read_remote, refuse_behind
from perdure.rules.git_tree import open_input
from perdure.rules.release.change_files import find_changesets, find_fragments
from perdure.rules.release.changelog_files import describe_changelog
from perdure.rules.release.files.tree import CommitFiles
from perdure.rules.release.last_release import LastRelease, find_last_release, list_merged, refuse_unknown_releases
from perdure.rules.release.packages.attribution import Attribution
from perdure.rules.release.packages.discover import Workspace, discover
from perdure.rules.release.packages.history import read_history
from perdure.rules.release.packages.model import Package, make_ids
from perdure.rules.release.packages.tag_forms import PackageTags, find_tag_forms, is_released_by_tag
from perdure.rules.release.packages.version_places import describe_group, describe_package, find_range_locks
from perdure.rules.release.settings.find import ProjectSettings
from perdure.rules.release.settings.model import ToolSettings
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
    world = _open_world(arguments)
    releases = _find_releases(world, str(arguments.get("tag") or ""), str(arguments.get("scheme") or "auto"))
    packages = world.workspace.packages
    commits, counted = read_history(world.repository, world.head, packages, releases.last)
    ids = make_ids(packages)
    settings = ProjectSettings(world.files.at("").top)
    described = [_describe(one, ids[one.path], world.files, releases, counted[one.path], settings) for one in packages]
    changesets, left_alone = find_changesets(world.files.top)
    value = {
        **_write_world(world),
        "packages": described,
        "groups": {group: describe_group(world.files, group, described) for group in _groups(described)},
        "changesets": changesets,
        "commits": [commit.to_json() for commit in commits],
    }
    findings = [*_tell(world, releases, left_alone), *settings.root.findings]
    return RuleResult(value, _summarize(packages, releases.public, commits), findings=findings)


@dataclass(frozen=True)
class _World:
    """The repository as it is read: one commit, its packages, its tags, its remote."""

    repository: Repository
    ref: str
    head: str
    files: CommitFiles
    workspace: Workspace
    tags: list[str]
    remote: RemoteState


@dataclass(frozen=True)
class _Releases:
    """How the packages are released; each mapping by a package's name."""

    public: list[Package]
    """Those that are released at all."""
    schemes: dict[str, VersionScheme]
    """Of every package."""
    forms: dict[str, PackageTags]
    last: dict[str, LastRelease]
    findings: list[str]


def _open_world(arguments: JsonDict) -> _World:
    repository = open_input(arguments["repo"])
    ref, head = find_branch(repository, str(arguments.get("branch") or ""))
    refuse_unready(repository)
    files = CommitFiles(repository, head, "")
    workspace, tags = discover(files, arguments.get("packages") or []), list_tags(repository)
    remote = read_remote(repository, str(arguments.get("remote") or ""))
    refuse_behind(repository, remote, ref, head)
    return _World(repository, ref, head, files, workspace, tags, remote)


def _find_releases(world: _World, tag: str, scheme: str) -> _Releases:
    """``tag``: a form that was asked for; with one packages that are private are released too when all are."""
    every, tags = world.workspace.packages, world.tags
    schemes = {one.name: _scheme(one, scheme) for one in every}
    public = [one for one in every if not one.private or is_released_by_tag(one, tags, schemes[one.name])]
    public = public or (every if tag else [])
    forms, findings = find_tag_forms(public, tags, schemes, tag)
    merged, last = list_merged(world.repository, world.head), {}
    for one in public:
        form, its = forms[one.name].form, schemes[one.name]
        found = find_last_release(world.repository, world.head, tags, form, its, starts_anew=True, merged=merged)
        refuse_unknown_releases(world.remote, tags, found, form, its)
        last[one.name] = found
    return _Releases(public, schemes, forms, last, findings)


def _write_world(world: _World) -> JsonDict:
    workspace, remote = world.workspace, world.remote
    return {
        "rule": PACKAGES,
        "repository": str(world.repository.place),
        "branch": short_ref(world.ref),
        "ref": world.ref,
        "head": world.head,
        "shallow": False,
        "root": _describe_changes(world.files),
        "uses_changesets": workspace.uses_changesets,
        "linked": workspace.linked,
        "follows_always": workspace.follows_always,
        "ignored": workspace.ignored,
        "locks": find_range_locks(world.files),
        "tags": world.tags,
        "remote": remote.name,
        "remote_url": remote.url,
        "remote_refs": remote.refs,
    }


def _tell(world: _World, releases: _Releases, left_alone: Sequence[str]) -> list[str]:
    remote = [world.remote.finding] if world.remote.finding else []
    findings = [*world.workspace.findings, *releases.findings, *remote, *left_alone]
    findings += [f"Left out: {why}." for why in world.workspace.left]
    return findings + [one.finding for one in releases.last.values() if one.finding]


def _scheme(package: Package, name: str) -> VersionScheme:
    usual = "pep440" if package.kind == "python" else "semver"
    return find_scheme(usual if name == "auto" else name)


def _describe(
    package: Package,
    identifier: str,
    files: CommitFiles,
    releases: _Releases,
    found: Attribution,
    settings: ProjectSettings,
) -> JsonDict:
    """One package with its history; a private one is only known by name, so that what it asks for can follow."""
    tags, since = releases.forms.get(package.name), releases.last.get(package.name, LastRelease())
    here = files.at(package.path)
    own = settings.of(here.top) if tags else ToolSettings()
    changes = _describe_changes(here) if tags else {"changelog": {}, "files": [], "findings": []}
    if package.path:
        changes["findings"] += own.findings
    return {
        **replace(package, group=_find_group(package, tags, releases), private=tags is None).to_json(),
        "id": identifier,
        "tag_form": str(tags.form) if tags else "",
        "scheme": releases.schemes[package.name].name,
        "last_tag": since.tag,
        "last_tag_commit": since.commit,
        "last_version": since.version,
        "last_candidate": since.candidate,
        "by": dict(found.by),
        "scope_alone": list(found.scope_alone),
        "files": describe_package(here, package) if tags else _NO_FILES,
        "changes": changes,
        "settings": own.to_json(),
    }


def _find_group(package: Package, tags: PackageTags | None, releases: _Releases) -> str:
    """Packages of one tag move as one, also where no manifest says so."""
    is_shared = tags is not None and [one.form for one in releases.forms.values()].count(tags.form) > 1
    return package.group or (f"tag {tags.form}" if tags is not None and is_shared else "")


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
