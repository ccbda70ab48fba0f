"""git.tag_merged: an annotated tag at the remote, on the commit of a protected branch that holds the approved tree.

That commit only exists once somebody has merged. It is named by a rule that the plan fixes: the first commit on the
branch's first parents, after the planned base, whose tree is exactly the approved one. Everything else of the tag is
fixed too, so that its bytes follow from the commit: whether a tag is ours can be told at any time. Where git is
configured to sign, the signature is made when the commit is known, and stands behind those bytes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import know_arguments, moved_away, repository_in, repository_of, text_argument
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Found, Probe, problems_of
from perdure.effects.git_push import host_of
from perdure.effects.git_refs import is_none, shown, signed_note
from perdure.effects.git_tag import object_id, tag_bytes, tagger
from perdure.effects.git_target import Target, open_target
from perdure.effects.http_call import look_failed
from perdure.errors import EffectFailed, EffectUnknown, PerdureError, UserError
from perdure.workspace.git import GitError
from perdure.workspace.refs import full_ref, short_ref
from perdure.workspace.remotes import find_remote, read_remote_refs
from perdure.workspace.signing import find_signer, signed_tag


class GitTagMerged:
    """Undone by deleting it at the remote while it is still our object."""

    kind: ClassVar[str] = "git.tag_merged"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = True
    settle: ClassVar[timedelta] = timedelta(0)
    """Leased on the tag's absence: a late first push meets it."""

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: name, message, remote, on (the branch). Tree and tagger are the draft's."""
        know_arguments(request, self.kind, ("name", "message", "remote", "on", "repo"))
        repository = repository_of(request)
        name = text_argument(request, "name")
        ref = full_ref("tags", name)
        remote = find_remote(repository, str(request.arguments.get("remote") or "origin"))
        if remote is None or not request.draft.get("tree"):
            raise UserError(f"Step {request.id!r}: git.tag_merged needs a remote and a draft.")
        refs = read_remote_refs(remote)
        if ref in refs or repository.resolve(ref) is not None:
            raise UserError(f"The tag {short_ref(ref)} exists already. Choose another version.")
        on = full_ref("heads", text_argument(request, "on"))
        if on not in refs:
            raise UserError(f"Step {request.id!r}: there is no {remote.name}/{short_ref(on)} to tag on.")
        body: JsonDict = {
            "repository": str(repository.place),
            "identity": repository.identity,
            "remote": remote.name,
            "url": remote.url,
            "tag": ref,
            "on": on,
            "base": refs[on],
            "tree": request.draft["tree"],
            "message": str(request.arguments.get("message") or name),
            "who": tagger(request, repository, context.now),
            "gone": False,
        }
        signer = find_signer(repository, "tag.gpgsign")
        if signer:
            body |= {"signed": {"format": signer.format, "key": signer.key}}
            # Nobody watches when it is signed: a key that asks for a passphrase is told of while somebody does.
            signer.sign(self._bytes(body, refs[on]))
        where = f"{remote.name}/{short_ref(on)}"
        note = signed_note(signer.key if signer else "")
        return EffectDraft(
            body=body,
            summary=f"{remote.name} {short_ref(ref)} → the commit on {where} whose tree is {body['tree'][:7]}{note}",
            target=f"git-remote:{remote.url}",
            inverse=Inverse(
                summary="delete while ours",
                kind=self.kind,
                version=self.version,
                body={**body, "gone": True},
                only_before_irreversible=True,
            ),
            requires=[f"{remote.name} has no tag {short_ref(ref)}"],
            ways_out=[host] if (host := host_of(remote.url)) else [],
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The remote means what it meant, and its tag is absent, or ours."""
        try:
            repository = repository_in(body)
            problems = moved_away(repository, body)
            remote = find_remote(repository, body["remote"])
        except PerdureError as error:
            return [error.message]
        if remote is None or remote.url != body["url"]:
            problems.append(f"Remote {body['remote']} means {remote.url if remote else 'nothing'} now.")
        probe = self.probe(body, context)
        if probe.found is Found.unknown and not problems:
            raise look_failed(EffectUnknown(probe.detail))
        return problems if probe.found in (Found.done, Found.not_done) else [*problems, probe.detail]

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Look at the tag of the remote, and whether its bytes are the planned ones."""
        try:
            with open_target(repository_in(body), body) as target:
                found = target.refs().get(body["tag"], target.none())
                is_ours = not is_none(found) and self._is_ours(body, target, found)
        except (PerdureError, OSError) as error:
            return Probe(Found.unknown, f"{body['url']} does not say: {error}")
        detail = f"{body['remote']}'s tag {short_ref(body['tag'])} is {shown(found)}"
        if is_none(found) or is_ours:
            return Probe(Found.done if is_ours != body["gone"] else Found.not_done, detail)
        return Probe(Found.foreign, f"{detail}: not the one of this plan.")

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Find the commit by the rule, write the tag object, push it leased on its absence; or delete it while ours."""
        with open_target(repository_in(body), body) as target:
            commit = self._commit(body, target)
            if not commit:
                where = f"{body['remote']}/{short_ref(body['on'])}"
                raise EffectFailed(
                    f"{where} holds no commit with the approved tree {body['tree'][:7]}: nothing to tag."
                )
            oid = self._find_own(body, target) if body["gone"] else target.write("tag", self._signed(body, commit))
            moves = (oid, target.none()) if body["gone"] else (target.none(), oid)
            target.push(context.runner, body["tag"], *moves)
        return {"tag": body["tag"], "object": oid, "commit": commit}

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The remote shows exactly our tag, or none."""
        return problems_of(self.probe(body, context))

    def _is_ours(self, body: JsonDict, target: Target, found: str) -> bool:
        """Whether a tag of the remote has our bytes, with a signature behind them where one is planned."""
        commit = self._commit(body, target)
        if not commit:
            return False
        expected = self._bytes(body, commit)
        if not body.get("signed"):
            return found == object_id("tag", expected, target.repository.object_format)
        try:
            data = target.read("tag", target.fetch(body["tag"]))
        except GitError:
            return False  # a commit, not a tag object: somebody's lightweight tag
        return data.startswith(expected) and data[len(expected) :].startswith(b"-----BEGIN ")

    def _find_own(self, body: JsonDict, target: Target) -> str:
        found = target.refs().get(body["tag"], target.none())
        if is_none(found) or not self._is_ours(body, target, found):
            raise EffectFailed(f"{body['remote']}'s tag {short_ref(body['tag'])} is {shown(found)}: it is not ours.")
        return found

    def _signed(self, body: JsonDict, commit: str) -> bytes:
        """The tag's bytes, signed as planned: by today's settings only while they name the same key."""
        data, planned = self._bytes(body, commit), body.get("signed")
        if not planned:
            return data
        try:
            signer = find_signer(repository_in(body), "tag.gpgsign")
            if signer is None or (signer.format, signer.key) != (planned["format"], planned["key"]):
                now = f"with {signer.key}" if signer else "nothing"
                raise EffectFailed(f"git is configured to sign {now} now; the plan says {planned['key']}.")
            return signed_tag(data, signer)
        except UserError as error:
            raise EffectFailed(error.message) from None

    @staticmethod
    def _commit(body: JsonDict, target: Target) -> str:
        return target.first_with_tree(body["base"], target.fetch(body["on"]), body["tree"])

    @staticmethod
    def _bytes(body: JsonDict, commit: str) -> bytes:
        return tag_bytes(short_ref(body["tag"]), commit, body["message"], body["who"])
