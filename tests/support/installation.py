"""A whole installation for tests: a real Temporal server, the real API and workers as processes that can be killed."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from perdure.contracts.http import JobView, Review
from perdure.contracts.job import JobPhase
from perdure.runtime.codec import data_converter
from perdure.runtime.connect import connect
from perdure.runtime.ready import answers
from perdure.settings import Settings, read_settings
from perdure.store.blobs import BlobStore
from perdure.store.ledger import Ledger
from perdure.testing.server import RunningServer, temporal_server
from tests.support.forked import Forked
from tests.support.repositories import Project

ROOT = Path(__file__).resolve().parents[2]
_LIMIT = timedelta(seconds=60)


@dataclass
class Installation:
    """Processes and doors of one data folder."""

    settings: Settings
    server: RunningServer
    door: httpx.Client
    environ: dict[str, str]
    workers: list[Forked] = field(default_factory=list)

    def start_worker(self, point: str = "", script: Path | None = None) -> Forked:
        """Start a worker and wait until it polls. With ``point`` it kills itself there (``crash/killable.py``).

        ``script``: a file that runs the worker otherwise; it is given the data folder.
        """
        data = str(self.settings.data)
        ordinary = [str(script), data] if script else ["-m", "perdure.runtime.run_worker", "--data", data]
        argv = [str(ROOT / "tests" / "crash" / "killable.py"), data, point] if point else ordinary
        ready = self.settings.socket.parent / "worker.ready"
        ready.unlink(missing_ok=True)
        process = Forked(argv, self.environ, self.settings.logs / f"worker-{len(self.workers)}.log")
        self.workers.append(process)
        wait_until(lambda: ready.exists() or process.poll() is not None, f"worker at {point or 'work'}")
        return process

    @contextmanager
    def dying_worker(self, point: str) -> Iterator[None]:
        """A worker that kills itself at ``point``; the next one is started as soon as it is dead. It must die."""
        dying = self.start_worker(point)

        def revive() -> None:
            dying.wait()
            self.start_worker()

        reviver = threading.Thread(target=revive)
        reviver.start()
        try:
            yield
            assert dying.poll() == -signal.SIGKILL, f"nothing reached {point}"
        finally:
            dying.kill()
            reviver.join()
            self.kill_workers()

    def kill_workers(self) -> None:
        """SIGKILL every worker that lives."""
        for process in self.workers:
            if process.poll() is None:
                process.kill()
            process.wait()

    def run(self, template: str, where: Path, **inputs: Any) -> JobView:
        """Submit a job."""
        plan_only = bool(inputs.pop("plan_only", False))
        body = {
            "template": template,
            "inputs": inputs,
            "request_id": uuid.uuid4().hex[:12],
            "folder": str(where),
            "plan_only": plan_only,
        }
        return JobView.model_validate(self.persist("/v1/jobs", body))

    def release(self, project: Project, **inputs: Any) -> JobView:
        """Submit a release of a project."""
        return self.run("release", project.path, **inputs)

    def job(self, job: JobView) -> JobView:
        """Look again."""
        return JobView.model_validate(self.get("/v1/job", ref=job.job_id))

    def wait(self, job: JobView, *phases: JobPhase, limit: timedelta = _LIMIT) -> JobView:
        """Wait until the job is in one of the phases; another final phase fails the test with its reason."""

        def reached() -> JobView | None:
            now = self.job(job)
            if now.phase in phases:
                return now
            assert not now.phase.is_final, f"{now.name} is {now.phase}: {now.summary}\n{self.worker_log()}"
            return None

        found = wait_until(reached, f"{job.name} to be {'/'.join(phases)}", limit, self.worker_log)
        assert found is not None
        return found

    def waiting(self, job: JobView) -> JobView:
        """Wait for the job's gate to open."""
        return self.wait(job, JobPhase.waiting)

    def done(self, job: JobView) -> JobView:
        """Wait until the job is applied."""
        return self.wait(job, JobPhase.done)

    def review(self, job: JobView) -> Review:
        """The newest plan, whole."""
        return Review.model_validate(self.get("/v1/review", ref=job.job_id))

    def decide(self, digest: str, kind: str, **more: Any) -> dict[str, Any]:
        """Decide on a digest."""
        body = {"kind": kind, "decision_id": uuid.uuid4().hex[:12], **more}
        return dict(self.post(f"/v1/plans/{digest}/decisions", body))

    def approve(self, job: JobView) -> JobView:
        """Wait for the gate, approve its plan; sent again with the same id while nobody is there to hear it."""
        waiting = self.waiting(job)
        body = {"kind": "approve", "decision_id": uuid.uuid4().hex[:12]}
        self.persist(f"/v1/plans/{waiting.digest}/decisions", body)
        return waiting

    def persist(self, path: str, body: dict[str, Any]) -> Any:
        """POST until it is answered: the body carries an id, so that a second one is the same one."""

        def sent() -> httpx.Response | None:
            answer = self.door.post(path, json=body)
            assert answer.status_code < 300 or answer.status_code >= 500, answer.text
            return answer if answer.status_code < 300 else None

        answer = wait_until(sent, path, _LIMIT, self.worker_log)
        return answer.json()

    def undo(self, job: JobView) -> JobView:
        """Start the job that takes one back."""
        body = {"request_id": uuid.uuid4().hex[:12]}
        return JobView.model_validate(self.post("/v1/undo", body, ref=job.job_id))

    def get(self, path: str, **params: Any) -> Any:
        """GET; a refusal fails the test with its message."""
        answer = self.door.get(path, params=params)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def post(self, path: str, body: dict[str, Any], **params: Any) -> Any:
        """POST; a refusal fails the test with its message."""
        answer = self.door.post(path, json=body, params=params)
        assert answer.status_code < 300, answer.text
        return answer.json()

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """Look into the ledger."""
        ledger = Ledger.open(self.settings.ledger)
        try:
            yield ledger
        finally:
            ledger.close()

    @property
    def blobs(self) -> BlobStore:
        """The blob store."""
        return BlobStore(self.settings.blobs)

    async def temporal(self) -> Any:
        """A Temporal client with the installation's keys."""
        return await connect(self.settings, role="test")

    def worker_log(self) -> str:
        """The end of every worker's log."""
        logs = [self.settings.logs / f"worker-{number}.log" for number in range(len(self.workers))]
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in logs[-3:])


@contextmanager
def installation(
    folder: Path, server_config: Mapping[str, object] | None = None, **settings_by_variable: str
) -> Iterator[Installation]:
    """Start server and API on an empty data folder; workers are started by the test. More settings by variable."""
    with temporal_server(folder / "temporal", config=server_config) as server:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "TEMPORAL_ADDRESS": server.address,
            "PERDURE_DATA": str(folder / "data"),
            "PERDURE_TEMPLATES": str(ROOT / "tests" / "crash" / "templates"),
            "LC_ALL": "C.UTF-8",
            **settings_by_variable,
        }
        settings = read_settings(environ)
        for part in (settings.data, settings.logs, settings.socket.parent):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
        data_converter(settings.keys, create=True)
        api = Forked(["-m", "perdure.api", "--data", str(settings.data)], environ, settings.logs / "api.log")
        transport = httpx.HTTPTransport(uds=str(settings.socket))
        with httpx.Client(transport=transport, base_url="http://perdure", timeout=30) as door:
            running = Installation(settings, server, door, environ)
            try:
                wait_until(lambda: answers(settings.socket) or api.poll() is not None, "the API")
                assert api.poll() is None, (settings.logs / "api.log").read_text()
                yield running
            finally:
                running.kill_workers()
                api.send_signal(signal.SIGTERM)
                api.wait(timeout=20)


def wait_until(
    condition: Callable[[], Any], what: str, limit: timedelta = _LIMIT, explain: Callable[[], str] = str
) -> Any:
    """Look until ``condition`` gives something; a bounded poll of a real process, never a guess at its duration.

    It looks less often the longer it waits: what is waited for needs the processor that looking takes.
    """
    began = time.monotonic()
    deadline = began + limit.total_seconds()
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {limit} for {what}\n{explain()}"
        time.sleep(min(0.1, max(0.01, (time.monotonic() - began) / 10)))
