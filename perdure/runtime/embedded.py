"""The three children of an installation: Temporal's server, the worker, the API."""

from __future__ import annotations

import sys
from datetime import timedelta

from perdure.errors import SetupError
from perdure.runtime import ports
from perdure.runtime.children import ChildSpec
from perdure.runtime.installation import TEMPORAL_DATABASE
from perdure.runtime.ready import WORKER, answers, has_told
from perdure.runtime.server import TemporalServer, find_binary
from perdure.runtime.state import State, TemporalState
from perdure.settings import Settings

SERVER = "temporal"
API = "api"
PORT_TAKEN = "address already in use"


class EmbeddedServer:
    """Temporal's server as a child that moves to other ports when somebody takes its own."""

    def __init__(self, server: TemporalServer, *, fixed_port: bool = False) -> None:
        self.server = server
        self._fixed_port = fixed_port

    def spec(self) -> ChildSpec:
        """Return the child."""
        return ChildSpec(SERVER, lambda: self.server.argv(), self._is_ready, stop_limit=timedelta(seconds=5))

    def state(self, *, ready: bool) -> TemporalState:
        """Return where it listens."""
        return self.server.state(ready=ready)

    def move_from(self, last_words: str) -> bool:
        """Choose other ports when ``last_words`` say that one was taken. Returns whether it did.

        Raises:
            SetupError: its port was fixed by the settings.
        """
        if PORT_TAKEN not in last_words:
            return False
        if self._fixed_port and not ports.is_free(self.server.port):
            raise port_taken("PERDURE_TEMPORAL_PORT", self.server.port)
        moved = self.server.on_new_ports()
        self.server = moved.at(self.server.port) if self._fixed_port else moved
        return True

    def _is_ready(self, pid: int) -> bool:
        if not self.server.is_ready():
            return False
        self.server.set_retention()
        return True


def port_taken(name: str, port: int) -> SetupError:
    """Return the error that says who holds a port that the settings fix."""
    return SetupError(
        f"{name} asks for port {port}, which {ports.holder(port)} already uses. "
        "End that process, or choose another port."
    )


def embedded_server(settings: Settings, before: State | None) -> EmbeddedServer | None:
    """Return the server of ``settings``; ``None`` when a cluster is used. It keeps the ports of ``before`` when free.

    Raises:
        SetupError: a port that the settings fix is taken, or there is no server to start.
    """
    if not settings.is_embedded:
        return None
    server = TemporalServer(settings.data / TEMPORAL_DATABASE, find_binary())
    if settings.temporal_port:
        if not ports.is_free(settings.temporal_port):
            raise port_taken("PERDURE_TEMPORAL_PORT", settings.temporal_port)
        return EmbeddedServer(server.at(settings.temporal_port), fixed_port=True)
    if before is not None and before.temporal is not None and ports.is_free(before.temporal.port):
        server = server.at(before.temporal.port)
    return EmbeddedServer(server)


def check_listen(settings: Settings) -> None:
    """See that the TCP door's port, when one is asked for, is free.

    Raises:
        SetupError: it is taken; says by whom.
    """
    host, _, port = settings.listen.rpartition(":")
    if settings.listen and not ports.is_free(int(port), host.strip("[]") or ports.LOOPBACK):
        raise port_taken("PERDURE_LISTEN", int(port))


def worker_and_api(settings: Settings) -> tuple[ChildSpec, ...]:
    """Return the two children that every installation has."""
    return (
        ChildSpec(
            WORKER,
            lambda: _python("perdure.runtime.run_worker", settings),
            lambda pid: has_told(settings, WORKER, pid),
            stop_limit=timedelta(seconds=15),
        ),
        ChildSpec(
            API,
            lambda: _python("perdure.api", settings),
            lambda pid: answers(settings.socket),
            stop_limit=timedelta(seconds=5),
        ),
    )


def _python(module: str, settings: Settings) -> list[str]:
    """A Python process that never imports from its current folder."""
    return [sys.executable, "-P", "-m", module, "--data", str(settings.data)]
