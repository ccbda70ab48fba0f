"""git.revert: a commit that takes another one back, made when the plan is, so that the review shows its diff."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from perdure.contracts.base import BlobRef, JsonDict, path_text
from perdure.contracts.plan import FileChange
from perdure.effects.arguments import know_arguments, repository_of, text_argument
from perdure.effects.base import Blobs, EffectContext, EffectDraft, EffectRequest
from perdure.effects.git_commit import GitCommit
from perdure.effects.git_refs import find_commit
from perdure.effects.git_tag import tagger
from perdure.errors import UserError
from perdure.scratch import scratch_folder
from perdure.workspace.git import Repository
from perdure.workspace.git_process import run_git
from perdure.workspace.private import (
    ABSENT,
    make_private,
    parse_raw,
    read_blobs,
    signature_environment,
    write_object,
)
from perdure.workspace.refs import full_ref, short_ref
from perdure.workspace.signing import find_signer, signed_commit

_SUBMODULE = "160000"


class GitRevert(GitCommit):
    """Undone by moving the branch back while it is still at our commit."""

    kind: ClassVar[str] = "git.revert"
    version: ClassVar[int] = 1

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: commit (an id, or a tag), branch, message, repo. Refused where there are conflicts."""
        know_arguments(request, self.kind, ("commit", "branch", "message", "repo"))
        repository = repository_of(request)
        ref = full_ref("heads", text_argument(request, "branch"))
        old = repository.resolve(ref)
        if old is None:
            raise UserError(f"Step {request.id!r}: there is no branch {short_ref(ref)} in {repository.place}.")
        bad = find_commit(repository, request.id, "commit", text_argument(request, "commit"))
        who = tagger(request, repository, context.now)
        with scratch_folder("revert") as folder:
            made = _Reverting(request.id, repository, folder, old, bad)
            new = made.commit(str(request.arguments.get("message") or ""), who)
            pack = context.blobs.put(made.pack(new))
            changes = [change.model_dump(mode="json") for change in made.changes(new, context.blobs)]
            said = f"{bad[:7]} {made.subject()[:80]}"
        draft = self.fix(repository, ref, old, new, pack=pack, who=who, changes=changes, blobs=context.blobs)
        shown = [BlobRef.model_validate(one[side]) for one in changes for side in ("old", "new") if one[side]]
        back = {**(draft.inverse.body or {}), "changes": [_turned(change) for change in changes]}
        return replace(
            draft,
            body={**draft.body, "changes": changes},
            inverse=draft.inverse.model_copy(update={"body": back}),
            summary=f"takes back {said} · {draft.summary}",
            artifacts=[*draft.artifacts, *shown],
        )


def _turned(change: JsonDict) -> JsonDict:
    sides = {"old": change["new"], "new": change["old"]}
    return {**change, **sides, "old_mode": change["new_mode"], "new_mode": change["old_mode"]}


class _Reverting:
    """A private git directory in which the reverting commit is made."""

    def __init__(self, step: str, repository: Repository, folder: Path, tip: str, bad: str) -> None:
        self._step, self._repository, self._tip, self._bad = step, repository, tip, bad
        self._git_dir = make_private(folder / "git", repository, settings={})

    def _run(self, *args: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> str:
        codes = (0, 1) if args[0] == "merge-tree" else (0,)  # 1: it has conflicts
        out = run_git(self._git_dir, *args, stdin=stdin, env=env, codes=codes)
        return out.decode("utf-8", "replace").strip()

    def subject(self) -> str:
        """The first line of the commit that is taken back."""
        return self._run("log", "-1", "--format=%s", self._bad)

    def commit(self, message: str, who: JsonDict) -> str:
        """Make the commit and return its id; the same inputs give the same one.

        Raises:
            UserError: it is not on the branch, a merge or a first commit, taken back already, or in conflict.
        """
        parent = self._parent()
        tree = self._merge(parent)
        text = message or f'Revert "{self.subject()}"\n\nThis reverts commit {self._bad}.'
        env = signature_environment(who["name"], who["email"], datetime.fromisoformat(who["at"]).astimezone(UTC))
        commit = self._run("commit-tree", tree, "-p", self._tip, "-F", "-", stdin=(text + "\n").encode(), env=env)
        signer = find_signer(self._repository, "commit.gpgsign")
        if signer is None:
            return commit
        data = run_git(self._git_dir, "cat-file", "commit", commit)
        return write_object(self._git_dir, "commit", signed_commit(data, self._repository.object_format, signer))

    def _parent(self) -> str:
        if self._run("rev-list", "--max-count=1", self._bad, f"^{self._tip}"):
            raise UserError(f"Step {self._step!r}: {self._bad[:7]} is not on the branch; nothing is to be taken back.")
        parents = self._run("rev-parse", f"{self._bad}^@").split()
        if len(parents) != 1:
            what = "a merge" if parents else "the first commit"
            raise UserError(f"Step {self._step!r}: {self._bad[:7]} is {what}; only one with one parent is taken back.")
        return parents[0]

    def _merge(self, parent: str) -> str:
        """The tip's tree without what the commit did: a merge whose common ancestor is that commit's own tree."""
        env = signature_environment("perdure", "perdure", datetime(2000, 1, 1, tzinfo=UTC))
        base = self._run("commit-tree", f"{self._bad}^{{tree}}", stdin=b"base\n", env=env)
        sides = [
            self._run("commit-tree", f"{one}^{{tree}}", "-p", base, stdin=b"side\n", env=env)
            for one in (self._tip, parent)
        ]
        args = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", *sides)
        tree, *conflicts = self._run(*args).strip("\0").split("\0")
        if conflicts:
            names = ", ".join(sorted(set(conflicts))[:5])
            raise UserError(
                f"Step {self._step!r}: {self._bad[:7]} cannot be taken back without conflicts in {names}. Revert it by "
                "hand, or take back what came after it first."
            )
        if tree == self._run("rev-parse", f"{self._tip}^{{tree}}"):
            raise UserError(f"Step {self._step!r}: {self._bad[:7]} is taken back already; nothing would change.")
        return tree

    def pack(self, commit: str) -> bytes:
        """Every object that the commit adds."""
        args = ("pack-objects", "--revs", "--stdout", "-q", "--window=0", "--threads=1")
        return run_git(self._git_dir, *args, stdin=f"{commit}\n^{self._tip}\n".encode())

    def changes(self, commit: str, blobs: Blobs) -> list[FileChange]:
        """What it changes, for the review, sorted by path."""
        args = ("diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", self._tip, commit)
        found = parse_raw(run_git(self._git_dir, *args))
        sides = [(one.old_mode, one.old_id) for one in found] + [(one.new_mode, one.new_id) for one in found]
        held = read_blobs(self._git_dir, (oid for mode, oid in sides if mode not in (ABSENT, _SUBMODULE)))
        return [
            FileChange(
                path=path_text(one.path),
                old=blobs.put(held[one.old_id]) if one.old_id in held else None,
                new=blobs.put(held[one.new_id]) if one.new_id in held else None,
                old_mode="" if one.old_mode == ABSENT else one.old_mode,
                new_mode="" if one.new_mode == ABSENT else one.new_mode,
            )
            for one in found
        ]
