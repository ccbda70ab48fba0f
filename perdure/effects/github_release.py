"""A release on GitHub: made as a draft, filled with its assets, then published, so that nobody ever sees half of it."""

from __future__ import annotations

from urllib.parse import quote

from perdure.contracts.base import JsonDict
from perdure.effects.base import Blobs
from perdure.effects.forge_place import ForgePlace
from perdure.effects.http_call import Answer, Http, NoAnswer
from perdure.effects.release_seen import Seen, Standing, blob_of, judge, refuse_other_tag, same_text

_PAGES = 3
"""Of a hundred releases each, newest first: a draft has no address of its own."""


class GitHubReleases:
    """Implements ``release_seen.Releases``."""

    def __init__(self, place: ForgePlace, http: Http, body: JsonDict, blobs: Blobs) -> None:
        self._place = place
        self._http = http
        self._body = body
        self._blobs = blobs

    def look(self) -> Seen:
        """Every release of this tag, drafts too."""
        found = self._find()
        ours = [release for release in found if self._is_ours(release)]
        others = [release for release in found if release not in ours]
        if others:
            who = (others[0].get("author") or {}).get("login", "somebody")
            kind = "draft release" if others[0].get("draft") else "release"
            detail = f"{self._body['tag']} has a {kind} by {who} with other notes ({others[0].get('html_url', '')})."
            return Seen(Standing.foreign, detail)
        if not ours:
            return Seen(Standing.absent, f"there is no release {self._body['tag']}")
        ours.sort(key=lambda release: (bool(release["draft"]), release["id"]))
        return self._compare(ours[0], twice=[release["id"] for release in ours[1:]])

    def _compare(self, release: JsonDict, twice: list[int]) -> Seen:
        there = {asset["name"]: asset for asset in release.get("assets", [])}
        planned = {asset["name"] for asset in self._body["assets"]}
        missing, broken, changed = [], [], []
        for asset in self._body["assets"]:
            found = there.get(asset["name"])
            if found is None or found.get("state") != "uploaded":
                missing.append(asset)
                broken += [found["id"]] if found else []
            elif not self._is_same(found, asset):
                changed.append(asset["name"])
        is_ready = self._body["draft"] or not release["draft"]
        standing, detail = judge(f"the release {self._body['tag']}", is_ready and not twice, missing, changed)
        strangers = [name for name in there if name not in planned]
        return Seen(
            standing, detail, release.get("html_url", ""), {**release, "twice": twice}, missing, broken, strangers
        )

    def complete(self, seen: Seen) -> None:
        """Draft, assets, publish; whatever of it is there already stays."""
        release = seen.release or self._create()
        for extra in release.get("twice", []):
            self._delete(f"/releases/{extra}", "delete a draft that was made twice")
        for asset_id in seen.broken:
            self._delete(f"/releases/assets/{asset_id}", "delete a cut upload")
        for asset in seen.missing if seen.release else self._body["assets"]:
            self._upload(release["id"], asset)
        if release["draft"] and not self._body["draft"]:
            changed = {"draft": False, "tag_name": self._body["tag"]}
            self._good(self._http.ask("PATCH", self._url(f"/releases/{release['id']}"), content=changed), "publish it")

    def remove(self, seen: Seen) -> None:
        """Delete the release; the tag stays."""
        for release_id in [*(seen.release or {}).get("twice", []), (seen.release or {}).get("id")]:
            if release_id is not None:
                self._delete(f"/releases/{release_id}", "delete the release")

    def _find(self) -> list[JsonDict]:
        tag = self._body["tag"]
        published = self._http.ask("GET", self._url(f"/releases/tags/{quote(tag, safe='')}"))
        found = [] if published.status == 404 else [self._good(published, "read releases").json()]
        for page in range(1, _PAGES + 1):
            answer = self._http.ask("GET", self._url(f"/releases?per_page=100&page={page}"))
            listed = self._good(answer, "read releases").json()
            found += [release for release in listed if release.get("tag_name") == tag]
            if len(listed) < 100:
                break
        return list({release["id"]: release for release in found}.values())

    def _is_ours(self, release: JsonDict) -> bool:
        body = self._body
        is_named = same_text(release.get("name"), body["name"]) and same_text(release.get("body"), body["notes"])
        return is_named and bool(release.get("prerelease")) == body["prerelease"]

    def _is_same(self, found: JsonDict, asset: JsonDict) -> bool:
        blob = blob_of(asset)
        if found.get("size") != blob.size_bytes:
            return False
        digest = found.get("digest")
        if not digest:  # an older server tells none: what it gives back is hashed
            url = self._url(f"/releases/assets/{found['id']}")
            digest = self._http.digest(url, headers={"Accept": "application/octet-stream"})
            return digest is None or digest == blob.sha256
        return bool(digest == f"sha256:{blob.sha256}")

    def _create(self) -> JsonDict:
        self._refuse_other_tag()
        body = self._body
        content = {"tag_name": body["tag"], "name": body["name"], "body": body["notes"], "draft": True}
        content["prerelease"] = body["prerelease"]
        answer = self._http.ask("POST", self._url("/releases"), content=content)
        made: JsonDict = self._good(answer, "make a release").json()
        return made

    def _refuse_other_tag(self) -> None:
        """GitHub would make a missing tag by itself, somewhere."""
        tag = self._body["tag"]
        answer = self._http.ask("GET", self._url(f"/git/ref/tags/{quote(tag, safe='')}"))
        found = "" if answer.status == 404 else self._good(answer, "read tags").json()["object"]["sha"]
        refuse_other_tag(self._place.project, tag, found, self._body["tag_object"])

    def _upload(self, release_id: int, asset: JsonDict) -> None:
        url = f"{self._place.uploads}/repos/{quote(self._place.project)}/releases/{release_id}/assets"
        headers = {"Content-Type": asset["media_type"]}
        name = quote(asset["name"], safe="")
        data = self._blobs.get(blob_of(asset))
        self._good(self._http.ask("POST", f"{url}?name={name}", data=data, headers=headers), f"upload {asset['name']}")

    def _delete(self, path: str, what: str) -> None:
        answer = self._http.ask("DELETE", self._url(path))
        if answer.status != 404:
            self._good(answer, what)

    def _good(self, answer: Answer, what: str) -> Answer:
        if answer.is_good:
            return answer
        if answer.status == 422 and b"already_exists" in answer.body:
            raise NoAnswer(f"{self._place.project}: it is there meanwhile; looking again")
        raise self._place.refuse(answer, what)

    def _url(self, path: str) -> str:
        return self._place.root + path
