"""``python -P -m perdure.api --data FOLDER [--listen HOST:PORT]``: the API as a process."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import FrameType

from perdure.api.app import build_app
from perdure.api.building import make_client, owner_name
from perdure.api.doors import TcpDoor, UnixDoor
from perdure.api.server import host_names, make_server, tcp_socket, unix_socket
from perdure.effects.registry import default_effects
from perdure.errors import PerdureError
from perdure.policy.authorize import local_owner
from perdure.rules.registry import default_rules
from perdure.runtime.exit import leave
from perdure.runtime.renderer import Renderer
from perdure.settings import Settings, read_settings
from perdure.store.ledger import Ledger

log = logging.getLogger("perdure.api")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; return an exit code."""
    parser = argparse.ArgumentParser(prog="python -m perdure.api", description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--listen", default="", metavar="HOST:PORT", help="also on TCP; goes before PERDURE_LISTEN")
    options = parser.parse_args(arguments)
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("alembic", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    signal.signal(signal.SIGTERM, _stop)
    try:
        settings = read_settings(data=options.data)
        if options.listen:
            settings = replace(settings, listen=options.listen)
        asyncio.run(run_api(settings))
    except PerdureError as error:
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except SystemExit:
        log.info("stopped")
    return 0


def _stop(number: int, frame: FrameType | None) -> None:
    """End by unwinding, whatever is going on: uvicorn raises the signal that ended it once more when it is done."""
    raise SystemExit(0)


async def run_api(settings: Settings) -> None:
    """Open the store, listen, and serve through both doors until SIGTERM."""
    with ExitStack() as stack:
        ledger = stack.enter_context(closing(Ledger.open(settings.ledger)))
        renderer = stack.enter_context(Renderer())
        app = build_app(make_client(settings, ledger, renderer, rules=default_rules(), effects=default_effects()))
        listener = stack.enter_context(unix_socket(settings.socket))
        unix_door = UnixDoor(app, ledger, local_owner(owner_name()))
        if not settings.listen:
            return await make_server(app, unix_door, None).serve(sockets=[listener])
        second = stack.enter_context(tcp_socket(settings.listen))
        hosts = host_names(settings.listen, second, settings.allowed_hosts)
        log.info("listening on %s for %s", second.getsockname(), ", ".join(hosts))
        return await make_server(app, unix_door, TcpDoor(app, ledger, hosts)).serve(sockets=[listener, second])


if __name__ == "__main__":
    leave(main())
