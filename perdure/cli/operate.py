"""``up``, ``down``, ``status``, ``doctor``: the installation itself."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from perdure.cli import codes
from perdure.cli.live import LiveLine
from perdure.cli.paper import Paper, Row, Span
from perdure.cli.session import Session, command
from perdure.errors import SetupError

if TYPE_CHECKING:
    from perdure.runtime.supervisor import Status

_MEGABYTE = 1024 * 1024


@command(
    "up",
    examples=[
        ("perdure up", "start in the background; nothing happens when it runs already"),
        ("perdure up --data /srv/perdure", "an installation of its own"),
    ],
)
def up(session: Session) -> int:
    """Start Perdure in the background and wait until it is ready.

    `perdure run` does that by itself. With TEMPORAL_ADDRESS set no server is started: that cluster is used.
    """
    from perdure.runtime.supervisor import up as start

    with LiveLine(session.notes if session.as_json else session.paper) as live:
        live.busy("starting")
        state = start(session.settings)
    if session.as_json:
        session.answer(plain(state))
    else:
        session.paper.line("Started Perdure." if state.started_here else "Perdure runs already.")
        write_status(session.paper, state)
    _note_closed_door(session, state)
    return codes.OK if state.is_ready else codes.NO_SERVER


def _note_closed_door(session: Session, state: Status) -> None:
    """Settings are read when the processes start: say it when a TCP door asked for now is not open."""
    from perdure.runtime import ports

    host, _, port = session.settings.listen.rpartition(":")
    if port and not state.started_here and ports.is_free(int(port), host.strip("[]") or ports.LOOPBACK):
        session.notes.line(
            ("◆ ", "warn"),
            f"Nothing listens on {session.settings.listen}: Perdure was started without that. "
            "`perdure down`, then `perdure up` opens it; open jobs keep their place.",
        )


@command("down", examples=[("perdure down", "stop; `perdure up` goes on where it was")])
def down(session: Session) -> None:
    """Stop Perdure. Open jobs keep their place and go on when it is started again."""
    from perdure.runtime.supervisor import down as stop

    with LiveLine(session.notes if session.as_json else session.paper) as live:
        live.busy("stopping")
        was_running = stop(session.settings)
    if session.as_json:
        session.answer({"was_running": was_running})
    else:
        session.paper.line("Stopped. Open jobs go on after `perdure up`." if was_running else "Nothing was running.")


@command("status", examples=[("perdure status", "exit code 69 when it does not run")])
def status(session: Session) -> int:
    """Say whether Perdure runs, its processes, their memory, and where its data is."""
    from perdure.runtime.supervisor import status as look

    state = look(session.settings)
    if session.as_json:
        session.answer(plain(state))
    else:
        write_status(session.paper, state)
    if state.is_ready and not session.as_json:
        _write_health(session)
    return codes.OK if state.is_ready else codes.NO_SERVER


_REFUSED = "refused: "


@command(
    "doctor",
    examples=[
        ("perdure doctor", "exit code 69 when something must be done first"),
        ("perdure doctor --json", "with every way out of the sandbox that was tried"),
    ],
)
def doctor(session: Session) -> int:
    """Check this machine: Python, git, disk, ledger, keys, Temporal; try to get out of the sandbox. Changes nothing."""
    from perdure.runtime.doctor import examine

    with LiveLine(session.notes if session.as_json else session.paper) as live:
        live.busy("looking")
        checks = examine(session.settings)
    if session.as_json:
        session.answer({"checks": [dataclasses.asdict(check) for check in checks]})
    for check in [] if session.as_json else checks:
        mark: Span = ("✓", "good") if check.ok else ("✗", "bad")
        session.paper.line("  ", mark, f" {check.name:<12} ", check.detail)
        if not check.ok and check.advice:
            session.paper.line(" " * 17, (check.advice, "hint"))
        for note in check.notes:
            if not note.startswith(_REFUSED):  # what does not work as it should not is told by --json
                session.paper.line(" " * 17, (note, "dim"))
    return codes.OK if all(check.ok for check in checks) else codes.NO_SERVER


def write_status(paper: Paper, state: Status) -> None:
    """Write an installation's state: what runs, and where."""
    mark: Span = ("✓ ", "good") if state.phase == "ready" else ("◆ ", "warn") if state.running else ("○ ", "dim")
    version = f"   {state.version}" if state.version else ""
    paper.line(
        mark, (state.phase, "title"), version, (f"   since {state.started_at}" if state.started_at else "", "dim")
    )
    rows: list[Row] = [[("data", "dim"), str(state.data)]]
    if state.temporal:
        rows.append([("temporal", "dim"), state.temporal])
    paper.table(rows)
    processes = [_process(process) for process in state.processes]
    paper.table(processes, header=("PROCESS", "PID", "MEMORY", "") if processes else ())
    if state.note:
        paper.line("  ", (state.note, "warn"))
    if not state.running:
        paper.line("  Start it: ", ("perdure up", "hint"))


def plain(state: Status) -> dict[str, Any]:
    """The state as plain JSON."""
    return {**dataclasses.asdict(state), "data": str(state.data)}


def _process(process: Any) -> Row:
    remarks = [] if process.ready else ["not ready"]
    if process.restarts:
        remarks.append(f"started again {process.restarts} times")
    if process.detail:
        remarks.append(process.detail)
    memory = f"{process.rss_bytes / _MEGABYTE:.0f} MB"
    return [process.name, str(process.pid), memory, (", ".join(remarks), "warn")]


def _write_health(session: Session) -> None:
    """Say what the API says about itself, where one answers."""
    from perdure.contracts.http import Health

    try:
        with session.door() as door:
            health = door.get("/v1/health", Health)
    except SetupError as error:
        session.paper.line("  ", ("✗ ", "bad"), error.message)
        return
    worker: Row = (
        [("✓ ", "good"), "a worker is at work"]
        if health.worker
        else [("✗ ", "bad"), "no worker polls: jobs stand still"]
    )
    session.paper.line("  ", *worker, (f"   {health.detail}" if health.detail else "", "dim"))
