"""git.branch: make a branch at a commit, or move one that nobody works on, while it is where the plan saw it."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import know_arguments, moved_away, repository_in, repository_of, text_argument
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Probe, problems_of
from perdure.effects.git_refs import at_now, check_ref, find_commit, is_none, log_environment, probe_ref, shown
from perdure.effects.git_tag import tagger
from perdure.errors import EffectFailed, PerdureError, UserError
from perdure.workspace.checkout import find_checkout
from perdure.workspace.git import Repository
from perdure.workspace.refs import full_ref, short_ref
from perdure.workspace.writing import open_writer


class GitBranch:
    """Undone by deleting it, or moving it back, while it is still where we put it."""

    kind: ClassVar[str] = "git.branch"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = True
    settle: ClassVar[timedelta] = timedelta(0)

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: name, at (a commit id, branch or tag), move (true: one that is there is moved), repo."""
        know_arguments(request, self.kind, ("name", "at", "move", "repo"))
        repository = repository_of(request)
        ref = full_ref("heads", text_argument(request, "name"))
        new, old = find_commit(repository, request.id, "at", text_argument(request, "at")), at_now(repository, ref)
        if not is_none(old) and request.arguments.get("move") is not True:
            raise UserError(
                f"Step {request.id!r}: the branch {short_ref(ref)} is there already, at {shown(old)}. Choose another "
                "name, or say `move: true`."
            )
        if problems := _checked_out(repository, ref):
            raise UserError(f"Step {request.id!r}: {problems[0]}")
        body: JsonDict = {
            "repository": str(repository.place),
            "identity": repository.identity,
            "ref": ref,
            "old": old,
            "new": new,
            "who": tagger(request, repository, context.now),
        }
        back = "delete while ours" if is_none(old) else f"move back to {shown(old)} while ours"
        return EffectDraft(
            body=body,
            summary=f"{short_ref(ref)} {shown(old)} → {shown(new)}",
            target=f"git:{repository.identity}",
            inverse=Inverse(summary=back, kind=self.kind, version=self.version, body={**body, "old": new, "new": old}),
            requires=[f"{short_ref(ref)} is {shown(old)}", f"{short_ref(ref)} is checked out nowhere"],
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The branch is where it was, and checked out nowhere."""
        try:
            repository = repository_in(body)
        except PerdureError as error:
            return [str(error)]
        found = [*moved_away(repository, body), *check_ref(repository, body)]
        return found or _checked_out(repository, body["ref"])

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Look where the branch is."""
        return probe_ref(body)

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Move the ref by compare-and-swap."""
        if problems := self.check(body, context):
            raise EffectFailed(" ".join(problems))
        with open_writer(repository_in(body), context.runner, log_environment(body["who"])) as writer:
            writer.move_ref(body["ref"], body["old"], body["new"], f"perdure: {self.kind}")
        return {"ref": body["ref"], "at": "" if is_none(body["new"]) else body["new"]}

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The branch is where it shall be, or gone."""
        return problems_of(self.probe(body, context))


def _checked_out(repository: Repository, ref: str) -> list[str]:
    place = find_checkout(repository, ref)
    return [f"{short_ref(ref)} is checked out in {place.place}; its files would not follow."] if place else []
