"""A repository as it was just before a release: the target tag and everything after it are not there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.release.series import Pair
from perdure.rules.git_branch import list_refs
from perdure.rules.git_commits import Commit, parse_commit, read_tag_commits
from perdure.rules.release.release_commits import is_release_commit
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
    target = _read_commit(repository, pair.commit)
    head = target.parents[0] if _only_announces(target) else target.id
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


def _only_announces(target: Commit) -> bool:
    """Whether the tagged commit is the release itself, whose files give the answer away."""
    return len(target.parents) == 1 and is_release_commit(target.subject)


def _read_commit(repository: Repository, name: str) -> Commit:
    return parse_commit(name, repository.read("cat-file", "commit", name))


def _list_past_tags(
    repository: Repository, pair: Pair, head: str, form: TagForm, scheme: VersionScheme
) -> dict[str, str]:
    """Tags in the past's history: none on the target's commit, none of its series that is as high."""
    commits = read_tag_commits(repository)
    listed = repository.read("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags").decode(
        "utf-8", "replace"
    )
    objects = {ref: oid for oid, _, ref in (line.partition(" ") for line in listed.split("\n")) if ref}
    past = {}
    for ref in list_refs(repository, "refs/tags", f"--merged={head}"):
        name = ref.removeprefix("refs/tags/")
        version = form.read(name)
        is_later = scheme.is_legal(version) and scheme.key(version) >= scheme.key(pair.target.version)
        if ref in objects and commits.get(name) != pair.commit and not is_later:
            past[ref] = objects[ref]
    return past
