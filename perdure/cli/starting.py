"""Starts the installation when a command needs it and nobody has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from perdure.cli.door import Door
from perdure.cli.live import LiveLine
from perdure.cli.session import Session
from perdure.errors import SetupError

Option = Callable[[Callable[..., int | None]], Callable[..., int | None]]

no_start_option: Option = click.option("--no-start", is_flag=True, help="Do not start Perdure when it is not running.")


@contextmanager
def door_to_jobs(session: Session, *, no_start: bool) -> Iterator[Door]:
    """The connection to the API, for commands on jobs that there are: an installation of theirs is started.

    Where none was ever made nothing is: whoever asked there is told that nobody answers.
    """
    with session.door() as door:
        if not no_start and session.settings.keys.is_dir():
            ensure_up(session, door)
        yield door


def ensure_up(session: Session, door: Door) -> None:
    """Return once somebody listens at the door; start Perdure in the background where nobody does, and say so.

    An API on another machine is never started: the first question tells whether it answers.

    Raises:
        SetupError: it cannot be started.
    """
    if not door.is_open():
        _start(session)


def _start(session: Session) -> None:
    from perdure.runtime.supervisor import up

    with LiveLine(session.notes) as live:
        live.busy("starting Perdure")
        state = up(session.settings)
    if not state.is_ready:
        raise SetupError(f"Perdure was started but is {state.phase}. See {session.settings.logs}, or `perdure doctor`.")
    if state.started_here:
        session.notes.line("Started Perdure in the background (stop: perdure down).")
