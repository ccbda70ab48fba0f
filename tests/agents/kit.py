"""An installation whose agents ask a scripted model over real HTTP; what they asked and wrote can be looked at."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.contracts.agent_run import CallRecord
from perdure.contracts.http import AgentView, JobView
from perdure.contracts.messages import Message
from perdure.store.agents import Agents
from perdure.store.ledger import Ledger
from perdure.testing.model_handle import ModelServer
from tests.support.installation import ROOT, Installation, installation, wait_until
from tests.support.repositories import commit, git

TEMPLATES = ROOT / "tests" / "agents" / "templates"


@dataclass(frozen=True)
class Office:
    """A running installation, the repository that its agents work on, and the model that they ask."""

    home: Installation
    repository: Path
    model: ModelServer
    name: str

    def start(self, template: str = "note", **inputs: Any) -> JobView:
        """Start a job in the repository."""
        return self.home.run(template, self.repository, **{"name": self.name, **inputs})

    def steer(self, job: JobView, kind: str, text: str = "") -> list[AgentView]:
        """Say something to the job's agent."""
        body = {"decision_id": uuid.uuid4().hex[:12], "kind": kind, "text": text}
        found = self.home.post("/v1/steer", body, ref=job.job_id)
        return [AgentView.model_validate(view) for view in found]

    def agents(self, job: JobView) -> list[AgentView]:
        """The job's agents."""
        return [AgentView.model_validate(view) for view in self.home.get("/v1/agents", ref=job.job_id)]

    def transcript(self, job: JobView, number: int = 0) -> list[Message]:
        """What one agent of a job said and heard."""
        with self.home.ledger() as ledger:
            agents = Agents(ledger.database)
            agent_id = agents.of_job(job.job_id)[number].agent_id
            return list(agents.transcripts.read(agent_id, agents.transcripts.length(agent_id)))

    def calls(self, job: JobView, number: int = 0) -> list[CallRecord]:
        """The calls of one agent of a job."""
        with self.home.ledger() as ledger:
            agents = Agents(ledger.database)
            return agents.transcripts.calls(agents.of_job(job.job_id)[number].agent_id)

    def asked(self) -> list[list[dict[str, Any]]]:
        """The messages of each request that the model was asked."""
        return [list(request.body["messages"]) for request in self.model.requests()]


def configure(home: Installation, model: ModelServer, **more: Any) -> None:
    """Name the scripted model in the installation's settings; before a worker starts."""
    lines = [
        "[models]",
        'default = "scripted"',
        "[models.scripted]",
        'provider = "compatible"',
        f'base_url = "{model.openai_url}"',
        'model = "scripted"',
        'price = {input = "1.00 USD", output = "2.00 USD"}',
        *(f"{name} = {json.dumps(value)}" for name, value in {"window": 200_000, **more}.items()),
    ]
    home.settings.config.write_text("\n".join(lines) + "\n")


@contextmanager
def office(
    folder: Path, model: ModelServer, *, server_config: Mapping[str, object] | None = None, **more: Any
) -> Iterator[Office]:
    """Run an installation with a repository beneath ``folder``; no worker yet. ``more``: about the model."""
    folder.mkdir(parents=True, exist_ok=True)
    with installation(folder / "home", server_config, PERDURE_TEMPLATES=str(TEMPLATES)) as home:
        configure(home, model, **more)
        yield Office(home, make_repository(folder), model, "first")


def make_repository(folder: Path) -> Path:
    """A small repository with one commit and somebody to commit as."""
    path = folder / "project"
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    git(path, "config", "user.name", "Ada")
    git(path, "config", "user.email", "ada@example.org")
    commit(path, "feat: begin", README__md="# Project\n", NOTE="nothing yet\n")
    return path


def write(path: str, content: str) -> dict[str, Any]:
    """An answer's call that writes a file."""
    return {"tool": "files.write", "with": {"path": path, "content": content}}


def read(path: str) -> dict[str, Any]:
    """An answer's call that reads a file."""
    return {"tool": "files.read", "with": {"path": path}}


def patch_of(*paths: str) -> str:
    """A patch that makes files."""
    return "".join(f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n" for path in paths)


__all__ = ["Ledger", "Office", "configure", "make_repository", "office", "patch_of", "read", "wait_until", "write"]
