"""A release on GitLab: assets go into the generic package registry first, then the release links to them at once."""

from __future__ import annotations

from urllib.parse import quote

from perdure.contracts.base import JsonDict
from perdure.contracts.names import slug
from perdure.effects.base import Blobs
from perdure.effects.forge_place import ForgePlace
from perdure.effects.http_call import Answer, Http, NoAnswer
from perdure.effects.release_seen import Seen, Standing, blob_of, judge, listed, refuse_other_tag, same_text

_PAGE = 100


class GitLabReleases:
    """Implements ``release_seen.Releases``."""

    def __init__(self, place: ForgePlace, http: Http, body: JsonDict, blobs: Blobs) -> None:
        self._place = place
        self._http = http
        self._body = body
        self._blobs = blobs
        self._package = slug(place.project.rpartition("/")[2])
        self._version = slug(body["tag"])

    def look(self) -> Seen:
        """The release and the files of its package."""
        tag = self._body["tag"]
        answer = self._http.ask("GET", self._url(f"/releases/{quote(tag, safe='')}"))
        release = None if answer.status == 404 else self._good(answer, "read releases").json()
        if release is not None and not self._is_ours(release):
            who = (release.get("author") or {}).get("username", "somebody")
            return Seen(Standing.foreign, f"{tag} has a release by {who} with other notes.")
        package, files = self._files() if self._body["assets"] else (None, {})
        changed = [asset["name"] for asset in self._body["assets"] if _differs(files.get(asset["name"]), asset)]
        missing = [asset for asset in self._body["assets"] if asset["name"] not in files]
        if release is None:
            return self._without_release(package, files, changed, missing)
        return self._compare(release, files, changed, missing, package)

    def _without_release(
        self, package: int | None, files: dict[str, JsonDict], changed: list[str], missing: list[JsonDict]
    ) -> Seen:
        tag = self._body["tag"]
        if changed:
            where = f"{self._package} {self._version}"
            return Seen(Standing.foreign, f"The package {where} has other content under {listed(changed)}.")
        broken = [package] if package is not None else []
        standing = Standing.partial if files else Standing.absent
        return Seen(standing, f"there is no release {tag}", missing=missing, broken=broken)

    def _compare(
        self,
        release: JsonDict,
        files: dict[str, JsonDict],
        changed: list[str],
        missing: list[JsonDict],
        package: int | None,
    ) -> Seen:
        links = {link["name"]: link["url"] for link in release.get("assets", {}).get("links", [])}
        planned = {asset["name"] for asset in self._body["assets"]}
        changed += [name for name in planned & links.keys() if links[name] != self._file_url(name)]
        unlinked = [asset for asset in self._body["assets"] if asset["name"] not in links]
        lacking = missing + [asset for asset in unlinked if asset not in missing]
        standing, detail = judge(f"the release {self._body['tag']}", True, lacking, changed)
        strangers = [name for name in {**links, **files} if name not in planned]
        url = release.get("_links", {}).get("self", "")
        told = {**release, "unlinked": unlinked}
        return Seen(standing, detail, url, told, missing, [package] if package is not None else [], strangers)

    def complete(self, seen: Seen) -> None:
        """Files, then the release with its links, or the links that it lacks."""
        for asset in seen.missing:
            data = self._blobs.get(blob_of(asset))
            headers = {"Content-Type": asset["media_type"]}
            answer = self._http.ask("PUT", self._file_url(asset["name"]), data=data, headers=headers)
            self._good(answer, f"upload {asset['name']}")
        if seen.release is None:
            self._create()
            return
        for asset in seen.release["unlinked"]:
            url = self._url(f"/releases/{quote(self._body['tag'], safe='')}/assets/links")
            self._good(self._http.ask("POST", url, content=self._link(asset)), f"link {asset['name']}")

    def remove(self, seen: Seen) -> None:
        """Delete the release and its package; the tag stays."""
        if seen.release is not None:
            self._delete(f"/releases/{quote(self._body['tag'], safe='')}", "delete the release")
        for package in seen.broken:
            self._delete(f"/packages/{package}", "delete its files")

    def _is_ours(self, release: JsonDict) -> bool:
        body = self._body
        return same_text(release.get("name"), body["name"]) and same_text(release.get("description"), body["notes"])

    def _files(self) -> tuple[int | None, dict[str, JsonDict]]:
        """(id of the package, its newest file by name)."""
        query = f"package_type=generic&package_name={quote(self._package, safe='')}&per_page={_PAGE}"
        packages = self._good(self._http.ask("GET", self._url(f"/packages?{query}")), "read packages").json()
        ours = [one for one in packages if (one.get("name"), one.get("version")) == (self._package, self._version)]
        if not ours:
            return None, {}
        path = f"/packages/{ours[0]['id']}/package_files?per_page={_PAGE}"
        files = self._good(self._http.ask("GET", self._url(path)), "read packages").json()
        return ours[0]["id"], {one["file_name"]: one for one in sorted(files, key=lambda one: one["id"])}

    def _create(self) -> None:
        self._refuse_other_tag()
        body = self._body
        content: JsonDict = {"tag_name": body["tag"], "name": body["name"], "description": body["notes"]}
        if body["assets"]:
            content["assets"] = {"links": [self._link(asset) for asset in body["assets"]]}
        answer = self._http.ask("POST", self._url("/releases"), content=content)
        if answer.status == 409:
            raise NoAnswer(f"{self._place.project}: it is there meanwhile; looking again")
        self._good(answer, "make a release")

    def _refuse_other_tag(self) -> None:
        tag = self._body["tag"]
        answer = self._http.ask("GET", self._url(f"/repository/tags/{quote(tag, safe='')}"))
        found = "" if answer.status == 404 else self._good(answer, "read tags").json()["target"]
        refuse_other_tag(self._place.project, tag, found, self._body["tag_object"])

    def _link(self, asset: JsonDict) -> JsonDict:
        return {"name": asset["name"], "url": self._file_url(asset["name"]), "link_type": "package"}

    def _file_url(self, name: str) -> str:
        return self._url(f"/packages/generic/{self._package}/{self._version}/{quote(name, safe='')}")

    def _delete(self, path: str, what: str) -> None:
        answer = self._http.ask("DELETE", self._url(path))
        if answer.status != 404:
            self._good(answer, what)

    def _good(self, answer: Answer, what: str) -> Answer:
        if answer.is_good:
            return answer
        raise self._place.refuse(answer, what)

    def _url(self, path: str) -> str:
        return self._place.root + path


def _differs(found: JsonDict | None, asset: JsonDict) -> bool:
    """Whether a file of that name is there and is not ours."""
    if found is None:
        return False
    blob = blob_of(asset)
    return found.get("size") != blob.size_bytes or found.get("file_sha256") not in (None, blob.sha256)
