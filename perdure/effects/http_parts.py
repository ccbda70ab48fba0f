"""Reads the parts of an ``http.request`` step: the message, the probe, the preconditions, the way back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.values import parse_duration
from perdure.effects.arguments import know_arguments, text_argument
from perdure.effects.base import Blobs, EffectContext, EffectRequest
from perdure.effects.http_address import choose_for
from perdure.effects.http_call import Http, place_of, read_base_url
from perdure.effects.http_expect import KEYS, read_expected
from perdure.errors import EffectNotBegun, UserError

_MESSAGE = ("url", "method", "headers", "json", "text", "expect")
_OWN = ("bearer", "secrets", "repeatable", "private", "pause", "key_header")
_METHODS = ("POST", "PUT", "PATCH", "DELETE")
_REPEATABLE = ("PUT", "DELETE")
"""Methods that mean the same when they come twice (RFC 9110, 9.2.2)."""

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_SET_BY_US = ("host", "content-length", "transfer-encoding", "connection", "idempotency-key")
_SECRET = ("authorization", "cookie", "proxy-authorization", "x-api-key")
_WITHIN = timedelta(seconds=10)
_SHOWN_CHARACTERS = 16_384


def read_step(request: EffectRequest, blobs: Blobs) -> tuple[JsonDict, list[BlobRef]]:
    """Return the body without probe, and the blobs that it names. Raises ``UserError`` for what cannot be sent."""
    know_arguments(request, "http.request", (*_MESSAGE, *_OWN))
    given = request.arguments
    secrets = _secrets(request)
    message, artifacts = _read_request(request, given, secrets, blobs)
    repeatable = _flag(request, "repeatable", default=message["method"] in _REPEATABLE)
    body: JsonDict = {
        **message,
        "secrets": secrets,
        "hosts": [place_of(message["url"])],
        "key_header": _key_header(request),
        "repeatable": repeatable,
        "private": _flag(request, "private", default=False),
        "pause_seconds": _seconds(request, "pause", given["pause"]) if given.get("pause") else 0,
        "limit_seconds": max(1, int(request.attempt_limit.total_seconds() * 0.9)),
        "gone": False,
        "requires": [],
    }
    for one in request.require if isinstance(request.require, list) else [request.require]:
        if one:
            body["requires"].append(_read_look(request, "require", one, body, ("http", *KEYS)))
    return body, artifacts


def read_probe(request: EffectRequest, body: JsonDict) -> JsonDict | None:
    """Return what tells whether it happened; ``None`` without a probe."""
    given = request.probe
    if not given:
        return None
    look = _read_look(request, "probe", given, body, ("http", *KEYS, "before", "within"))
    before = given.get("before")
    if before is not None and not isinstance(before, Mapping):
        raise UserError(f"Step {request.id!r}: `probe.before` is {before!r}; expected `status` and `json` as before.")
    return {
        **look,
        "before": None if before is None else read_expected(request.id, "probe.before", before),
        "within_seconds": _seconds(request, "probe.within", given.get("within") or _WITHIN),
    }


def read_undo(request: EffectRequest, body: JsonDict, blobs: Blobs) -> tuple[JsonDict, list[BlobRef]]:
    """Return the body of the request that takes it back. Raises ``UserError`` when none is declared."""
    given = request.undo
    if not isinstance(given, Mapping) or not given:
        raise UserError(
            f"Step {request.id!r}: http.request needs `undo: {{method, url, …}}`, `undo: none_needed` or "
            "`irreversible: <why>`."
        )
    _know(request, "undo", given, _MESSAGE)
    message, artifacts = _read_request(request, {"url": body["url"], **given}, body["secrets"], blobs)
    hosts = list(dict.fromkeys([*body["hosts"], place_of(message["url"])]))
    _keep_secrets_home(request, body, message["url"])
    repeatable = message["method"] in _REPEATABLE or body["repeatable"]
    own: JsonDict = {"home": body["home"], "hosts": hosts, "gone": True, "requires": [], "repeatable": repeatable}
    return {**body, **message, **own}, artifacts


def open_http(body: JsonDict, context: EffectContext, limit: timedelta) -> Http:
    """Return what asks the hosts of a body. Raises ``EffectNotBegun`` when a secret is not known here."""
    missing = sorted({name for name in body["secrets"].values() if not context.secrets.get(name, "").strip()})
    if missing:
        raise EffectNotBegun(
            f"No secret named {', '.join(missing)} is known here. Put it into the folder `secrets` of Perdure's data "
            "folder, readable by you alone. Nothing was sent."
        )
    hidden = [context.secrets[name].strip() for name in body["secrets"].values()]
    choose = partial(choose_for, private=body["private"])
    return Http(body["hosts"], limit, headers={}, hidden=hidden, choose=choose)


def read_message(
    body: JsonDict, context: EffectContext, url: str, *, looks: bool
) -> tuple[dict[str, str], bytes | None]:
    """Return (headers, content) of a request to ``url``; ``looks``: only to read.

    Secrets go to the place of the step's own URL and to no other.
    """
    headers = {str(name): str(value) for name, value in body["headers"].items()}
    if place_of(url) == body["home"]:
        for name, secret in body["secrets"].items():
            value = context.secrets[secret].strip()
            headers[name] = f"Bearer {value}" if name == "Authorization" and " " not in value else value
    content = body["content"]
    if looks or content is None:
        headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
    if looks:
        return {**headers, "Cache-Control": "no-cache"}, None
    if body["key_header"] and context.key:
        headers[body["key_header"]] = context.key
    if content is None:
        return headers, None
    return headers, content["text"].encode() if content["text"] is not None else context.blobs.get(_ref(content))


def _read_request(
    request: EffectRequest, given: Mapping[str, Any], secrets: Mapping[str, str], blobs: Blobs
) -> tuple[JsonDict, list[BlobRef]]:
    url = _url(request, "url", str(given.get("url") or text_argument(request, "url")), carries_secret=bool(secrets))
    method = str(given.get("method") or "POST").upper()
    if method not in _METHODS:
        raise UserError(f"Step {request.id!r}: `method` is {method!r}; expected one of {', '.join(_METHODS)}.")
    headers = _headers(request, given.get("headers") or {})
    content, artifacts, kind = _content(request, given, blobs)
    if kind and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = kind
    expect = given.get("expect") or {}
    if not isinstance(expect, Mapping):
        raise UserError(f"Step {request.id!r}: `expect` is {expect!r}; expected `status` and `json`.")
    _know(request, "expect", expect, KEYS)
    message: JsonDict = {"method": method, "url": url, "home": place_of(url), "headers": headers, "content": content}
    return {**message, "expect": read_expected(request.id, "expect", expect)}, artifacts


def _content(
    request: EffectRequest, given: Mapping[str, Any], blobs: Blobs
) -> tuple[JsonDict | None, list[BlobRef], str]:
    """(what is sent, blobs, content type): a text stands in the plan itself while a person can read it there."""
    if given.get("text") is not None and given.get("json") is not None:
        raise UserError(f"Step {request.id!r}: give `json` or `text`, not both.")
    if given.get("json") is not None:
        text, kind = json.dumps(given["json"], ensure_ascii=False, sort_keys=True), "application/json"
    elif given.get("text") is not None:
        text, kind = str(given["text"]), "text/plain; charset=utf-8"
    else:
        return None, [], ""
    ref = blobs.put(text.encode())
    shown = text if len(text) <= _SHOWN_CHARACTERS else None
    return {**ref.model_dump(), "text": shown}, [ref], kind


def _read_look(request: EffectRequest, name: str, given: object, body: JsonDict, known: tuple[str, ...]) -> JsonDict:
    if not isinstance(given, Mapping) or not given.get("http"):
        raise UserError(f"Step {request.id!r}: `{name}` is {given!r}; expected `http: <URL>` with `status` and `json`.")
    _know(request, name, given, known)
    url = _url(request, f"{name}.http", str(given["http"]), carries_secret=False)
    _keep_secrets_home(request, body, url)
    if place_of(url) not in body["hosts"]:
        body["hosts"].append(place_of(url))
    return {"url": url, "expect": read_expected(request.id, name, given)}


def _keep_secrets_home(request: EffectRequest, body: JsonDict, url: str) -> None:
    """A secret that goes to one place must not be led to the same place unencrypted."""
    if place_of(url) == body["home"]:
        _url(request, "url", url, carries_secret=bool(body["secrets"]))


def _url(request: EffectRequest, name: str, url: str, *, carries_secret: bool) -> str:
    base, mark, query = url.partition("?")
    if "#" in url or any(ord(letter) <= 32 for letter in url):
        raise UserError(f"Step {request.id!r}: `{name}` is {url!r}; expected a URL without spaces and `#`.")
    read_base_url(request.id, name, base, carries_secret=carries_secret)
    return base + mark + query


def _headers(request: EffectRequest, given: object) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise UserError(f"Step {request.id!r}: `headers` is {given!r}; expected texts by header name.")
    for name, value in given.items():
        low = str(name).lower()
        if not _HEADER.match(str(name)) or not isinstance(value, str | int) or not str(value).isprintable():
            raise UserError(f"Step {request.id!r}: the header {name!r}: {value!r} cannot be sent.")
        if low in _SECRET:
            raise UserError(
                f"Step {request.id!r}: `headers` holds {name}, and a plan shows everything in it. Name a secret: "
                f"`bearer: my-token`, or `secrets: {{{name}: my-token}}`."
            )
        if low in _SET_BY_US:
            raise UserError(f"Step {request.id!r}: the header {name} is set by Perdure. Leave it out.")
    return {str(name): str(value) for name, value in given.items()}


def _secrets(request: EffectRequest) -> dict[str, str]:
    """Names of secrets by header."""
    many = request.arguments.get("secrets") or {}
    bearer = request.arguments.get("bearer")
    if not isinstance(many, Mapping) or not all(_HEADER.match(str(k)) and isinstance(v, str) for k, v in many.items()):
        raise UserError(f"Step {request.id!r}: `secrets` is {many!r}; expected names of secrets by header name.")
    return {**({"Authorization": str(bearer)} if bearer else {}), **many}


def _key_header(request: EffectRequest) -> str:
    given = request.arguments.get("key_header", "Idempotency-Key")
    if not given:
        return ""
    if not isinstance(given, str) or not _HEADER.match(given):
        raise UserError(f"Step {request.id!r}: `key_header` is {given!r}; expected a header's name, or false for none.")
    return given


def _flag(request: EffectRequest, name: str, *, default: bool) -> bool:
    given = request.arguments.get(name)
    if given is not None and not isinstance(given, bool):
        raise UserError(f"Step {request.id!r}: `{name}` is {given!r}; expected true or false.")
    return default if given is None else given


def _seconds(request: EffectRequest, name: str, given: object) -> int:
    try:
        return int(parse_duration(given).total_seconds())
    except ValueError as error:
        raise UserError(f"Step {request.id!r}: `{name}`: {error}.") from None


def _know(request: EffectRequest, name: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise UserError(f"Step {request.id!r}: `{name}` takes no {key!r}. It takes: {', '.join(known)}.")


def _ref(content: JsonDict) -> BlobRef:
    return BlobRef(sha256=content["sha256"], size_bytes=content["size_bytes"])
