"""Puts the API together and serves it: the store, the application, its doors."""

from __future__ import annotations

import asyncio
import logging
import warnings
from contextlib import ExitStack, closing

from pydantic.warnings import UnsupportedFieldAttributeWarning

from perdure import application
from perdure.api.app import build_app
from perdure.api.building import make_client, owner_name
from perdure.api.doors import TcpDoor, UnixDoor
from perdure.api.pages.app import build_pages
from perdure.api.server import host_names, make_server, tcp_socket, unix_socket
from perdure.effects.registry import default_effects
from perdure.policy.authorize import local_owner
from perdure.rules.registry import default_rules
from perdure.runtime.imports import Late
from perdure.runtime.renderer import Renderer
from perdure.settings import Settings
from perdure.store.ledger import Ledger

log = logging.getLogger("perdure.api")


async def run_api(settings: Settings) -> None:
    """Open the store, listen, and serve through both doors until SIGTERM."""
    # FastAPI ignores it where it makes a route; our contracts' schemas are built later, when first used.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    with ExitStack() as stack:
        ledger = stack.enter_context(closing(Ledger.open(settings.ledger)))
        renderer = stack.enter_context(Renderer())
        rules = Late(default_rules)
        client = make_client(settings, ledger, renderer, rules=rules, effects=default_effects())
        app = build_app(client)
        listener = stack.enter_context(unix_socket(settings.socket))
        loading = asyncio.get_running_loop().run_in_executor(None, rules.load)
        stack.callback(loading.cancel)
        unix_door = UnixDoor(app, ledger, local_owner(owner_name()))
        if not settings.listen:
            return await make_server(app, unix_door, None).serve(sockets=[listener])
        second = stack.enter_context(tcp_socket(settings.listen))
        hosts = host_names(settings.listen, second, settings.allowed_hosts)
        log.info("listening on %s for %s", second.getsockname(), ", ".join(hosts))
        pages = build_pages(client, application.root() / "templates" / "pages")
        tcp_door = TcpDoor(app, ledger, hosts, pages)
        return await make_server(app, unix_door, tcp_door).serve(sockets=[listener, second])
