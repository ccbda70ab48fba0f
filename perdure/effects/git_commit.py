"""git.commit: put the drafted commit into the repository and move its branch there, while it is where it was."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

from perdure.contracts.base import BlobRef, JsonDict, path_bytes
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import (
    blob_in,
    know_arguments,
    moved_away,
    object_argument,
    repository_in,
    repository_of,
    text_argument,
)
from perdure.effects.base import Blobs, EffectContext, EffectDraft, EffectRequest, Found, Probe, problems_of
from perdure.effects.git_refs import check_ref, log_environment, probe_ref, shown, signed_note
from perdure.errors import EffectFailed, PerdureError, UserError
from perdure.scratch import scratch_folder
from perdure.workspace.checkout import filtered_paths, find_checkout, open_checkout, unfinished
from perdure.workspace.git import Repository, open_repository
from perdure.workspace.git_process import run_git
from perdure.workspace.private import make_private, take_pack
from perdure.workspace.refs import full_ref, short_ref
from perdure.workspace.writing import Writer, open_writer


class GitCommit:
    """Undone by moving the branch back while it is still at our commit."""

    kind: ClassVar[str] = "git.commit"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = True
    settle: ClassVar[timedelta] = timedelta(0)

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: branch, from (its commit now), to (the draft's commit)."""
        know_arguments(request, self.kind, ("branch", "from", "to", "repo"))
        repository = repository_of(request)
        ref = full_ref("heads", text_argument(request, "branch"))
        old, new = object_argument(request, "from"), object_argument(request, "to")
        _refuse_other(request, repository, ref, old, new)
        return self.fix(
            repository,
            ref,
            old,
            new,
            pack=BlobRef.model_validate(request.draft["pack"]),
            who={**request.draft["identity"], "at": request.draft["at"]},
            changes=request.draft["changes"],
            blobs=context.blobs,
            signed_with=request.draft.get("signed_with", ""),
        )

    def fix(
        self,
        repository: Repository,
        ref: str,
        old: str,
        new: str,
        *,
        pack: BlobRef,
        who: JsonDict,
        changes: list[JsonDict],
        blobs: Blobs,
        signed_with: str = "",
    ) -> EffectDraft:
        """What moves a branch to a commit whose new objects are in ``pack``, and a checkout of it along."""
        place = find_checkout(repository, ref)
        _refuse_filtered(place, changes)
        body: JsonDict = {
            "repository": str((place or repository).place),
            "identity": repository.identity,
            "ref": ref,
            "old": old,
            "new": new,
            "pack": pack.model_dump(),
            "checkout": place is not None,
            "clean": "all",
            "who": who,
        }
        back = {**body, "old": new, "new": old, "clean": "changed"}
        branch = short_ref(ref)
        return EffectDraft(
            body=body,
            summary=_size(repository, old, new, pack, blobs) + signed_note(signed_with),
            target=f"git:{repository.identity}",
            inverse=Inverse(summary=f"move {branch} back", kind=self.kind, version=self.version, body=back),
            requires=_requires(branch, old, place),
            artifacts=[pack],
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The branch is where it was; its checkout is on it, clean, and in the middle of nothing."""
        try:
            repository = repository_in(body)
        except PerdureError as error:
            return [str(error)]
        problems = [*moved_away(repository, body), *check_ref(repository, body)]
        if problems:
            return problems
        return _check_checkout(repository, body, context)

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Done also when somebody built on our commit since: it did happen."""
        probe = probe_ref(body)
        if probe.found is Found.foreign and _contains(body):
            return Probe(Found.done, f"{probe.detail}; our commit is below it")
        return probe

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Objects, then the branch, then the checkout. ``verify`` repeats the last after a crash."""
        repository = repository_in(body)
        problems = [*moved_away(repository, body), *check_ref(repository, body)]
        if problems:
            raise EffectFailed(" ".join(problems))
        with open_writer(repository, context.runner, log_environment(body["who"])) as writer:
            _add_objects(writer, body, context.blobs)
            writer.move_ref(body["ref"], body["old"], body["new"], f"perdure: {self.kind}")
        return {"commit": body["new"], "checkout": _bring_along(repository, body, context)}

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The branch has the commit and the checkout shows it; a checkout left behind by a crash is brought along."""
        problems = problems_of(self.probe(body, context))
        if problems:
            return problems
        repository = repository_in(body)
        if repository.resolve(body["ref"]) != body["new"]:
            return []  # somebody built on it: the checkout is theirs
        return _bring_along(repository, body, context)


def _refuse_other(request: EffectRequest, repository: Repository, ref: str, old: str, new: str) -> None:
    if request.draft.get("commit") != new or request.draft.get("base") != old:
        raise UserError(
            f"Step {request.id!r}: git.commit applies the draft's commit on the draft's base; expected "
            f"`from: {request.draft.get('base')}` and `to: {request.draft.get('commit')}`."
        )
    found = repository.resolve(ref)
    if found != old:
        raise UserError(
            f"{short_ref(ref)} in {repository.place} is at {(found or 'nothing')[:7]}; the draft starts from "
            f"{old[:7]}. Run the job again."
        )


def _refuse_filtered(place: Repository | None, changes: list[JsonDict]) -> None:
    paths = [path_bytes(change["path"]) for change in changes]
    filtered = filtered_paths(place, paths) if place else []
    if filtered:
        raise UserError(
            f"{', '.join(filtered)} goes through a filter program (.gitattributes). Filters of a repository are never "
            "run, so it cannot be checked out. Leave it out of the change, or check out another branch."
        )


def _requires(branch: str, old: str, place: Repository | None) -> list[str]:
    requires = [f"{branch} is at {shown(old)}"]
    if place:
        requires.append(f"no uncommitted change in {place.place}")
    return requires


def _size(repository: Repository, old: str, new: str, pack: BlobRef, blobs: Blobs) -> str:
    """ "2 files +19 −3"."""
    with scratch_folder("size") as folder:
        git_dir = make_private(folder / "git", repository)
        take_pack(git_dir, blobs.get(pack))
        # Raw attributes count every file as binary (-diff): here lines are wanted.
        (git_dir / "info" / "attributes").unlink()
        out = run_git(
            git_dir, "diff-tree", "-r", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", old, new
        )
    rows = [line.split(b"\t")[:2] for line in out.splitlines()]
    added, removed = (sum(int(row[side]) for row in rows if row[side].isdigit()) for side in (0, 1))
    return f"{len(rows)} file{'s' * (len(rows) != 1)} +{added} −{removed}"


def _check_checkout(repository: Repository, body: JsonDict, context: EffectContext) -> list[str]:
    branch = short_ref(body["ref"])
    place = find_checkout(repository, body["ref"])
    if body["checkout"] and (place is None or str(place.place) != body["repository"]):
        return [f"{body['repository']} is no longer on {branch}."]
    if place is None:
        return []
    if not body["checkout"]:
        return [f"{branch} was checked out in {place.place} since."]
    busy = [f"{place.place} is in the middle of something ({name}). Finish or abort it." for name in unfinished(place)]
    # Both wait for git, and a person waits for both.
    with ThreadPoolExecutor(max_workers=1) as aside:
        dirty = aside.submit(_say_dirty, place) if body["clean"] == "all" else None
        with open_checkout(place, body["old"], body["new"], blob_in(body, "pack"), context.blobs) as checkout:
            obstacles = checkout.obstacles()
    return busy + (dirty.result() if dirty else []) + obstacles


def _say_dirty(place: Repository) -> list[str]:
    dirty = place.is_dirty()
    more = f" and {len(dirty) - 3} more" if len(dirty) > 3 else ""
    return [f"Uncommitted changes in {', '.join(dirty[:3])}{more}. Commit or stash them."] if dirty else []


def _contains(body: JsonDict) -> bool:
    """Whether the branch went on from our commit. Never for a way back: what it goes back to is always below."""
    try:
        repository = repository_in(body)
        found = repository.resolve(body["ref"])
        return bool(
            found and _is_below(repository, body["old"], body["new"]) and _is_below(repository, body["new"], found)
        )
    except PerdureError:
        return False  # the commit is not even there


def _is_below(repository: Repository, commit: str, other: str) -> bool:
    return not repository.read("rev-list", "--max-count=1", commit, f"^{other}").strip()


def _add_objects(writer: Writer, body: JsonDict, blobs: Blobs) -> None:
    pack = blob_in(body, "pack")
    if pack is not None:
        writer.run("unpack-objects", "-q", "--strict", stdin=blobs.get(pack))


def _bring_along(repository: Repository, body: JsonDict, context: EffectContext) -> list[str]:
    if not body["checkout"]:
        return []
    place = open_repository(Path(body["repository"]))
    if place.head_ref() != body["ref"]:
        return [f"{body['repository']} is no longer on {short_ref(body['ref'])}; its files were left alone."]
    with open_checkout(place, body["old"], body["new"], blob_in(body, "pack"), context.blobs) as checkout:
        return checkout.bring_along(context.runner)
