"""The part of GitLab's REST API (v4) that releases, generic packages and merge requests need."""

from __future__ import annotations

import re
from urllib.parse import unquote

from perdure.testing.forge import Asked, Forge, Json, Route, Told, route, sha256

_BASE = re.compile(r"/api/v4/projects/([^/]+)(/.*)")
_NOTHING: Told = (404, {"message": "404 Not Found"})


def answer(forge: Forge, asked: Asked) -> Told:
    """Answer one request."""
    found = _BASE.fullmatch(asked.path)
    if found is None or unquote(found[1]) != forge.project:
        return 404, {"message": "404 Project Not Found"}
    return route(ROUTES, forge, asked, found[2])


def _release_of(forge: Forge, tag: str) -> Json | None:
    return next((one for one in forge.releases.values() if one["tag"] == tag), None)


def _show(forge: Forge, release: Json) -> Json:
    return {
        "tag_name": release["tag"],
        "name": release["name"],
        "description": release["notes"],
        "author": {"username": release["author"]},
        "assets": {"links": release["links"]},
        "_links": {"self": f"{forge.url}/{forge.project}/-/releases/{release['tag']}"},
    }


def _by_tag(forge: Forge, _: Asked, tag: str) -> Told:
    found = _release_of(forge, tag)
    return (200, _show(forge, found)) if found else _NOTHING


def _create(forge: Forge, asked: Asked) -> Told:
    given = asked.json()
    if _release_of(forge, given["tag_name"]):
        return 409, {"message": "Release already exists"}
    if not forge.git.resolve(f"refs/tags/{given['tag_name']}"):
        return 422, {"message": "Ref is not specified"}
    made = forge.add_release(given["tag_name"], given["description"], name=given["name"], author="perdure-bot")
    made["links"] = [{"id": forge.new_id(), **link} for link in given.get("assets", {}).get("links", [])]
    return 201, _show(forge, made)


def _link(forge: Forge, asked: Asked, tag: str) -> Told:
    found = _release_of(forge, tag)
    if found is None:
        return _NOTHING
    found["links"].append({"id": forge.new_id(), **asked.json()})
    return 201, found["links"][-1]


def _delete(forge: Forge, _: Asked, tag: str) -> Told:
    found = _release_of(forge, tag)
    if found is None:
        return _NOTHING
    del forge.releases[found["id"]]
    return 200, _show(forge, found)


def _upload(forge: Forge, asked: Asked, package: str, version: str, name: str) -> Told:
    made = forge.add_asset(_package_id(forge, package, version), name, asked.body)
    return 201, {"message": "201 Created", "id": made["id"]}


def _package_id(forge: Forge, package: str, version: str) -> int:
    """Packages are numbered by their first file."""
    for key, one in forge.assets.items():
        if one.get("package") == (package, version):
            return key
    number = forge.new_id()
    forge.assets[number] = {"id": number, "release": number, "package": (package, version), "name": "", "data": b""}
    return number


def _packages(forge: Forge, asked: Asked) -> Told:
    found = [(key, one["package"]) for key, one in forge.assets.items() if "package" in one]
    named = [(key, package) for key, package in found if package[0] == asked.query["package_name"]]
    return 200, [{"id": key, "name": package[0], "version": package[1]} for key, package in named]


def _files(forge: Forge, _: Asked, package: str) -> Told:
    found = [one for one in forge.assets.values() if one["release"] == int(package) and one["name"]]
    return 200, [_show_file(one) for one in found]


def _show_file(one: Json) -> Json:
    return {"id": one["id"], "file_name": one["name"], "size": len(one["data"]), "file_sha256": sha256(one["data"])}


def _delete_package(forge: Forge, _: Asked, package: str) -> Told:
    mine = [key for key, one in forge.assets.items() if one["release"] == int(package)]
    for key in mine:
        del forge.assets[key]
    return (204, None) if mine else _NOTHING


def _tag(forge: Forge, _: Asked, tag: str) -> Told:
    found = forge.git.resolve(f"refs/tags/{tag}")
    return (200, {"name": tag, "target": found}) if found else _NOTHING


def _show_request(forge: Forge, number: int) -> Json:
    request = forge.requests[number]
    return {
        "iid": number,
        "state": {"open": "opened"}.get(request["state"], request["state"]),
        "sha": forge.head_of(request),
        "source_branch": request["head"],
        "target_branch": request["base"],
        "merge_commit_sha": request.get("merge_commit"),
        "squash_commit_sha": None,
        "title": request["title"],
        "web_url": f"{forge.url}/{forge.project}/-/merge_requests/{number}",
    }


def _requests(forge: Forge, asked: Asked) -> Told:
    wanted = (asked.query["source_branch"], asked.query["target_branch"])
    found = [number for number, one in forge.requests.items() if (one["head"], one["base"]) == wanted]
    return 200, [_show_request(forge, number) for number in sorted(found, reverse=True)]


def _open_request(forge: Forge, asked: Asked) -> Told:
    given = asked.json()
    head = given["source_branch"]
    sha = forge.git.resolve(f"refs/heads/{head}")
    if not sha:
        return 400, {"message": "source branch does not exist"}
    if any(one["head"] == head and one["state"] == "open" for one in forge.requests.values()):
        return 409, {"message": ["Another open merge request already exists for this source branch: !1"]}
    number = forge.new_id()
    about = {"head": head, "base": given["target_branch"], "title": given["title"], "body": given["description"]}
    forge.requests[number] = about | {"state": "open", "sha": sha}
    return 201, _show_request(forge, number)


def _change_request(forge: Forge, asked: Asked, number: str) -> Told:
    if asked.json().get("state_event") == "close" and forge.requests[int(number)]["state"] == "open":
        forge.head_of(forge.requests[int(number)])
        forge.close(int(number))
    return 200, _show_request(forge, int(number))


ROUTES: list[Route] = [
    ("GET", r"/releases/([^/]+)", _by_tag),
    ("POST", r"/releases", _create),
    ("DELETE", r"/releases/([^/]+)", _delete),
    ("POST", r"/releases/([^/]+)/assets/links", _link),
    ("PUT", r"/packages/generic/([^/]+)/([^/]+)/([^/]+)", _upload),
    ("GET", r"/packages", _packages),
    ("GET", r"/packages/(\d+)/package_files", _files),
    ("DELETE", r"/packages/(\d+)", _delete_package),
    ("GET", r"/repository/tags/([^/]+)", _tag),
    ("GET", r"/merge_requests", _requests),
    ("POST", r"/merge_requests", _open_request),
    ("PUT", r"/merge_requests/(\d+)", _change_request),
]
