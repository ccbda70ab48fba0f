"""forge.pull_request: propose the drafted commit to a protected branch, and wait until the branch holds its tree.

The branch itself is the judge, not what the forge says of the request: done is it when a commit on the branch's first
parents, after the planned base, has exactly the approved tree (by merge, squash or rebase).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from perdure.contracts.base import BlobRef, JsonDict
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
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Found, Probe, problems_of
from perdure.effects.forge_place import ARGUMENTS, place_in, read_place
from perdure.effects.forge_requests import Proposal, Request, Requests, requests_of
from perdure.effects.git_push import host_of
from perdure.effects.git_refs import is_none, shown
from perdure.effects.git_target import Target, open_target
from perdure.effects.http_call import LOOK_LIMIT, look_failed
from perdure.errors import EffectFailed, PerdureError, UserError
from perdure.workspace.git import GitError, Repository
from perdure.workspace.refs import full_ref, short_ref
from perdure.workspace.remotes import Remote, find_remote, read_remote_refs


@dataclass(frozen=True)
class _Look:
    """Forge and repository at one moment."""

    found: Found
    detail: str
    request: Request | None = None
    branch: str = ""
    """What our branch is at; zeros when it is not there."""
    merged: str = ""
    """The commit on the target branch that holds the approved tree."""


class ForgePullRequest:
    """Parks until somebody merges. A merged request cannot be unmerged; one that is not is closed by ``withdraw``."""

    kind: ClassVar[str] = "forge.pull_request"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = False
    settle: ClassVar[timedelta] = timedelta(0)
    """A branch is leased, and a forge takes one open request from it: a late first one meets them."""

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: the place, base (branch), to (the draft's commit), branch (ours), title, text."""
        own = ("base", "to", "branch", "title", "text")
        know_arguments(request, self.kind, (*ARGUMENTS, *own))
        place = read_place(request)
        repository = repository_of(request)
        remote = _remote(request, repository)
        base_ref = full_ref("heads", text_argument(request, "base"))
        refs = read_remote_refs(remote)
        _refuse_other(request, repository, remote, refs.get(base_ref, ""), base_ref)
        branch = _free_branch(refs, text_argument(request, "branch"))
        pack = BlobRef.model_validate(request.draft["pack"])
        title = text_argument(request, "title").strip().splitlines()[0][:200]
        body: JsonDict = {
            "repository": str(repository.place),
            "identity": repository.identity,
            "remote": remote.name,
            "url": remote.url,
            **place.body(),
            "base_ref": base_ref,
            "base": refs[base_ref],
            "branch": branch,
            "commit": request.draft["commit"],
            "tree": request.draft["tree"],
            "pack": pack.model_dump(),
            "title": title,
            "text": str(request.arguments.get("text") or ""),
            "limit_seconds": max(1, int(request.attempt_limit.total_seconds() * 0.9)),
        }
        into = f"{remote.name}/{short_ref(base_ref)}"
        return EffectDraft(
            body=body,
            summary=f"{into} ← {short_ref(branch)}, then waits until {into} has tree {body['tree'][:7]}",
            target=f"git-remote:{remote.url}",
            inverse=Inverse(summary="cannot be undone once merged", irreversible=_reason(request)),
            requires=[f"{into} is {shown(refs[base_ref])}", f"{remote.name}/{short_ref(branch)} is absent"],
            artifacts=[pack],
            ways_out=list(dict.fromkeys([*filter(None, [host_of(remote.url)]), *place.ways_out])),
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The remote means what it meant, the target is where it was, our branch is not somebody else's."""
        try:
            repository = repository_in(body)
            problems = moved_away(repository, body)
            remote = find_remote(repository, body["remote"])
            if remote is None or remote.url != body["url"]:
                problems.append(f"Remote {body['remote']} means {remote.url if remote else 'nothing'} now.")
        except PerdureError as error:
            return [error.message]
        try:
            look = self._look(body, context)
        except PerdureError as error:
            if problems:
                return problems
            raise look_failed(error) from error
        return problems if look.found in (Found.not_done, Found.waiting, Found.done) else [*problems, look.detail]

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Ask the repository whether the tree is there, and the forge how our request stands."""
        try:
            look = self._look(body, context)
        except (PerdureError, OSError) as error:
            return Probe(Found.unknown, str(error))
        return Probe(look.found, look.detail)

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Push our branch, leased on its absence, and open the request; each only when it is not there."""
        http = place_in(body).call(context, timedelta(seconds=body["limit_seconds"]))
        requests = requests_of(place_in(body), http)
        with open_target(repository_in(body), body) as target:
            look = http.patiently(lambda: self._bring_about(body, context, target, requests))
        request = look.request
        return {"url": request.url if request else "", "number": request.number if request else 0}

    def _bring_about(self, body: JsonDict, context: EffectContext, target: Target, requests: Requests) -> _Look:
        look = _look(body, target, requests)
        if look.found is Found.lapsed:
            raise EffectFailed(look.detail)
        if look.found is not Found.not_done:
            return look
        if is_none(look.branch):
            pack = blob_in(body, "pack")
            if pack is not None:
                target.take(context.blobs.get(pack))
            target.push(context.runner, body["branch"], target.none(), body["commit"])
        requests.open(_proposal(body))
        return _look(body, target, requests)

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The target branch holds the approved tree; until then it waits. Afterwards our branch is not needed."""
        problems = problems_of(self.probe(body, context))
        if not problems:
            self._tidy(body, context)
        return problems

    def withdraw(self, body: JsonDict, context: EffectContext) -> str:
        """Close the request while it is open, and delete our branch while it is at our commit."""
        http = place_in(body).call(context, LOOK_LIMIT)
        requests = requests_of(place_in(body), http)
        with open_target(repository_in(body), body) as target:
            found = http.patiently(lambda: requests.find(_proposal(body)))
            if found is not None and found.state == "open":
                http.patiently(lambda: requests.close(found))
            self._delete_branch(body, context, target)
        return f"{found.url} is closed" if found else "nothing had been opened"

    def _tidy(self, body: JsonDict, context: EffectContext) -> None:
        try:
            with open_target(repository_in(body), body) as target:
                self._delete_branch(body, context, target)
        except PerdureError:
            return  # what was approved is merged; a branch that stays behind changes nothing of that

    @staticmethod
    def _delete_branch(body: JsonDict, context: EffectContext, target: Target) -> None:
        if target.refs().get(body["branch"]) == body["commit"]:
            target.push(context.runner, body["branch"], body["commit"], target.none())

    @staticmethod
    def _look(body: JsonDict, context: EffectContext) -> _Look:
        http = place_in(body).call(context, LOOK_LIMIT)
        requests = requests_of(place_in(body), http)
        with open_target(repository_in(body), body) as target:
            return http.patiently(lambda: _look(body, target, requests))


def _look(body: JsonDict, target: Target, requests: Requests) -> _Look:
    # The forge first: what it calls merged must then be in the repository.
    request = requests.find(_proposal(body))
    refs = target.refs()
    branch, tip = refs.get(body["branch"], target.none()), refs.get(body["base_ref"], "")
    if tip and tip != body["base"]:
        tip = target.fetch(body["base_ref"])
        merged = target.first_with_tree(body["base"], tip, body["tree"])
        if merged:
            detail = f"{body['remote']}/{short_ref(body['base_ref'])} has the approved tree, in {merged[:7]}"
            return _Look(Found.done, detail, request, branch, merged)
    found, detail = _judge(body, target, request, branch, tip)
    return _Look(found, detail, request, branch)


def _judge(body: JsonDict, target: Target, request: Request | None, branch: str, tip: str) -> tuple[Found, str]:
    """How it stands while the target does not hold the approved tree."""
    into = f"{body['remote']}/{short_ref(body['base_ref'])}"
    ours = short_ref(body["branch"])
    if request and request.state == "merged":
        if request.merge_commit and not (tip and target.has(request.merge_commit, tip)):
            return Found.waiting, f"{request.url} is merged; {into} does not show it yet"
        return Found.lapsed, f"{request.url} was merged, but {into} does not hold the approved tree."
    if request and request.state == "closed":
        return Found.lapsed, f"{request.url} was closed without being merged."
    if branch not in (target.none(), body["commit"]):
        return Found.lapsed, f"{ours} is {shown(branch)}; expected {shown(body['commit'])}: somebody pushed to it."
    if not tip or (tip != body["base"] and target.tree_of(tip) != target.tree_of(body["base"])):
        return Found.lapsed, f"{into} is {shown(tip or target.none())}; expected {shown(body['base'])}."
    if request and is_none(branch):
        return Found.lapsed, f"{ours} was deleted while {request.url} was open."
    if request:
        return Found.waiting, f"waiting for {request.url} to be merged"
    return Found.not_done, f"no request of {ours} is open"


def _proposal(body: JsonDict) -> Proposal:
    names = short_ref(body["branch"]), short_ref(body["base_ref"])
    return Proposal(*names, body["commit"], body["title"], body["text"])


def _remote(request: EffectRequest, repository: Repository) -> Remote:
    name = str(request.arguments.get("remote") or "origin")
    remote = find_remote(repository, name)
    if remote is None:
        raise UserError(f"There is no remote {name!r} in {repository.place}. Add it: `git remote add {name} <url>`.")
    return remote


def _refuse_other(request: EffectRequest, repository: Repository, remote: Remote, tip: str, base_ref: str) -> None:
    if request.draft.get("commit") != object_argument(request, "to"):
        raise UserError(
            f"Step {request.id!r}: forge.pull_request proposes the draft's commit; expected "
            f"`to: {request.draft.get('commit')}`."
        )
    name = f"{remote.name}/{short_ref(base_ref)}"
    if not tip:
        raise UserError(f"Step {request.id!r}: there is no {name} to propose to.")
    base = str(request.draft["base"])
    if not _is_below(repository, tip, base):
        raise UserError(
            f"{name} ({shown(tip)}) has commits that the draft ({shown(base)}) has not. "
            f"Run `git pull {remote.name} {short_ref(base_ref)}`, then run the job again."
        )


def _is_below(repository: Repository, commit: str, other: str) -> bool:
    try:
        return not repository.read("rev-list", "--max-count=1", commit, f"^{other}").strip()
    except GitError:
        return False  # it is not even here


def _free_branch(refs: dict[str, str], name: str) -> str:
    """Our branch's full name: the wanted one, or with a number behind it when somebody has that."""
    tries = [name, *(f"{name}-{number}" for number in range(2, 100))]
    free = [ref for ref in (full_ref("heads", one) for one in tries) if ref not in refs]
    if not free:
        raise UserError(f"The remote has every branch from {name} to {tries[-1]}. Delete those that nobody needs.")
    return free[0]


def _reason(request: EffectRequest) -> str:
    if request.undo is not None or not request.irreversible:
        raise UserError(
            f"Step {request.id!r}: a merged request cannot be unmerged; say `irreversible: <why>` and leave `undo` out."
        )
    return request.irreversible
