"""http.request: one request that changes something; how it is told and taken back are requests as well."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

from perdure.contracts.base import BlobRef, JsonDict
from perdure.contracts.plan import Inverse
from perdure.effects.base import EffectContext, EffectDraft, EffectRequest, Found, Probe, problems_of, settle_of
from perdure.effects.http_call import LOOK_LIMIT, Answer, NoAnswer, NotSent, place_of
from perdure.effects.http_expect import describe, find_mismatch
from perdure.effects.http_parts import open_http, read_message, read_probe, read_step, read_undo
from perdure.errors import EffectFailed, EffectNotBegun, EffectUnknown, PerdureError

_PAUSE_SECONDS = 0.3
_CANNOT_SEE = (401, 403, 407, 408, 425, 429)
"""Answers to a probe that say nothing about what it looks for."""

_KEPT_BYTES = 64 << 10


class HttpRequest:
    """Undone by the request that `undo` declares; told by the request that `probe` declares."""

    kind: ClassVar[str] = "http.request"
    version: ClassVar[int] = 1
    always_reversible: ClassVar[bool] = False
    settle: ClassVar[timedelta] = timedelta(seconds=10)
    """A request that a dead worker has sent may still be worked on; `probe.within` says it for one server."""

    def plan(self, request: EffectRequest, context: EffectContext) -> EffectDraft:
        """``with``: url, method (POST, PUT, PATCH, DELETE), headers, json or text, expect (status, json by pointer).

        Also: bearer and secrets (names of secrets, by header), repeatable, private, pause, key_header. ``probe``: http,
        status, json, before, within. ``require``: http, status, json, or several. ``undo``: a request like the step.
        """
        body, artifacts = read_step(request, context.blobs)
        body["probe"] = read_probe(request, body)
        if body["probe"]:
            body["settle_seconds"] = body["probe"]["within_seconds"]
        undo, more = self._inverse(request, body, context)
        return EffectDraft(
            body=body,
            summary=_summary(body),
            target=f"http:{body['url'].partition('?')[0]}"[:300],
            inverse=undo,
            requires=[f"GET {one['url']} answers {describe(one['expect'])}" for one in body["requires"]],
            artifacts=[*artifacts, *more],
            ways_out=[*body["hosts"], *(f"secret:{name}" for name in sorted(set(body["secrets"].values())))],
        )

    def _inverse(self, request: EffectRequest, body: JsonDict, context: EffectContext) -> tuple[Inverse, list[BlobRef]]:
        if request.irreversible:
            return Inverse(irreversible=request.irreversible), []
        if request.undo == "none_needed":
            return Inverse(none_needed="the template says that nothing has to be undone"), []
        undo, artifacts = read_undo(request, body, context.blobs)
        body["hosts"] = undo["hosts"]
        return Inverse(summary=_summary(undo), kind=self.kind, version=self.version, body=undo), artifacts

    def check(self, body: JsonDict, context: EffectContext) -> list[str]:
        """Every ``require`` answers as it must, and the probe finds nothing that is neither before nor after."""
        problems: list[str] = []
        for one in body["requires"]:
            try:
                answer = self._look(body, one["url"], context)
            except PerdureError as error:
                problems.append(error.message)
                continue
            mismatch = find_mismatch(one["expect"], answer)
            problems += [f"{one['url']} {mismatch}."] if mismatch else []
        probe = self.probe(body, context) if body["probe"] else None
        if probe and probe.found in (Found.foreign, Found.unknown):
            problems.append(probe.detail)
        return problems

    def probe(self, body: JsonDict, context: EffectContext) -> Probe:
        """Ask the probe's URL. Without one nothing can be told."""
        if not body["probe"]:
            return Probe(Found.unknown, "the step gives no probe for this request")
        try:
            answer = self._look(body, body["probe"]["url"], context)
        except PerdureError as error:
            return Probe(Found.unknown, error.message)
        return _turned(body, _judge(body["probe"], answer))

    def do(self, body: JsonDict, context: EffectContext) -> JsonDict:
        """Send it once, with a key that every attempt shares; what a cut connection leaves open the probe tells.

        Raises:
            EffectNotBegun: nothing was sent.
            EffectFailed: it was refused, or the probe proves in time that it did not happen.
            EffectUnknown: it cannot be known.
        """
        http = open_http(body, context, timedelta(seconds=body["limit_seconds"]))
        headers, data = read_message(body, context, body["url"], looks=False)

        def send() -> Answer:
            return http.ask(body["method"], body["url"], data=data, headers=headers)

        try:
            answer = http.patiently(send) if body["repeatable"] else _send_surely_once(send)
        except NotSent as unsent:
            raise EffectNotBegun(unsent.message) from None
        except NoAnswer as doubt:
            return self._after_doubt(body, context, doubt)
        mismatch = find_mismatch(body["expect"], answer)
        if mismatch:
            kind = EffectFailed if 400 <= answer.status < 500 else EffectUnknown
            raise kind(f"{body['method']} {body['url']} {mismatch}")
        time.sleep(body["pause_seconds"])
        kept = context.blobs.put(answer.body[:_KEPT_BYTES])
        return {"status": answer.status, "answer": kept.model_dump()}

    def _after_doubt(self, body: JsonDict, context: EffectContext, doubt: NoAnswer) -> JsonDict:
        """Look until a no is a no: the server may still work on what was sent."""
        deadline = time.monotonic() + settle_of(self, body).total_seconds()
        while True:
            probe = self.probe(body, context)
            if probe.found is Found.done:
                return {"status": 0, "found": f"done, although {doubt.message}"}
            if probe.found is not Found.not_done or time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_SECONDS)
        if probe.found is Found.not_done:
            raise EffectFailed(f"{doubt.message}; {probe.detail}")
        raise EffectUnknown(f"{doubt.message}; {probe.detail}")

    def verify(self, body: JsonDict, context: EffectContext) -> list[str]:
        """The probe, where there is one, finds it done. Eventually consistent servers are given their time."""
        if not body["probe"]:
            return []
        deadline = time.monotonic() + settle_of(self, body).total_seconds()
        while (probe := self.probe(body, context)).found is Found.not_done and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        return problems_of(probe)

    @staticmethod
    def _look(body: JsonDict, url: str, context: EffectContext) -> Answer:
        http = open_http(body, context, LOOK_LIMIT)
        headers, _ = read_message(body, context, url, looks=True)
        return http.patiently(lambda: http.ask("GET", url, headers=headers))


def _send_surely_once(send: Callable[[], Answer]) -> Answer:
    """Send; what never left this machine is sent once more."""
    try:
        return send()
    except NotSent:
        time.sleep(_PAUSE_SECONDS)
        return send()


def _judge(probe: JsonDict, answer: Answer) -> Probe:
    url = probe["url"]
    mismatch = find_mismatch(probe["expect"], answer)
    if not mismatch:
        return Probe(Found.done, f"{url} answers {describe(probe['expect'])}")
    if answer.status in _CANNOT_SEE and answer.status not in (probe["before"] or {}).get("status", []):
        return Probe(Found.unknown, f"{place_of(url)} answers {answer.status} to the probe")
    if probe["before"] is None or not find_mismatch(probe["before"], answer):
        return Probe(Found.not_done, f"{url} {mismatch}")
    return Probe(Found.foreign, f"{url} {mismatch}, and it is not as before either")


def _turned(body: JsonDict, probe: Probe) -> Probe:
    turned = {Found.done: Found.not_done, Found.not_done: Found.done}
    return Probe(turned.get(probe.found, probe.found), probe.detail) if body["gone"] else probe


def _summary(body: JsonDict) -> str:
    content = body["content"]
    size = f" · {content['size_bytes']} bytes sha256:{content['sha256'][:12]}" if content else ""
    return f"{body['method']} {body['url']}"[:160] + size
