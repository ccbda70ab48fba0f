"""A whole installation as a user has it: ``perdure up`` on a data folder of its own, used through its door."""

from __future__ import annotations

import contextlib
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.kit import environment, run, scratch
from bench.watch import LedgerWatch
from perdure.runtime.state import State, read_state

PERDURE = Path(sys.executable).with_name("perdure")
TEMPLATES = Path(__file__).with_name("templates")


@dataclass
class Home:
    """One running installation, its door, and a watch on its ledger."""

    folder: Path
    data: Path
    environ: dict[str, str]
    door: httpx.Client
    ledger: LedgerWatch

    @property
    def state(self) -> State:
        """What its supervisor last wrote."""
        state = read_state(self.data)
        if state is None:
            raise RuntimeError(f"nothing runs on {self.data}")
        return state

    def pid(self, name: str) -> int:
        """A process of it: temporal, worker, api; 0 while it does not run."""
        return next(process.pid for process in self.state.processes if process.name == name)

    def submit(self, template: str, where: Path, **inputs: Any) -> str:
        """Start a job; return its id."""
        about = {"template": template, "inputs": inputs, "folder": str(where), "request_id": new_id()}
        return str(self.post("/v1/jobs", about)["job_id"])

    def digest(self, job_id: str) -> str:
        """The digest of the plan that a job waits with."""
        return str(self.get("/v1/job", ref=job_id)["digest"])

    def approve(self, digest: str) -> None:
        """Approve a plan."""
        self.post(f"/v1/plans/{digest}/decisions", {"kind": "approve", "decision_id": new_id()})

    def release(self, template: str, where: Path, **inputs: Any) -> str:
        """A whole job, approved and done; return its id."""
        job_id = self.submit(template, where, **inputs)
        self.ledger.wait(job_id, "job.phase", phase="waiting")
        self.approve(self.digest(job_id))
        self.ledger.wait(job_id, "job.phase", phase="done")
        return job_id

    def get(self, path: str, **params: Any) -> Any:
        """GET; raises ``RuntimeError`` with the API's words."""
        return _answer(self.door.get(path, params=params))

    def post(self, path: str, body: dict[str, Any], **params: Any) -> Any:
        """POST; raises ``RuntimeError`` with the API's words."""
        return _answer(self.door.post(path, json=body, params=params))


def new_id() -> str:
    """An id for a request or a decision."""
    return uuid.uuid4().hex[:12]


def home_environment(folder: Path) -> dict[str, str]:
    """The environment of every process of an installation beneath ``folder``."""
    return environment(folder, PERDURE_DATA=str(folder / "data"), PERDURE_TEMPLATES=str(TEMPLATES))


@contextmanager
def running_home() -> Iterator[Home]:
    """Bring an installation up in a new folder; stop it and remove the folder at the end."""
    with home_folder() as folder:
        environ = home_environment(folder)
        run([PERDURE, "up"], env=environ)
        data = folder / "data"
        transport = httpx.HTTPTransport(uds=str(data / "run" / "api.sock"))
        with (
            httpx.Client(transport=transport, base_url="http://perdure", timeout=60) as door,
            LedgerWatch(data / "ledger.db") as ledger,
        ):
            yield Home(folder, data, environ, door, ledger)


@contextmanager
def home_folder() -> Iterator[Path]:
    """A scratch folder; whatever runs on ``data`` beneath it is stopped at the end."""
    folder = scratch()
    try:
        yield folder
    finally:
        with contextlib.suppress(RuntimeError):
            run([PERDURE, "down"], env=home_environment(folder))
        shutil.rmtree(folder, ignore_errors=True)


def _answer(answer: httpx.Response) -> Any:
    if answer.status_code >= 300:
        raise RuntimeError(f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}")
    return answer.json()
