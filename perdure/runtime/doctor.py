"""Looks at everything that an installation needs from this machine, changes nothing, and says what to do."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from perdure.errors import PerdureError, SetupError
from perdure.runtime import ports
from perdure.runtime.control import status
from perdure.runtime.installation import LEDGER_DATABASE, MIN_FREE_BYTES, check_folder, check_socket_path
from perdure.runtime.payload_keys import KEY_FILE, load_keys
from perdure.runtime.server import find_binary
from perdure.settings import Settings, read_secret

PYTHON = (3, 11)
GIT = (2, 34)
"""The oldest git that the effects were tried with."""
ASK_SECONDS = 10
REACH_SECONDS = 3.0


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    """What was found."""
    advice: str = ""
    """What to do when it is not ok."""
    notes: tuple[str, ...] = ()
    """More of what was found, in sentences: what was tried, and what this machine does not give."""


def examine(settings: Settings) -> list[Check]:
    """Return every check in a fixed order; never raises for what it finds."""
    steps: list[tuple[str, Callable[[Settings], str]]] = [
        ("python", _python),
        ("git", _git),
        ("data folder", _data_folder),
        ("disk space", _disk_space),
        ("payload key", _payload_key),
        ("ledger", _ledger),
        ("temporal", _temporal),
        ("models", _models),
        ("channels", _channels),
        ("ports", _ports),
        ("processes", _processes),
    ]
    found = [_check(name, step, settings) for name, step in steps]
    return [*found[:2], _sandbox(), *found[2:]]


def _check(name: str, step: Callable[[Settings], str], settings: Settings) -> Check:
    """Run ``step``: it returns what it found, or raises a text whose later sentences say what to do."""
    try:
        return Check(name, True, step(settings))
    except PerdureError as error:
        detail, _, advice = error.message.partition(". ")
        return Check(name, False, detail.rstrip(".") + ".", advice or "See the documentation of `perdure doctor`.")


def _python(settings: Settings) -> str:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < PYTHON:
        raise SetupError(f"Python {found} runs this. Use {PYTHON[0]}.{PYTHON[1]} or newer.")
    return f"{found} ({sys.executable})"


def _git(settings: Settings) -> str:
    binary = shutil.which("git")
    if binary is None:
        raise SetupError("There is no git on PATH. Install git with your system's package manager.")
    said = _ask([binary, "--version"])
    numbers = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    if numbers < GIT:
        raise SetupError(f"{said} is too old. Install git {GIT[0]}.{GIT[1]} or newer.")
    return f"{said} ({binary})"


def _sandbox() -> Check:
    """Try to get out of it."""
    from perdure.workspace.proof import prove
    from perdure.workspace.sandbox import Sandbox

    try:
        proof = prove(Sandbox.find())
    except PerdureError as error:
        detail, _, advice = error.message.partition(". ")
        return Check("sandbox", False, detail.rstrip(".") + ".", advice)
    notes = (
        *(f"got through: {name}" for name in proof.got_through),
        f"commands run as {proof.identity}",
        *proof.limits,
        *(f"refused: {name}" for name in proof.held),
    )
    tried = len(proof.held) + len(proof.got_through)
    if proof.got_through:
        detail = f"{len(proof.got_through)} of {tried} ways out of {proof.backend} are open."
        return Check("sandbox", False, detail, "Run no agents here until they are closed.", notes)
    return Check("sandbox", True, f"{proof.backend}: {tried} ways out were tried, none is open", notes=notes)


def _data_folder(settings: Settings) -> str:
    if not settings.data.exists():
        check_socket_path(settings)
        return f"{settings.data} is not there yet; the first `perdure up` makes it"
    check_folder(settings)
    return str(settings.data)


def _disk_space(settings: Settings) -> str:
    folder = next(path for path in (settings.data, *settings.data.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise SetupError(
            f"{free / 1e6:.1f} MB are free beneath {folder}. Free some space; {MIN_FREE_BYTES / 1e6:.0f} MB are needed."
        )
    return f"{free / 1e9:.1f} GB free"


def _payload_key(settings: Settings) -> str:
    path = settings.keys / KEY_FILE
    if not path.exists() and not (settings.data / LEDGER_DATABASE).exists():
        return "not made yet; the first `perdure up` makes it"
    keys = load_keys(settings.keys)
    older = len(keys.by_id) - 1
    return f"{keys.current}{f' and {older} older' if older else ''} ({path})"


def _ledger(settings: Settings) -> str:
    if not settings.ledger_url and not (settings.data / LEDGER_DATABASE).exists():
        return "not made yet; the first `perdure up` makes it"
    from perdure.store.ledger import Ledger

    ledger = Ledger.open(settings.ledger)
    try:
        return f"opens; head {ledger.head()[:12]}"
    finally:
        ledger.close()


def _temporal(settings: Settings) -> str:
    if settings.is_embedded:
        binary = find_binary()
        return f"{_ask([str(binary), '--version'])} ({binary})"
    if not settings.temporal_address:
        return "named by Temporal's own configuration (profile)"
    host, _, port = settings.temporal_address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except (OSError, ValueError) as error:
        raise SetupError(
            f"Cannot reach Temporal at {settings.temporal_address} ({error}). "
            "Check TEMPORAL_ADDRESS, or unset it to use the embedded server (`perdure up`)."
        ) from error
    return f"{settings.temporal_address} answers"


def _models(settings: Settings) -> str:
    from perdure.trying import list_models_of

    found = list_models_of(settings)
    if not found:
        return f"none; rules work without, agents and prompts need one in {settings.config}"
    missing = [one for one in found if not one["key_is_there"]]
    if missing:
        place = settings.secrets / missing[0]["key"]
        raise SetupError(f"The key of the model {missing[0]['name']!r} is missing. Write it into {place}, mode 0600.")
    return ", ".join(f"{one['name']} ({one['model']})" for one in found) + "; `perdure models test` asks one"


def _channels(settings: Settings) -> str:
    from perdure.people import channels_of

    found = channels_of(settings)
    lacking = [name for name in found if not read_secret(settings, name)]
    if lacking:
        place = settings.secrets / lacking[0]
        raise SetupError(f"The channel {lacking[0]!r} has no address. Write one of apprise's into {place}, mode 0600.")
    if not found:
        return "none: nobody is told what waits (docs/how-to/be-told.md)"
    return f"{', '.join(found)}; `perdure messages test` tries one"


def _ports(settings: Settings) -> str:
    if status(settings).running:
        return "in use by this installation"
    wanted = {"PERDURE_TEMPORAL_PORT": settings.temporal_port if settings.is_embedded else 0}
    wanted["PERDURE_LISTEN"] = int(settings.listen.rpartition(":")[2] or 0)
    for name, port in wanted.items():
        if port and not ports.is_free(port):
            raise SetupError(
                f"{name} asks for port {port}, used by {ports.holder(port)}. End it or choose another port."
            )
    return "free ones are chosen at each start" if not any(wanted.values()) else "free"


def _processes(settings: Settings) -> str:
    now = status(settings)
    if not now.running:
        return f"stopped. {now.note}".strip()
    if now.phase == "degraded":
        late = ", ".join(f"{child.name} ({child.detail})" for child in now.processes if not child.ready)
        raise SetupError(f"Some processes are being started again: {late}. Look into {settings.logs}.")
    return f"{now.phase}: " + ", ".join(f"{child.name} {child.pid}" for child in now.processes)


def _ask(argv: list[str]) -> str:
    """Return the first line that a program says about itself."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=ASK_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(f"`{' '.join(argv)}` does not work ({error}). Install it again.") from error
    return done.stdout.strip().splitlines()[0]
