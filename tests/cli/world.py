"""A small real HTTP server that speaks the API's contracts, with one job whose life the test tells it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel

from perdure.contracts.base import BlobRef
from perdure.contracts.decisions import Ignored, Weighing
from perdure.contracts.http import (
    ArtifactView,
    AuditReport,
    DecideAnswer,
    EffectView,
    EventPage,
    EventView,
    Health,
    JobView,
    Problem,
    Review,
)
from perdure.contracts.job import JobPhase
from perdure.contracts.plan import ApprovalRule, Inverse, PlannedEffect, ReviewRule, Verdict

DIGEST = "7f3a91c2" + "0" * 56
SECOND = "c09e41d0" + "1" * 56
JOB_ID = "job/release-orders/r1"
NOW = datetime.now(UTC).replace(microsecond=0)

DIFF = """\
--- a/CHANGELOG.md
+++ b/CHANGELOG.md
@@ -1,2 +1,3 @@
 # Changelog
+\tbulk import
-old
"""


class Answer(Exception):
    """Raised by a handler: answer with this problem."""

    def __init__(self, kind: str, message: str, status: int, exit_code: int) -> None:
        super().__init__(message)
        self.problem = Problem(kind=kind, message=message, exit_code=exit_code)
        self.status = status


class Cut(Exception):
    """Raised by a handler: break the connection without an answer."""


Handler = Callable[[dict[str, str], Any], Any]


def effect(name: str, kind: str, summary: str, undo: str = "move back", **more: Any) -> EffectView:
    inverse = more.pop("inverse", Inverse(summary=undo, kind=kind, version=1, body={"old": "b", "new": "a"}))
    planned = PlannedEffect(
        id=name, kind=kind, version=1, summary=summary, body={"ref": "refs/heads/main"}, target="git:x", inverse=inverse
    )
    return EffectView(effect=planned.model_copy(update=more), digest="e" * 64)


class World:
    """The state behind the server. Handlers may be replaced; ``asked`` lists the requests in their order."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.headers: list[dict[str, str]] = []
        self.events: list[EventView] = []
        self.blobs: dict[str, bytes] = {}
        self.artifacts: list[ArtifactView] = []
        self.job = JobView(
            job_id=JOB_ID,
            number=1,
            name="release-orders/1",
            thread="release-orders",
            template="release",
            phase=JobPhase.queued,
            requester="anna",
            created_at=NOW,
            updated_at=NOW,
        )
        self.plans: dict[str, Review] = {}
        self.on_submit: Callable[[], None] = self.draft
        self.on_decide: Callable[[str], None] = lambda kind: self.apply() if kind == "approve" else None
        self.weighing = Weighing(outcome="satisfied", by=["anna"])
        self.routes: dict[str, Handler] = {
            "GET /v1/health": lambda query, body: Health(ok=True, version="0.1.0", temporal="embedded", worker=True),
            "POST /v1/jobs": self._submit,
            "GET /v1/jobs": lambda query, body: [self.job],
            "GET /v1/job": self._job,
            "GET /v1/agents": lambda query, body: [],
            "GET /v1/turns": lambda query, body: [],
            "GET /v1/events": self._events,
            "GET /v1/review": self._review,
            "POST /v1/plans": self._decide,
            "GET /v1/artifacts": lambda query, body: self.artifacts,
            "GET /v1/blobs": lambda query, body: self.blobs[query["path"].rsplit("/", 1)[1]],
            "GET /v1/audit": lambda query, body: AuditReport(records=27, head="a" * 64, findings=[], ok=True),
        }

    # What happens in this world

    def emit(self, kind: str, /, **body: Any) -> None:
        """Write a record."""
        with self.changed:
            position = len(self.events) + 1
            event = EventView(
                position=position, seq=position, thread="t", job_id=JOB_ID, kind=kind, at=NOW, actor="a", body=body
            )
            self.events.append(event)
            self.changed.notify_all()

    def move(self, phase: JobPhase, summary: str = "", **more: Any) -> None:
        """Bring the job to a phase."""
        with self.changed:
            self.job = self.job.model_copy(update={"phase": phase, "summary": summary, **more})
            self.emit("job.phase", phase=phase.value, summary=summary)

    def stage(self, stage: str, name: str = "", summary: str = "", status: str = "ok") -> None:
        """Finish one step."""
        self.emit("stage", stage=stage, name=name, summary=summary, status=status)

    def draft(self) -> None:
        """The straight road to a plan that waits."""
        self.move(JobPhase.gathering)
        self.stage("gather", "history", "14 commits since v1.2.0")
        self.move(JobPhase.analyzing)
        self.stage("analyze")
        self.move(JobPhase.drafting)
        self.stage("draft")
        self.move(JobPhase.verifying)
        self.stage("verify", "tests", 'no test command given (test=\'["make","test"]\')', "skipped")
        self.freeze()

    def freeze(self, digest: str = DIGEST, **more: Any) -> Review:
        """Freeze a plan and wait for people."""
        with self.changed:
            effects = [
                effect("commit", "git.commit", "2 files +19 −3", "move main back"),
                effect("tag", "git.tag", "v1.3.0 → 5be1f07", "delete while ours"),
                effect("push", "git.push", "origin main, v1.3.0", "only with lease"),
            ]
            review = Review(
                job=self.job,
                digest=digest,
                content="c" * 64,
                round=1,
                title="1.2.0 → 1.3.0",
                reasons=['minor: "feat: bulk import" (a41c9e0)'],
                rule=ReviewRule(approvals=[ApprovalRule(group="maintainers")], editable=["version", "entries"]),
                requester="anna",
                authors=[],
                effects=effects,
                verdicts=[Verdict(check="version_legal", status="passed")],
                findings=[],
                hazards=[],
                diff=DIFF,
                files=2,
                added=19,
                removed=3,
                weighing=Weighing(outcome="pending", missing=["1 from maintainers"]),
                state="open",
                expires_at=NOW + timedelta(days=7),
            ).model_copy(update=more)
            self.plans[digest] = review
            self.emit("plan.frozen", digest=digest)
            self.move(JobPhase.waiting, digest=digest, title=review.title, expires_at=review.expires_at)
            return review

    def apply(self) -> None:
        """Apply the newest plan to its end."""
        review = self.plans[self.job.digest]
        self.move(JobPhase.applying)
        for index, view in enumerate(review.effects):
            self.emit("effect.intent", index=index, direction="do", kind=view.effect.kind)
            self.emit("effect.receipt", index=index, direction="do", state="done")
        done = [view.model_copy(update={"state": "done"}) for view in review.effects]
        self.plans[review.digest] = review.model_copy(update={"effects": done, "state": "satisfied"})
        self.move(JobPhase.done, "v1.3.0 released")

    def fate(self, index: int, state: str, detail: str = "") -> None:
        """Say how one effect of the newest plan ended."""
        review = self.plans[self.job.digest]
        effects = list(review.effects)
        effects[index] = effects[index].model_copy(update={"state": state, "detail": detail})
        self.plans[review.digest] = review.model_copy(update={"effects": effects})
        self.emit("effect.receipt", index=index, direction="do", state=state, detail=detail)

    def put(self, name: str, data: bytes) -> None:
        """Store an artifact."""
        import hashlib

        ref = BlobRef(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
        self.blobs[ref.sha256] = data
        self.artifacts.append(ArtifactView(name=name, ref=ref))

    # What tests look at

    def sent(self, route: str) -> list[Any]:
        """Bodies (or queries, for a GET) of the requests on one route."""
        method = route.split()[0]
        found = [(query, body) for how, path, query, body in self.asked if f"{how} {path}".startswith(route)]
        return [query if method == "GET" else body for query, body in found]

    # Routes

    def _submit(self, query: dict[str, str], body: Any) -> JobView:
        admitted = self.job
        self.on_submit()
        return admitted

    def _job(self, query: dict[str, str], body: Any) -> JobView:
        if query["ref"] not in {"1", "@last", "release-orders/1", JOB_ID}:
            raise Answer("NotFound", f"No job {query['ref']!r}. Nearest: release-orders/1.", 404, 66)
        return self.job

    def _events(self, query: dict[str, str], body: Any) -> EventPage:
        after = int(query.get("after", 0))
        with self.changed:
            self.changed.wait_for(lambda: len(self.events) > after, timeout=min(float(query.get("wait", 0)), 5))
            return EventPage(events=self.events[after : after + 500], job=self.job)

    def _review(self, query: dict[str, str], body: Any) -> Review:
        wanted = query.get("digest") or self.job.digest
        found = [review for digest, review in self.plans.items() if wanted and digest.startswith(wanted)]
        if len(found) != 1:
            raise Answer("NotFound", f"No plan's digest begins with {wanted}.", 404, 66)
        return found[0]

    def _decide(self, query: dict[str, str], body: Any) -> DecideAnswer:
        self.emit(f"decision.{body['kind']}", decision={"id": body["decision_id"], "by": "anna"})
        ignored = [
            one.model_copy(update={"decision_id": body["decision_id"]}) if one.decision_id == "this" else one
            for one in self.weighing.ignored
        ]
        answer = DecideAnswer(
            decision_id=body["decision_id"],
            weighing=self.weighing.model_copy(update={"ignored": ignored}),
            job=self.job,
        )
        self.on_decide(body["kind"])
        return answer


def ignored(why: str) -> Weighing:
    """A weighing in which the decision just sent does not count."""
    return Weighing(
        outcome="pending", missing=["1 from maintainers"], ignored=[Ignored(decision_id="this", by="anna", why=why)]
    )


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    world: World

    def do_GET(self) -> None:
        self._answer("GET", None)

    def do_DELETE(self) -> None:
        self._answer("DELETE", None)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer("POST", json.loads(raw))

    def _answer(self, method: str, body: Any) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.world.asked.append((method, parts.path, query, body))
        self.world.headers.append(dict(self.headers))
        try:
            self._send(200, self._call(method, parts.path, query, body))
        except Answer as answer:
            self._send(answer.status, answer.problem)
        except Cut:
            self.close_connection = True

    def _call(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        key = f"{method} {path}"
        handler = self.world.routes.get(key) or self.world.routes.get(f"{method} {'/'.join(path.split('/')[:3])}")
        assert handler is not None, f"the test's server has no {key}"
        return handler({**query, "path": path}, body)

    def _send(self, status: int, value: Any) -> None:
        data = value if isinstance(value, bytes) else json.dumps(_plain(value)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(data)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the test's output is the command's."""


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is part of some tests."""


def serve(world: World, socket: Path) -> _Server:
    """Serve the world on a Unix socket in a thread; ``shutdown`` and ``server_close`` end it."""
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)
    handler = type("Request", (_Request,), {"world": world})
    server = _Server(str(socket), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server
