"""The machine that escapes are tried on: what there is to steal and to break, and what is seen of it afterwards."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hostile.escapes import runner
from tests.hostile.escapes.base import ESCAPED, PRELUDE, Escape
from tests.hostile.escapes.worker import TERMINAL_WIDTH, run_as_worker

WITNESSES = {"write outside": "written", "dot dot": "dotted", "write by link": "linked"}
"""What an escape leaves outside."""


@dataclass(frozen=True)
class Host:
    """One machine's state for one round of attempts; ``canary`` is known here only."""

    root: Path
    uid: int
    canary: str

    @property
    def workspace(self) -> Path:
        """Where the scripts run."""
        return self.root / "jobs" / "work"

    @property
    def outside(self) -> Path:
        """A folder of the same user, outside of the workspace."""
        return self.root / "outside"

    @property
    def secret(self) -> Path:
        """A file of the same user with the canary in it."""
        return self.root / "data" / f"token-{self.root.name}"


@contextmanager
def made_host(uid: int) -> Iterator[Host]:
    """Fill a folder that ``uid`` owns (not pytest's: it is closed to others); all of it is removed."""
    root = Path(tempfile.mkdtemp(prefix="escape-", dir="/tmp"))
    host = Host(root, uid, f"canary-{os.urandom(12).hex()}")
    shared = Path("/dev/shm", host.secret.name)
    try:
        _fill(host, shared)
        for path in (root, *root.rglob("*"), shared):
            os.chown(path, uid, uid, follow_symlinks=False)
        yield host
    finally:
        shared.unlink(missing_ok=True)
        shutil.rmtree(root)


def _fill(host: Host, shared: Path) -> None:
    for folder in ("outside", "data", "home/.ssh", "jobs/work", "jobs/other-job"):
        (host.root / folder).mkdir(parents=True)
    for name in ("home/.ssh/id_rsa", "jobs/other-job/notes", "outside/precious", f"data/{host.secret.name}"):
        (host.root / name).write_text(host.canary)
    shared.write_text(host.canary)
    (host.workspace / "planted-link").symlink_to(host.secret)
    shutil.copy(runner.__file__, host.workspace / "runner.py")


def attempt_all(escapes: tuple[Escape, ...], uid: int, *, boxed: bool) -> dict[str, str]:
    """Return what each script said, by name, with ``ESCAPED`` added where the machine shows a change."""
    with made_host(uid) as host, ExitStack() as held:
        scripts = {escape.name: escape.script for escape in escapes}
        (host.workspace / "scripts.json").write_text(json.dumps([PRELUDE, scripts]))
        servers = [held.enter_context(server) for server in _servers(host)]
        victim, prey = (held.enter_context(_victim(host)) for _ in range(2))
        world = _world(host, servers, victim.pid, prey.pid)
        screen = _serve_while(host, servers, world, boxed=boxed)
        said: dict[str, str] = json.loads((host.root / "said.json").read_text())
        _add_witnesses(said, host, screen, victim.pid)
    return {name: text.replace(host.canary, f"{ESCAPED} with the canary") for name, text in said.items()}


def _world(host: Host, servers: list[socket.socket], victim: int, prey: int) -> dict[str, Any]:
    tcp, udp, *_ = servers
    return {
        "outside": str(host.outside),
        "root": str(host.root),
        "secret": str(host.secret),
        "name": host.secret.name,
        "home": str(host.root / "home"),
        "other_job": str(host.root / "jobs" / "other-job"),
        "tcp": tcp.getsockname()[1],
        "udp": udp.getsockname()[1],
        "socket": str(host.root / "docker.sock"),
        "segment": victim,
        "victim": victim,
        "victim_fd": 3,
        "prey": prey,
    }


@contextmanager
def _victim(host: Host) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user with a secret in each place that a process has: argv, environment, memory, files."""
    said = f"victim-of-{host.canary}"
    script = 'exec 3< "$SECRET_FILE"; echo; read forever'
    argv = ["sh", "-c", script, said]
    environ = {"TOKEN": said, "PATH": "/usr/bin:/bin", "SECRET_FILE": str(host.secret)}
    made = subprocess.Popen(
        argv, env=environ, cwd=host.secret.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **_as_user(host.uid)
    )
    try:
        assert made.stdout is not None and made.stdout.readline()
        yield made
    finally:
        made.kill()
        made.communicate()


def _as_user(uid: int) -> dict[str, Any]:
    return {"user": uid, "group": uid, "extra_groups": []} if uid != os.geteuid() else {}


def _servers(host: Host) -> list[socket.socket]:
    """TCP and UDP on loopback, and Unix sockets at a path, in the workspace and in the abstract space."""
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    places = [str(host.root / "docker.sock"), str(host.workspace / "daemon.sock"), "\0" + host.secret.name]
    units = [socket.socket(socket.AF_UNIX) for _ in places]
    for unix, place in zip(units, places, strict=True):
        unix.bind(place)
        unix.listen()
        if not place.startswith("\0"):
            Path(place).chmod(0o777)
    return [tcp, udp, *units]


def _serve_while(host: Host, servers: list[socket.socket], world: Mapping[str, Any], *, boxed: bool) -> bytes:
    """Answer with the canary on every socket while a worker attempts all; return what its terminal shows."""
    with warnings.catch_warnings():  # Python 3.12 warns of threads here; the child uses what this thread holds only
        warnings.simplefilter("ignore", DeprecationWarning)
        child, terminal = os.forkpty()
    if child == 0:
        run_as_worker(host, world, boxed=boxed)
    screen = b""
    with selectors.DefaultSelector() as waiting:
        for server in servers:
            waiting.register(server, selectors.EVENT_READ, _answer)
        waiting.register(terminal, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fd != terminal:
                    key.data(key.fileobj, host.canary.encode())
                    continue
                shown = _read_terminal(terminal)
                if not shown:
                    os.close(terminal)
                    assert os.waitpid(child, 0)[1] == 0, screen[-TERMINAL_WIDTH:]
                    return screen
                screen += shown


def _read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how a pseudo-terminal says that its other end was closed
        return b""


def _answer(server: socket.socket, canary: bytes) -> None:
    if server.type == socket.SOCK_DGRAM:
        server.sendto(canary, server.recvfrom(1000)[1])
        return
    with server.accept()[0] as connection:
        connection.sendall(canary)


def _add_witnesses(said: dict[str, str], host: Host, screen: bytes, victim: int) -> None:
    seen: dict[str, Callable[[], bool]] = {name: (host.outside / left).exists for name, left in WITNESSES.items()}
    seen["delete outside"] = lambda: not (host.outside / "precious").exists()
    seen["renice"] = lambda: os.getpriority(os.PRIO_PROCESS, victim) == 19
    seen["draw on the terminal"] = lambda: b"DRAWN" in screen
    for name, is_changed in seen.items():
        if is_changed():
            said[name] += f"\n{ESCAPED}: the machine shows it"
