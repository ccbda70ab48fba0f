"""Whether a package index or a page shows what a command was to publish: like PyPI's, npm's or Cargo's, or plain HTTP.

"Not there" of an index is not yet a no: what was uploaded turns up after a while, so that a probe of this kind says
``within`` which time.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, canonicalize_name, parse_sdist_filename
from packaging.utils import parse_wheel_filename as parse_wheel
from packaging.version import InvalidVersion, Version

from perdure.contracts.base import JsonDict
from perdure.contracts.values import parse_duration
from perdure.effects.base import EffectRequest, Found, Probe
from perdure.effects.http_call import LOOK_LIMIT, Answer, Http, place_of, read_base_url, read_page_url
from perdure.errors import EffectFailed, PerdureError, UserError

_KINDS = ("pypi", "npm", "crates")
"""Languages that indexes speak. Which index a project uses is its own business: the step gives the address."""

_WITHIN = timedelta(minutes=2)
_PAUSE_SECONDS = 1.0

_INDEX = ("index", "url", "name", "version", "hashes", "within")
_PAGE = ("http", "status", "contains", "within")

Files = dict[str, set[str]]
"""Hashes by file name, written ``sha256:<hex>`` or ``sha512:<hex>``; a name without hashes is there all the same."""


def read_published(request: EffectRequest) -> JsonDict | None:
    """Return what a step's ``probe`` asks an index or a page; ``None`` when it is a command, or nothing.

    Raises:
        UserError: it is neither, or says too little.
    """
    given = request.probe
    if not isinstance(given, Mapping):
        return None
    if "http" in given:
        return _read_page(request, given)
    index = given.get("index")
    if index not in _KINDS:
        raise UserError(
            f"Step {request.id!r}: nothing says how it is told that this is published. Give a command as the probe, "
            f"or `index`: it is {index!r}; expected one of {', '.join(_KINDS)}."
        )
    _know(request, given, _INDEX)
    name, version, hashes = given.get("name"), given.get("version"), given.get("hashes") or {}
    if not (isinstance(name, str) and name and isinstance(version, str) and version and isinstance(hashes, Mapping)):
        raise UserError(f"Step {request.id!r}: `probe` with `index` needs the `name` of the package and its `version`.")
    base = read_base_url(request.id, "url", str(given.get("url") or ""), carries_secret=False)
    return {
        "index": index,
        "url": f"{base}/{_path(index, name)}",
        "name": name,
        "version": version,
        "hashes": {str(file): _hash(str(value)) for file, value in hashes.items()},
        "within_seconds": _within(given),
    }


def _read_page(request: EffectRequest, given: Mapping[str, Any]) -> JsonDict:
    _know(request, given, _PAGE)
    url = read_page_url(request.id, "http", str(given["http"]))
    status = given.get("status") or 200
    if not isinstance(status, int):
        raise UserError(f"Step {request.id!r}: `status` is {status!r}; expected a number like 200.")
    contains = str(given.get("contains") or "")
    return {"index": "", "url": url, "status": status, "contains": contains, "within_seconds": _within(given)}


def look_at(published: JsonDict) -> Probe:
    """Look once. ``foreign``: the index has other files under the name and version."""
    url = published["url"]
    try:
        http = Http([place_of(url)], LOOK_LIMIT, headers={"Cache-Control": "no-cache"})
        kind = {"pypi": "application/vnd.pypi.simple.v1+json"}.get(published["index"], "*/*")
        answer = http.patiently(lambda: http.ask("GET", url, headers={"Accept": kind}))
        return _judge_page(published, answer) if not published["index"] else _judge(published, answer)
    except (PerdureError, KeyError, TypeError, ValueError, AttributeError) as error:
        said = error.message if isinstance(error, PerdureError) else f"{place_of(url)} answers in another form: {error}"
        return Probe(Found.unknown, said)


def await_shown(published: JsonDict) -> Probe:
    """Look until it is there, or for as long as it may take to turn up."""
    deadline = time.monotonic() + published["within_seconds"]
    while True:
        probe = look_at(published)
        if probe.found in (Found.done, Found.foreign) or time.monotonic() + _PAUSE_SECONDS > deadline:
            return probe
        time.sleep(_PAUSE_SECONDS)


def _judge_page(published: JsonDict, answer: Answer) -> Probe:
    is_there = answer.status == published["status"] and published["contains"].encode() in answer.body
    return Probe(Found.done if is_there else Found.not_done, f"{published['url']} answers {answer.status}")


def _judge(published: JsonDict, answer: Answer) -> Probe:
    what = f"{published['name']} {published['version']}"
    where = place_of(published["url"])
    if answer.status in (404, 410):
        return Probe(Found.not_done, f"{where} does not have {published['name']}")
    if not answer.is_good:
        raise EffectFailed(f"{where} answers {answer.status}: {answer.gist()}")
    files = {"pypi": _pypi, "npm": _npm, "crates": _crates}[published["index"]](published, answer)
    if files is None:
        return Probe(Found.not_done, f"{where} does not show {what}")
    for name, planned in published["hashes"].items():
        if name not in files:
            return Probe(Found.not_done, f"{where} shows {what} without {name}")
        same_kind = {found for found in files[name] if found.partition(":")[0] == planned.partition(":")[0]}
        if same_kind and planned not in same_kind:
            return Probe(Found.foreign, f"{where} has other content under {name} of {what}: it is not ours.")
    return Probe(Found.done, f"{where} shows {what}")


def _pypi(published: JsonDict, answer: Answer) -> Files | None:
    """The simple API as JSON (PEP 691); versions by the names of the files, in their canonical form."""
    wanted = Version(published["version"])
    files = {
        str(file["filename"]): {f"{kind}:{value}" for kind, value in file.get("hashes", {}).items()}
        for file in answer.json()["files"]
        if _version_of(str(file["filename"])) == wanted
    }
    return files or None


def _version_of(file: str) -> Version | None:
    try:
        return parse_wheel(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None  # eggs, installers: they say nothing about a version


def _npm(published: JsonDict, answer: Answer) -> Files | None:
    found = answer.json().get("versions", {}).get(published["version"])
    if found is None:
        return None
    dist = found.get("dist", {})
    name = urlsplit(str(dist.get("tarball", ""))).path.rpartition("/")[2]
    integrity = str(dist.get("integrity", ""))
    return {name: {_hash(one) for one in integrity.split()}}


def _crates(published: JsonDict, answer: Answer) -> Files | None:
    """The sparse index: one JSON object a line."""
    for line in answer.body.decode("utf-8", "replace").splitlines():
        found = json.loads(line) if line.strip() else {}
        if found.get("vers") == published["version"]:
            return {f"{published['name']}-{published['version']}.crate": {f"sha256:{found['cksum']}"}}
    return None


def _path(index: str, name: str) -> str:
    if index == "pypi":
        return f"{canonicalize_name(name)}/"
    if index == "npm":
        return quote(name, safe="@")
    low = name.lower()
    prefix = {1: "1", 2: "2", 3: f"3/{low[:1]}"}.get(len(low), f"{low[:2]}/{low[2:4]}")
    return f"{prefix}/{quote(low, safe='')}"


def _hash(text: str) -> str:
    """A hash in hex behind its kind: from ``<hex>`` (SHA-256), ``sha256:<hex>`` or npm's ``sha512-<base64>``."""
    kind, dash, coded = text.partition("-")
    if dash:
        return f"{kind}:{base64.b64decode(coded + '==', validate=False).hex()}"
    return text.lower() if ":" in text else f"sha256:{text.lower()}"


def _within(given: Mapping[str, Any]) -> int:
    try:
        return int(parse_duration(given.get("within") or _WITHIN).total_seconds())
    except ValueError as error:
        raise UserError(f"`within`: {error}.") from None


def _know(request: EffectRequest, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise UserError(f"Step {request.id!r}: `probe` takes no {key!r}. It takes: {', '.join(known)}.")
