"""git.tag: an annotated tag whose every byte, and so its id, is fixed when the plan is made."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import ClassVar

from perdure.contracts.base import JsonDict
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
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Probe, problems_of
from perdure.effects.git_refs import check_ref, is_none, log_environment, probe_ref, signed_note
from perdure.errors import EffectFailed, PerdureError, UserError
from perdure.workspace.git import Repository, identity
from perdure.workspace.refs import full_ref, short_ref, zero_id
from perdure.workspace.signing import find_signer, signed_tag
from perdure.workspace.writing import open_writer


class GitTag:
    """Undone by deleting it while it is still our object."""

    kind: ClassVar[str] = "git.tag"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = True
    settle: ClassVar[timedelta] = timedelta(0)

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: name, at (a commit id), message. Tagger and time are the draft's, else the repository's and now."""
        know_arguments(request, self.kind, ("name", "at", "message", "repo"))
        repository = repository_of(request)
        name = text_argument(request, "name")
        ref = full_ref("tags", name)
        if repository.resolve(ref) is not None:
            raise UserError(f"The tag {short_ref(ref)} exists already in {repository.place}. Choose another version.")
        at = object_argument(request, "at")
        who = tagger(request, repository, context.now)
        data = tag_bytes(short_ref(ref), at, str(request.arguments.get("message") or name), who)
        if signer := find_signer(repository, "tag.gpgsign"):
            data = signed_tag(data, signer)
        oid = object_id("tag", data, repository.object_format)
        stored = context.blobs.put(data)
        none = zero_id(repository.object_format)
        body: JsonDict = {
            "repository": str(repository.place),
            "identity": repository.identity,
            "ref": ref,
            "old": none,
            "new": oid,
            "at": at,
            "object": stored.model_dump(),
            "who": who,
        }
        return EffectDraft(
            body=body,
            summary=f"{short_ref(ref)} → {at[:7]}{signed_note(signer.key if signer else '')}",
            target=f"git:{repository.identity}",
            inverse=Inverse(
                summary="delete while ours",
                kind=self.kind,
                version=self.version,
                body={**body, "old": oid, "new": none, "object": None},
            ),
            requires=[f"there is no tag {short_ref(ref)}"],
            artifacts=[stored],
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The tag is not there (or, taking back, still ours)."""
        try:
            repository = repository_in(body)
        except PerdureError as error:
            return [str(error)]
        return [*moved_away(repository, body), *check_ref(repository, body)]

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """The tag's object id says whether it is ours."""
        return probe_ref(body)

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Write the tag object, then the ref by compare-and-swap; or delete the ref while it is ours."""
        repository = repository_in(body)
        if problems := self.check(body, context):
            raise EffectFailed(" ".join(problems))
        stored = blob_in(body, "object")
        with open_writer(repository, context.runner, log_environment(body["who"])) as writer:
            if stored is not None:
                _refuse_missing(repository, body["at"])
                written = writer.run("hash-object", "-t", "tag", "-w", "--stdin", stdin=context.blobs.get(stored))
                if written.stdout.decode().strip() != body["new"]:
                    raise EffectFailed(f"The stored tag is not {body['new'][:7]}, the one that was approved.")
            writer.move_ref(body["ref"], body["old"], body["new"], f"perdure: {self.kind}")
        return {"ref": body["ref"], "object": "" if is_none(body["new"]) else body["new"]}

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The ref is at exactly our object, or gone."""
        return problems_of(self.probe(body, context))


def tag_bytes(name: str, at: str, message: str, who: JsonDict) -> bytes:
    """Return an annotated tag's bytes. ``who``: name, email, at (ISO)."""
    when = int(datetime.fromisoformat(who["at"]).timestamp())
    head = f"object {at}\ntype commit\ntag {name}\ntagger {who['name']} <{who['email']}> {when} +0000\n\n"
    return (head + message.replace("\0", "").strip("\n") + "\n").encode("utf-8", "replace")


def object_id(kind: str, data: bytes, object_format: str) -> str:
    """Return the id git gives to an object."""
    hashed = f"{kind} {len(data)}\0".encode() + data
    if object_format == "sha256":
        return hashlib.sha256(hashed).hexdigest()
    return hashlib.sha1(hashed, usedforsecurity=False).hexdigest()


def tagger(request: EffectRequest, repository: Repository, now: datetime) -> JsonDict:
    """Who tags and when, as :func:`tag_bytes` wants it: the draft's author, else the repository's.

    Raises:
        UserError: git does not know who that is.
    """
    if request.draft.get("identity"):
        return {**request.draft["identity"], "at": request.draft["at"]}
    who = identity(repository)
    if who is None:
        raise UserError(
            "Git does not know who you are. Run `git config user.name NAME` and `git config user.email ADDRESS`."
        )
    return {"name": who[0], "email": who[1], "at": now.isoformat()}


def _refuse_missing(repository: Repository, commit: str) -> None:
    found = repository.read("cat-file", "--batch-check=%(objecttype)", stdin=f"{commit}\n".encode()).strip()
    if found != b"commit":
        raise EffectFailed(f"The commit {commit[:7]} that the tag would name is not in {repository.place}.")
