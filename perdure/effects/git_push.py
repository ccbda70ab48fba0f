"""git.push: move refs of a remote all together or not at all, each only while it is where the plan saw it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import urlsplit

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import know_arguments, moved_away, repository_in, repository_of, text_argument
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Found, Probe, problems_of
from perdure.effects.git_refs import is_none, shown
from perdure.effects.git_target import gist_of, open_target, planned_remote
from perdure.effects.http_call import look_failed
from perdure.errors import EffectFailed, EffectUnknown, PerdureError, UserError
from perdure.workspace.git import GitError, Repository
from perdure.workspace.refs import full_ref, is_object_id, is_ref, short_ref, zero_id
from perdure.workspace.remotes import Remote, find_remote, read_remote_refs, without_secrets


class GitPush:
    """Undone by a push the other way, leased on our ids. Settles at once: a late first push meets its own lease."""

    kind: ClassVar[str] = "git.push"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = True
    settle: ClassVar[timedelta] = timedelta(0)

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: remote (name), refs (branches and tags), lease (id by full ref, as the remote was seen)."""
        know_arguments(request, self.kind, ("remote", "refs", "lease", "repo"))
        repository = repository_of(request)
        remote = _remote(request, repository)
        lease = _lease(request, remote)
        none = zero_id(repository.object_format)
        refs = [{"ref": ref, "old": lease.get(ref, none), "new": new} for ref, new in _wanted(request, repository)]
        for item in refs:
            _refuse_losing(repository, request, remote, item)
        body: JsonDict = {
            "repository": str(repository.place),
            "identity": repository.identity,
            "remote": remote.name,
            "url": remote.url,
            "refs": refs,
        }
        back = {**body, "refs": [{"ref": item["ref"], "old": item["new"], "new": item["old"]} for item in refs]}
        return EffectDraft(
            body=body,
            summary=f"{remote.name} {', '.join(short_ref(item['ref']) for item in refs)}",
            target=f"git-remote:{remote.url}",
            inverse=Inverse(
                summary="only with lease",
                kind=self.kind,
                version=self.version,
                body=back,
                only_before_irreversible=True,
            ),
            requires=[f"{remote.name}/{short_ref(item['ref'])} is {shown(item['old'])}" for item in refs],
            ways_out=[host] if (host := host_of(remote.url)) else [],
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The remote name still means that URL, and every ref there is where it was."""
        try:
            repository = repository_in(body)
            remote, problems = find_remote(repository, body["remote"]), moved_away(repository, body)
        except PerdureError as error:
            return [f"{body['url']} cannot be looked at: {error}"]
        if remote is None or remote.url != body["url"]:
            problems.append(f"Remote {body['remote']} means {remote.url if remote else 'nothing'} now.")
        try:
            found = read_remote_refs(planned_remote(repository, body))
        except PerdureError as error:
            if problems:
                return problems
            raise look_failed(EffectUnknown(f"{body['url']} cannot be looked at: {error.message}")) from error
        for item in body["refs"]:
            if (seen := found.get(item["ref"], zero_id(repository.object_format))) != item["old"]:
                name = f"{body['remote']}/{short_ref(item['ref'])}"
                problems.append(f"{name} is {shown(seen)}; expected {shown(item['old'])}.")
        return problems

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Ask the remote: all new, all old, or something else."""
        try:
            repository = repository_in(body)
            found = read_remote_refs(planned_remote(repository, body))
        except (PerdureError, OSError) as error:
            return Probe(Found.unknown, f"{body['url']} does not say: {error}")
        seen = [(item, found.get(item["ref"], "0" * len(item["new"]))) for item in body["refs"]]
        detail = ", ".join(f"{short_ref(item['ref'])} is {shown(oid)}" for item, oid in seen)
        for side, answer in (("new", Found.done), ("old", Found.not_done)):
            if all(oid == item[side] for item, oid in seen):
                return Probe(answer, detail)
        return Probe(Found.foreign, detail)

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Push by object ids from a git directory of ours: no hook, no remote configuration of the repository.

        After a refusal the remote is asked: only what it shows unchanged counts as not done.
        """
        repository = repository_in(body)
        with open_target(repository, body) as target:
            done = target.run_push(context.runner, body["refs"])
        remote = target.remote
        # The remote's words before git's table: as they come, the two mix in any order.
        said = without_secrets((done.stderr + b"\n" + done.stdout).decode("utf-8", "replace"), remote).strip()
        if done.code != 0:
            self._explain(body, context, said)
        return {"url": remote.url, "refs": body["refs"], "said": said[:2000]}

    def _explain(self, body: JsonDict, context: EffectContext, said: str) -> None:
        """Raise what became of a push that git calls failed; return when it is done in spite of that."""
        probe = self.probe(body, context)
        if probe.found is Found.not_done:
            raise EffectFailed(f"{body['url']} refused the push: {gist_of(said)}")
        if probe.found is not Found.done:
            raise EffectUnknown(f"The push to {body['url']} failed ({gist_of(said)}), and now {probe.detail}.")

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The remote shows every ref at its new id."""
        return problems_of(self.probe(body, context))


def host_of(url: str) -> str:
    """The host that a URL reaches; empty for a path."""
    if "://" in url:
        return urlsplit(url).hostname or ""
    host, colon, _ = url.partition(":")
    return host.rpartition("@")[2] if colon and "/" not in host else ""


def _remote(request: EffectRequest, repository: Repository) -> Remote:
    name = text_argument(request, "remote")
    remote = find_remote(repository, name)
    if remote is None:
        raise UserError(f"There is no remote {name!r} in {repository.place}. Add it: `git remote add {name} <url>`.")
    return remote


def _lease(request: EffectRequest, remote: Remote) -> dict[str, str]:
    given: Any = request.arguments.get("lease")
    if given is None:
        try:
            return read_remote_refs(remote)
        except GitError as error:
            raise UserError(f"Remote {remote.name!r} ({remote.url}) does not answer: {error}") from None
    if not isinstance(given, dict) or not all(is_ref(str(k)) and is_object_id(str(v)) for k, v in given.items()):
        raise UserError(f"Step {request.id!r}: `lease` is {given!r}; expected object ids by full ref name.")
    return given


def _wanted(request: EffectRequest, repository: Repository) -> list[tuple[str, str]]:
    """(full ref, id) of what is pushed: what this plan makes of a ref goes before what it is now."""
    names = request.arguments.get("refs")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise UserError(f"Step {request.id!r}: `refs` is {names!r}; expected a list of branches and tags.")
    made = {
        body["ref"]: body["new"]
        for _, body in request.earlier
        if body.get("identity") == repository.identity and "ref" in body
    }
    return [_resolve(request, repository, name, made) for name in names]


def _resolve(request: EffectRequest, repository: Repository, name: str, made: dict[str, str]) -> tuple[str, str]:
    if name.startswith("refs/"):
        candidates = [name] if is_ref(name) else []
    else:
        candidates = [full_ref(kind, name) for kind in ("heads", "tags")]
    for known in (made.get, repository.resolve):
        found = [(ref, oid) for ref in candidates if (oid := known(ref))]
        if len(found) > 1:
            raise UserError(f"Step {request.id!r}: {name!r} is a branch and a tag. Write refs/heads/… or refs/tags/….")
        if found:
            return found[0]
    raise UserError(f"Step {request.id!r}: there is no branch or tag {name!r} to push, here or made by this plan.")


def _refuse_losing(repository: Repository, request: EffectRequest, remote: Remote, item: JsonDict) -> None:
    """A branch may only go on from where the remote has it: a lease alone would let commits be thrown away."""
    if is_none(item["old"]) or not item["ref"].startswith("refs/heads/") or item["old"] == item["new"]:
        return
    tips = {item["new"], *(body["old"] for _, body in request.earlier if body.get("new") == item["new"])}
    for tip in tips:
        try:
            if not repository.read("rev-list", "--max-count=1", item["old"], f"^{tip}").strip():
                return
        except GitError:
            continue  # either is not here (yet): the next tip may tell
    name = short_ref(item["ref"])
    raise UserError(
        f"{remote.name}/{name} ({shown(item['old'])}) has commits that {name} has not. "
        f"Run `git pull {remote.name} {name}`, then run the job again."
    )
