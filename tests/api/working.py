"""The real worker as a process beside a test's API, and a job's way through it."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from perdure.contracts.http import EventPage, JobView, Review
from perdure.contracts.job import JobPhase
from perdure.runtime.ready import WORKER, has_told
from tests.api.installed import Installed
from tests.support.forked import Forked

LIMIT_SECONDS = 60


class WorkerProcess:
    """The worker of an installation; can be ended and started again."""

    def __init__(self, world: Installed) -> None:
        self._world = world
        self._process: Forked | None = None
        self._log = world.settings.data / "logs" / "worker.log"

    def start(self) -> None:
        """Start it and wait until it polls."""
        env = {key: value for key, value in os.environ.items() if not key.startswith(("TEMPORAL_", "PERDURE_"))}
        env |= {"TEMPORAL_ADDRESS": self._world.settings.temporal_address}
        argv = ["-m", "perdure.runtime.run_worker", "--data", str(self._world.settings.data)]
        self._log.parent.mkdir(exist_ok=True)
        process = self._process = Forked(argv, env, self._log)
        wait_for(lambda: process.poll() is not None or has_told(self._world.settings, WORKER, process.pid))
        assert process.poll() is None, self._log.read_text()

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def working(world: Installed) -> Iterator[WorkerProcess]:
    """Run a worker beside ``world``."""
    worker = WorkerProcess(world)
    worker.start()
    try:
        yield worker
    finally:
        worker.kill()


def wait_for(condition: Callable[[], bool]) -> None:
    """Return once ``condition`` holds; it is another process that makes it true."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def new_id(prefix: str) -> str:
    """A client-made id that nobody had before."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def submit(client: httpx.Client, template: str, folder: str, request_id: str = "", **more: Any) -> JobView:
    """Start a job."""
    body = {"template": template, "folder": folder, "request_id": request_id or new_id("r"), **more}
    return JobView.model_validate_json(client.post("/v1/jobs", json=body, timeout=60).raise_for_status().content)


def follow(client: httpx.Client, job: JobView, until: Collection[JobPhase]) -> JobView:
    """Follow a job by its events until it is in one of these phases, or has ended."""
    after, deadline = 0, time.monotonic() + LIMIT_SECONDS
    while True:
        params: dict[str, Any] = {"ref": job.job_id, "after": after, "wait": 5}
        page = EventPage.model_validate_json(client.get("/v1/events", params=params, timeout=30).content)
        assert page.job is not None
        if page.job.phase in until:
            return page.job
        assert not page.job.phase.is_final, page.job
        assert time.monotonic() < deadline, page.job
        after = page.events[-1].position if page.events else after


def review(client: httpx.Client, job: JobView) -> Review:
    """A job's newest plan."""
    return Review.model_validate_json(client.get("/v1/review", params={"ref": job.job_id}).raise_for_status().content)


def decide(client: httpx.Client, digest: str, kind: str, decision_id: str = "", **more: Any) -> httpx.Response:
    """Decide on a plan."""
    body = {"kind": kind, "decision_id": decision_id or new_id("d"), **more}
    return client.post(f"/v1/plans/{digest}/decisions", json=body, timeout=60)
