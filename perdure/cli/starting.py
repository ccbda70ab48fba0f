"""Starts the installation when a command needs it and nobody has."""

from __future__ import annotations

from perdure.cli.door import Door, Unreachable
from perdure.cli.live import LiveLine
from perdure.cli.session import Session
from perdure.contracts.http import Health
from perdure.errors import SetupError


def ensure_up(session: Session, door: Door) -> None:
    """Return once somebody answers at the door; start Perdure in the background where nobody does, and say so.

    Raises:
        SetupError: it cannot be started, or the API is on another machine and does not answer.
    """
    try:
        door.get("/v1/health", Health)
    except Unreachable:
        if session.settings.api_url:
            raise
        _start(session)
        door.get("/v1/health", Health)


def _start(session: Session) -> None:
    from perdure.runtime.supervisor import up

    with LiveLine(session.notes) as live:
        live.busy("starting Perdure")
        state = up(session.settings)
    if not state.is_ready:
        raise SetupError(f"Perdure was started but is {state.phase}. See {session.settings.logs}, or `perdure doctor`.")
    if state.started_here:
        session.notes.line("Started Perdure in the background (stop: perdure down).")
