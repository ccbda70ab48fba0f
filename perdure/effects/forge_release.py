"""forge.release: a release with notes and assets on GitHub or GitLab, over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from perdure.contracts.base import JsonDict
from perdure.contracts.plan import Inverse
from perdure.effects.arguments import know_arguments, text_argument
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Found, Probe, problems_of
from perdure.effects.forge_place import ARGUMENTS, GITHUB, GITLAB, place_in, read_place
from perdure.effects.github_release import GitHubReleases
from perdure.effects.gitlab_release import GitLabReleases
from perdure.effects.http_call import LOOK_LIMIT, Http, look_failed, place_of
from perdure.effects.release_assets import read_assets
from perdure.effects.release_seen import Releases, Seen, Standing, blob_of, listed
from perdure.errors import EffectFailed, PerdureError, UserError

_GOES_ON = (Standing.absent, Standing.partial)


class ForgeRelease:
    """Undone by deleting the release while it is still ours; the tag is another effect's."""

    kind: ClassVar[str] = "forge.release"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = True
    settle: ClassVar[timedelta] = timedelta(seconds=10)
    """A request that a dead worker has sent may still be worked on."""

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: the place, tag, name, notes, assets, build, draft, prerelease."""
        own = ("tag", "name", "notes", "assets", "build", "draft", "prerelease")
        know_arguments(request, self.kind, (*ARGUMENTS, *own))
        place = read_place(request)
        tag = text_argument(request, "tag")
        draft = _flag(request, "draft")
        if draft and place.flavour == GITLAB:
            raise UserError(f"Step {request.id!r}: GitLab has no draft releases. Leave `draft` out.")
        assets = read_assets(request, context)
        body: JsonDict = {
            **place.body(),
            "tag": tag,
            "tag_object": _tag_object(request, tag),
            "name": str(request.arguments.get("name") or tag),
            "notes": str(request.arguments.get("notes") or ""),
            "draft": draft,
            # GitLab has no such mark; what it cannot show is not compared there.
            "prerelease": _flag(request, "prerelease") and place.flavour == GITHUB,
            "assets": assets,
            "gone": False,
            "limit_seconds": max(1, int(request.attempt_limit.total_seconds() * 0.9)),
        }
        return EffectDraft(
            body=body,
            summary=_summary(body),
            target=f"forge:{place.root}/releases/{tag}",
            inverse=Inverse(
                summary="delete while ours", kind=self.kind, version=self.version, body={**body, "gone": True}
            ),
            requires=[f"{place.project} has no release {tag}"],
            artifacts=[blob_of(asset) for asset in assets],
            ways_out=place.ways_out,
        )

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """There is no release of the tag, or ours, begun; taking back: it is ours, and holds nothing of others."""
        try:
            seen = self._look(body, context)
        except PerdureError as error:
            raise look_failed(error) from error
        if seen.standing is Standing.foreign:
            return [seen.detail]
        if body["gone"] and seen.strangers:
            return [f"The release {body['tag']} holds {listed(seen.strangers)}, not of this plan. Delete it by hand."]
        return []

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Compare the release with the plan: name, notes, and each asset's size and SHA-256."""
        try:
            seen = self._look(body, context)
        except PerdureError as error:
            return Probe(Found.unknown, error.message)
        if seen.standing is Standing.foreign:
            return Probe(Found.foreign, seen.detail)
        is_there = seen.standing is not Standing.absent if body["gone"] else seen.standing is Standing.whole
        return Probe(Found.done if is_there != body["gone"] else Found.not_done, seen.detail)

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Make what is missing of it, or delete it; asked again while nobody answers, as long as the step may take."""
        http = place_in(body).call(context, timedelta(seconds=body["limit_seconds"]))
        releases = _open(body, context, http)
        seen = http.patiently(lambda: self._bring_about(body, releases))
        return {"url": seen.url, "assets": [asset["name"] for asset in body["assets"]]}

    def _bring_about(self, body: JsonDict, releases: Releases) -> Seen:
        seen = releases.look()
        if seen.standing is Standing.foreign or (body["gone"] and seen.strangers):
            raise EffectFailed(f"{seen.detail} It was left alone.")
        if body["gone"]:
            releases.remove(seen)
        elif seen.standing in _GOES_ON:
            releases.complete(seen)
        return releases.look()

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """Read back: the release, and every asset with its size and SHA-256."""
        return problems_of(self.probe(body, context))

    @staticmethod
    def _look(body: JsonDict, context: EffectContext) -> Seen:
        http = place_in(body).call(context, LOOK_LIMIT)
        return http.patiently(_open(body, context, http).look)


def _open(body: JsonDict, context: EffectContext, http: Http) -> Releases:
    kind = GitLabReleases if body["forge"] == GITLAB else GitHubReleases
    return kind(place_in(body), http, body, context.blobs)


def _summary(body: JsonDict) -> str:
    count = len(body["assets"])
    files = f" with {count} file{'s' * (count != 1)}" if count else ""
    marks = [mark for mark in ("draft", "prerelease") if body[mark]]
    return f"{body['project']} {body['tag']} on {place_of(body['api'])}{files}" + (
        f" ({', '.join(marks)})" if marks else ""
    )


def _flag(request: EffectRequest, name: str) -> bool:
    value: Any = request.arguments.get(name) or False
    if not isinstance(value, bool):
        raise UserError(f"Step {request.id!r}: `{name}` is {value!r}; expected true or false.")
    return value


def _tag_object(request: EffectRequest, tag: str) -> str:
    """The id of the tag that this plan makes; empty when it makes none, or by a rule."""
    made = [body["new"] for kind, body in request.earlier if kind == "git.tag" and body["ref"] == f"refs/tags/{tag}"]
    return str(made[-1]) if made else ""
