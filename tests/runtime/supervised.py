"""A supervisor whose worker and API are stand-ins: run like the real one; what they do is in ``<data>.plan`` (JSON).

``{"worker": "steady" | "dies" | "setup" | "silent" | "stubborn", "server": false | true | <port taken by somebody>,
"start_seconds": 30, "stop_seconds": 10}``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from perdure.runtime import supervisor
from perdure.runtime.children import ChildSpec
from perdure.runtime.embedded import EmbeddedServer, embedded_server
from perdure.runtime.ready import has_told
from perdure.runtime.server import TemporalServer, find_binary
from perdure.runtime.state import State
from perdure.settings import Settings

STAND_IN = """
import signal, sys
from pathlib import Path
from perdure.runtime.ready import tell_ready
from perdure.settings import Settings
folder, name, mode = sys.argv[1:]
if mode == "dies": sys.exit("cannot find my shoes")
if mode == "setup": print("The payload key is missing.", file=sys.stderr); sys.exit(69)
signal.signal(signal.SIGTERM, signal.SIG_IGN if mode == "stubborn" else lambda *_: sys.exit(0))
if mode != "silent": tell_ready(Settings(data=Path(folder)), name)
while True: signal.pause()
"""


def stand_in(settings: Settings, name: str, mode: str, stop: timedelta) -> ChildSpec:
    """A child that behaves as ``mode`` says."""
    argv = [sys.executable, "-P", "-c", STAND_IN, str(settings.data), name, mode]
    return ChildSpec(name, lambda: argv, lambda pid: has_told(settings, name, pid), stop_limit=stop)


def run(settings: Settings, *, tell: Callable[[dict[str, Any]], None]) -> None:
    """Serve with stand-ins."""
    path = settings.data.with_name(settings.data.name + ".plan")
    plan: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    stop = timedelta(seconds=plan.get("stop_seconds", 10))
    start_limit = timedelta(seconds=plan.get("start_seconds", 30))

    def specs(settings: Settings) -> list[ChildSpec]:
        return [stand_in(settings, name, plan.get(name, "steady"), stop) for name in ("worker", "api")]

    def server(settings: Settings, before: State | None) -> EmbeddedServer | None:
        match plan.get("server", False):
            case False:
                return None
            case True:
                return embedded_server(settings, before)
            case port:
                return EmbeddedServer(TemporalServer(settings.data / "temporal.db", find_binary()).at(port))

    supervisor.serve(settings, tell=tell, specs=specs, server=server, start_limit=start_limit)


if __name__ == "__main__":
    sys.exit(supervisor.main(run=run))
