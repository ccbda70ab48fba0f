"""A repository as it was just before a release: the target tag and everything after it are not there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.release.series import Pair
from perdure.rules.git_branch import list_refs
from perdure.rules.git_commits import Commit, parse_commit, read_commits, read_tag_commits
from perdure.rules.release.release_commits import read_announcement
from perdure.rules.release.tags import TagForm
from perdure.rules.release.versions import VersionScheme
from perdure.workspace.git import Repository

_CONFIG = """[core]
	repositoryformatversion = {version}
	bare = true
{extension}[user]
	name = Judge
	email = judge@example.org
"""


@dataclass(frozen=True)
class Past:
    """A bare repository whose branch ``main`` ends before the target's release commit."""

    path: Path
    head: str
    at: str
    """Committer-independent time of the release: the author time of the target's commit, ISO 8601."""


def open_past(repository: Repository, pair: Pair, folder: Path, form: TagForm, scheme: VersionScheme) -> Past:
    """Make ``folder`` a bare repository that borrows the objects of ``repository`` and knows only the past."""
    target = parse_commit(pair.commit, repository.read("cat-file", "commit", pair.commit))
    head = _find_head(repository, target, pair, form, scheme)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("objects/info", "refs/heads"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    sha256 = repository.object_format == "sha256"
    extension = "[extensions]\n\tobjectformat = sha256\n" if sha256 else ""
    (folder / "config").write_text(_CONFIG.format(version=int(sha256), extension=extension))
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "refs/heads/main").write_text(f"{head}\n")
    (folder / "objects/info/alternates").write_text(f"{repository.common_dir / 'objects'}\n")
    refs = _list_past_tags(repository, pair, head, form, scheme)
    (folder / "packed-refs").write_text("".join(f"{oid} {ref}\n" for ref, oid in sorted(refs.items())))
    return Past(folder, head, target.at)


def _find_head(repository: Repository, target: Commit, pair: Pair, form: TagForm, scheme: VersionScheme) -> str:
    """The newest commit of the target's first-parent line before anything that announces the target's version.

    The release commit gives the answer away, in its message and in its files; in some projects it comes by a merge.
    """
    last = read_tag_commits(repository)[pair.last.name]
    commits = read_commits(repository, target.id, since=last)
    by_id = {commit.id: commit for commit in commits}
    telling = {commit.id for commit in commits if _announces(commit, pair.target.version, form, scheme)}
    head = target
    while telling & _reach(head.id, by_id) and head.parents and head.parents[0] in by_id:
        head = by_id[head.parents[0]]
    return head.parents[0] if head.id in telling and head.parents else head.id


def _announces(commit: Commit, version: str, form: TagForm, scheme: VersionScheme) -> bool:
    said = read_announcement(commit.subject)
    if said == "":
        return False
    said = form.read(said or "") or said or ""
    return scheme.is_legal(said) and bool(scheme.key(said) == scheme.key(version))


def _reach(start: str, by_id: dict[str, Commit]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in by_id and name not in seen:
            seen.add(name)
            waiting.extend(by_id[name].parents)
    return seen


def _list_past_tags(
    repository: Repository, pair: Pair, head: str, form: TagForm, scheme: VersionScheme
) -> dict[str, str]:
    """Object by ref of the tags that were there: in the past's history, or lower in the series and not younger.

    None is on the target's commit, and none of the target's series is as high.
    """
    commits = read_tag_commits(repository)
    template = "--format=%(objectname)%00%(refname)%00%(creatordate:unix)"
    lines = repository.read("for-each-ref", template, "refs/tags").decode("utf-8", "replace").split("\n")
    rows = {ref: (oid, int(day or 0)) for oid, ref, day in (line.split("\0") for line in lines if line)}
    merged = set(list_refs(repository, "refs/tags", f"--merged={head}"))
    until = rows[f"refs/tags/{pair.target.name}"][1]
    past = {}
    for ref, (oid, day) in rows.items():
        name = ref.removeprefix("refs/tags/")
        version = form.read(name)
        is_ours = scheme.is_legal(version)
        is_later = is_ours and scheme.key(version) >= scheme.key(pair.target.version)
        was_there = ref in merged or (is_ours and day <= until)
        if was_there and not is_later and commits.get(name) != pair.commit:
            past[ref] = oid
    return past
