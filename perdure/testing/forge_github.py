"""The part of GitHub's REST API that releases and pull requests need (docs.github.com/rest, 2022-11-28)."""

from __future__ import annotations

import re

from perdure.testing.forge import Asked, Forge, Json, Route, Told, route, sha256

_BASE = re.compile(r"/api/(?:v3|uploads)/repos/([^/]+/[^/]+)(/.*)")


def answer(forge: Forge, asked: Asked) -> Told:
    """Answer one request."""
    found = _BASE.fullmatch(asked.path)
    if found is None or found[1] != forge.project:
        return 404, {"message": "Not Found"}
    return route(ROUTES, forge, asked, found[2])


def _show(forge: Forge, release: Json) -> Json:
    return {
        "id": release["id"],
        "tag_name": release["tag"],
        "name": release["name"],
        # GitHub gives line ends back as CRLF where they came so from its pages.
        "body": release["notes"].replace("\n", "\r\n"),
        "draft": release["draft"],
        "prerelease": release["prerelease"],
        "author": {"login": release["author"]},
        "html_url": f"{forge.url}/{forge.project}/releases/{release['id']}",
        "assets": [_show_asset(forge, one) for one in forge.assets.values() if one["release"] == release["id"]],
    }


def _show_asset(forge: Forge, asset: Json) -> Json:
    shown = {"id": asset["id"], "name": asset["name"], "size": len(asset["data"]), "state": asset["state"]}
    return shown | ({"digest": f"sha256:{sha256(asset['data'])}"} if forge.tells_digests else {})


def _by_tag(forge: Forge, _: Asked, tag: str) -> Told:
    found = [one for one in forge.releases.values() if one["tag"] == tag and not one["draft"]]
    return (200, _show(forge, found[0])) if found else (404, {"message": "Not Found"})


def _list(forge: Forge, asked: Asked) -> Told:
    size, page = int(asked.query.get("per_page", 30)), int(asked.query.get("page", 1))
    newest = sorted(forge.releases.values(), key=lambda one: -one["id"])
    return 200, [_show(forge, one) for one in newest[(page - 1) * size : page * size]]


def _create(forge: Forge, asked: Asked) -> Told:
    given = asked.json()
    if not given["draft"] and _by_tag(forge, asked, given["tag_name"])[0] == 200:
        return 422, {"errors": [{"code": "already_exists", "field": "tag_name"}]}
    made = forge.add_release(
        given["tag_name"], given["body"], name=given["name"], author="perdure-bot", draft=given["draft"]
    )
    made["prerelease"] = given["prerelease"]
    return 201, _show(forge, made)


def _patch(forge: Forge, asked: Asked, release: str) -> Told:
    found = forge.releases.get(int(release))
    if found is None:
        return 404, {"message": "Not Found"}
    found["draft"] = asked.json().get("draft", found["draft"])
    return 200, _show(forge, found)


def _delete(forge: Forge, _: Asked, release: str) -> Told:
    gone = forge.releases.pop(int(release), None)
    for key in [key for key, one in forge.assets.items() if one["release"] == int(release)]:
        del forge.assets[key]
    return (204, None) if gone else (404, {"message": "Not Found"})


def _upload(forge: Forge, asked: Asked, release: str) -> Told:
    name = asked.query["name"]
    if any(one["release"] == int(release) and one["name"] == name for one in forge.assets.values()):
        return 422, {"errors": [{"code": "already_exists", "field": "name"}]}
    return 201, _show_asset(forge, forge.add_asset(int(release), name, asked.body))


def _delete_asset(forge: Forge, _: Asked, asset: str) -> Told:
    gone = forge.assets.pop(int(asset), None)
    return (204, None) if gone else (404, {"message": "Not Found"})


def _download(forge: Forge, _: Asked, asset: str) -> Told:
    found = forge.assets.get(int(asset))
    return (200, found["data"]) if found else (404, {"message": "Not Found"})


def _tag(forge: Forge, _: Asked, tag: str) -> Told:
    found = forge.git.resolve(f"refs/tags/{tag}")
    return (200, {"ref": f"refs/tags/{tag}", "object": {"sha": found}}) if found else (404, {"message": "Not Found"})


def _show_request(forge: Forge, number: int) -> Json:
    request = forge.requests[number]
    return {
        "number": number,
        "state": "open" if request["state"] == "open" else "closed",
        "merged_at": "2026-12-01T00:00:00Z" if request["state"] == "merged" else None,
        "merge_commit_sha": request.get("merge_commit"),
        "head": {"ref": request["head"], "sha": forge.head_of(request)},
        "base": {"ref": request["base"]},
        "title": request["title"],
        "html_url": f"{forge.url}/{forge.project}/pull/{number}",
    }


def _requests(forge: Forge, asked: Asked) -> Told:
    head = asked.query["head"].partition(":")[2]
    found = [
        number for number, one in forge.requests.items() if (one["head"], one["base"]) == (head, asked.query["base"])
    ]
    return 200, [_show_request(forge, number) for number in sorted(found, reverse=True)]


def _open_request(forge: Forge, asked: Asked) -> Told:
    given = asked.json()
    sha = forge.git.resolve(f"refs/heads/{given['head']}")
    if not sha:
        return 422, {"errors": [{"code": "invalid", "field": "head"}]}
    if any(one["head"] == given["head"] and one["state"] == "open" for one in forge.requests.values()):
        return 422, {"errors": [{"message": f"A pull request already exists for acme:{given['head']}."}]}
    number = forge.new_id()
    forge.requests[number] = {key: given[key] for key in ("head", "base", "title", "body")} | {
        "state": "open",
        "sha": sha,
    }
    return 201, _show_request(forge, number)


def _change_request(forge: Forge, asked: Asked, number: str) -> Told:
    if asked.json().get("state") == "closed" and forge.requests[int(number)]["state"] == "open":
        forge.head_of(forge.requests[int(number)])
        forge.close(int(number))
    return 200, _show_request(forge, int(number))


ROUTES: list[Route] = [
    ("GET", r"/releases/tags/(.+)", _by_tag),
    ("GET", r"/releases/assets/(\d+)", _download),
    ("DELETE", r"/releases/assets/(\d+)", _delete_asset),
    ("GET", r"/releases", _list),
    ("POST", r"/releases", _create),
    ("POST", r"/releases/(\d+)/assets", _upload),
    ("PATCH", r"/releases/(\d+)", _patch),
    ("DELETE", r"/releases/(\d+)", _delete),
    ("GET", r"/git/ref/tags/(.+)", _tag),
    ("GET", r"/pulls", _requests),
    ("POST", r"/pulls", _open_request),
    ("PATCH", r"/pulls/(\d+)", _change_request),
]
