"""What a test holds of a scripted model server, wherever that runs: its addresses and what it was asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from perdure.errors import SetupError
from perdure.runtime import leash

PATIENCE = timedelta(seconds=30)


@dataclass(frozen=True)
class Recorded:
    """One request that the server was asked."""

    number: int
    at: float
    """Seconds since the epoch."""
    api: str
    """ "chat" or "messages"."""
    turn: int
    bytes: int
    model: str
    stream: bool
    ended: str
    """Empty: not yet; "answered", "cut" or "client left"."""
    body: dict[str, Any]
    """Empty when it was no JSON object, or was forgotten."""


@dataclass(frozen=True)
class ModelServer:
    """A server that listens on loopback."""

    url: str

    @property
    def openai_url(self) -> str:
        """``base_url`` of an OpenAI-compatible model."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """``base_url`` of an Anthropic model."""
        return self.url

    def requests(self, *, after: int = 0) -> list[Recorded]:
        """What was asked, in order; only what came after the first ``after`` ones."""
        return self._get(f"after={after}", PATIENCE)

    def wait_for(self, count: int, limit: timedelta = PATIENCE) -> list[Recorded]:
        """Return all requests as soon as there are ``count``.

        Raises:
            SetupError: there were fewer within ``limit``.
        """
        return self._get(f"wait={count}", limit)

    def wait_for_ends(self, count: int, limit: timedelta = PATIENCE) -> list[Recorded]:
        """Return all requests as soon as ``count`` of them have ended: answered, cut, or left by who asked.

        Raises:
            SetupError: fewer had within ``limit``.
        """
        return self._get(f"ends={count}", limit)

    def release(self, name: str) -> None:
        """Let the answers go that wait for ``name`` (``hold``)."""
        import httpx  # 100 ms that importing a test kit shall not cost

        httpx.post(f"{self.url}/release/{name}", verify=False).raise_for_status()

    def _get(self, query: str, limit: timedelta) -> list[Recorded]:
        import httpx

        try:
            # Without TLS there is nothing to verify, and no certificates to load for 30 ms.
            answer = httpx.get(f"{self.url}/requests?{query}", timeout=limit.total_seconds(), verify=False)
        except httpx.ReadTimeout as error:
            raise SetupError(f"The scripted model server did not answer {query} within {limit}.") from error
        return [Recorded(**each) for each in answer.json()["requests"]]


@contextmanager
def model_process(script: Path | dict[str, Any], folder: Path) -> Iterator[ModelServer]:
    """Serve in a process of its own, gone with this one; requests are recorded in ``folder / "requests.jsonl"``.

    Raises:
        SetupError: it did not start; what it said is in the message.
    """
    path = script if isinstance(script, Path) else _written(script, folder / "script.json")
    command = ["-m", "perdure", "models", "serve-script", str(path), "--record", str(folder / "requests.jsonl")]
    argv = [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), sys.executable, *command, "--json"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        try:
            if not said:
                raise SetupError(f"The scripted model server did not start: it ended with {process.wait()}.")
            yield ModelServer(json.loads(said)["url"])
        finally:
            process.kill()


def _written(script: dict[str, Any], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(script), encoding="utf-8")
    return path
