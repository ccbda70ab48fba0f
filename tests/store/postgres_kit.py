"""A real PostgreSQL server for tests: found on the machine, run as an unprivileged user, reached by a Unix socket."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

_UNPRIVILEGED = ("postgres", "nobody")
"""PostgreSQL refuses root, and a uid without a name; the first of these users that exists runs it."""

_START_LIMIT_SECONDS = 60

HOW_TO_INSTALL = (
    "These tests run a real PostgreSQL server. Neither /usr/lib/postgresql/*/bin nor PATH has initdb and postgres. "
    "Install it: `apt-get install postgresql` (Debian, Ubuntu) or `dnf install postgresql-server`."
)


class PostgresServer:
    """A running server; it ends with the process that started it, however that ends."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], user: list[str]) -> None:
        self._folder = folder
        self._process = process
        self._user = user
        self._names = count(1)

    def new_url(self) -> str:
        """Return the URL of an empty schema of its own."""
        name = f"test_{next(self._names)}"
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"postgresql+psycopg://perdure@/postgres?host={self._folder}&options=-csearch_path%3D{name}"

    @property
    def conninfo(self) -> str:
        """For psycopg itself."""
        return f"host={self._folder} user=perdure dbname=postgres"

    def stop(self) -> None:
        """End it at once, without a checkpoint; its shared memory is given back, which SIGKILL would not do."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(_START_LIMIT_SECONDS)


def find_postgres() -> Path:
    """Return the folder of initdb and postgres, the newest version first; the test fails where there is none."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    on_path = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    for folder in [*versions, *on_path]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.fail(HOW_TO_INSTALL)


@contextmanager
def run_postgres():
    """Start a server in a folder that its user may reach (pytest's own are closed to others), end and remove it."""
    binaries = find_postgres()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    user = _user()
    if user:
        os.chown(folder, int(user[2]), int(user[4]))
    try:
        data = folder / "data"
        init = [*user, binaries / "initdb", "-D", data, "-U", "perdure", "-A", "trust", "-E", "UTF8", "--no-sync"]
        made = subprocess.run([*init, "--locale=C"], capture_output=True, text=True, cwd=folder)
        if made.returncode:
            pytest.fail(f"initdb failed: {made.stderr}")
        server = _start(binaries, folder, user)
        try:
            _await_ready(server)
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _start(binaries: Path, folder: Path, user: list[str]) -> PostgresServer:
    # --pdeathsig: a killed test run leaves no server behind.
    settings = {"listen_addresses": "", "unix_socket_directories": str(folder), "fsync": "off", "max_connections": "60"}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    argv = [*(user or ["setpriv"]), "--pdeathsig", "QUIT", binaries / "postgres", "-D", folder / "data", *options]
    log = (folder / "log").open("wb")
    with log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, cwd=folder)
    return PostgresServer(folder, process, user)


def _await_ready(server: PostgresServer) -> None:
    limit = time.monotonic() + _START_LIMIT_SECONDS
    while True:
        try:
            psycopg.connect(server.conninfo).close()
            return
        except psycopg.OperationalError as error:
            if server._process.poll() is not None or time.monotonic() > limit:
                log = (server._folder / "log").read_text()
                pytest.fail(f"PostgreSQL did not start: {error}\n{log}")
            time.sleep(0.02)


def _user() -> list[str]:
    """The words that start a command as an unprivileged user; none when we are one."""
    if os.geteuid() != 0:
        return []
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = next(known[name] for name in _UNPRIVILEGED if name in known)
    return ["setpriv", "--reuid", str(entry.pw_uid), "--regid", str(entry.pw_gid), "--clear-groups"]
