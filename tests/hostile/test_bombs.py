"""Commands that take all there is, and commands that do not end: bounded, whoever runs the worker, and said."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from perdure.effects.base import Finished
from perdure.workspace.sandbox import KILLED, Bounds, Sandbox
from tests.hostile.escapes.bombs import BOMBS, MIB, Bomb
from tests.hostile.escapes.users import USERS, run_as

LIMIT = timedelta(seconds=40)

BOUNDS = Bounds(
    processes=64,
    memory_bytes=150 * MIB,
    file_bytes=100 * MIB,
    temporary_bytes=50 * MIB,
    workspace_bytes=150 * MIB,
    workspace_files=10_000,
)


@contextmanager
def folder_of(uid: int) -> Iterator[Path]:
    """A folder in which ``uid`` may write (pytest's own are closed to others)."""
    folder = Path(tempfile.mkdtemp(prefix="bomb-", dir="/tmp"))
    try:
        os.chown(folder, uid, uid)
        yield folder
    finally:
        shutil.rmtree(folder)


def box(uid: int, folder: Path, argv: list[str], limit: timedelta = LIMIT, **options: int) -> Finished:
    """Run a command in a sandbox with small bounds, on behalf of a worker of that user."""
    sandbox = Sandbox.find()
    small = Sandbox(sandbox.program, BOUNDS)
    return run_as(uid, lambda: small.run(argv, workspace=folder, limit=limit, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
def test_bomb_goes_off_unboxed(bomb: Bomb) -> None:
    """Without a sandbox each gets what it wants."""
    with folder_of(USERS[-1]) as folder:
        ran = run_as(
            USERS[-1],
            lambda: subprocess.run(
                [_python(), "-c", bomb.script], cwd=folder, capture_output=True, text=True, timeout=60
            ),
        )
    assert "DONE" in ran.stdout, ran.stderr


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
def test_bomb_meets_a_bound(bomb: Bomb, uid: int) -> None:
    """In the sandbox it ends before it has all that it wanted, and what it met is said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with folder_of(uid) as folder:
        done = box(uid, folder, ["python3", "-c", bomb.script])
    assert b"DONE" not in done.stdout, before
    assert done.code != 0
    assert re.search(bomb.said.encode(), done.output), done.output


ENDLESS = {
    "sleeps": "sleep 4000",
    "is deaf": "trap '' TERM INT HUP; while :; do sleep 4000; done",
    "is stopped": "kill -STOP $$",
    "stopped its parent too": "kill -STOP 1 $PPID; kill -STOP $$",
    "spins": "while :; do :; done",
    "writes for ever": "exec cat /dev/zero",
    "draws for ever": "while :; do printf '\\033]0;owned\\007\\033[2J'; done",
    "waits for its input": "cat; sleep 4000",
}


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("script", ENDLESS.values(), ids=ENDLESS)
def test_endless_command_is_ended(script: str, uid: int) -> None:
    """What does not end is ended at its limit, all of it, and this is said; its output stays bounded."""
    began = time.monotonic()
    with folder_of(uid) as folder:
        done = box(uid, folder, ["sh", "-c", script], timedelta(seconds=1), output_limit_bytes=10_000)
    assert done.code == KILLED
    assert b"killed: it did not end within" in done.output
    assert len(done.output) < 25_000
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("uid", USERS)
def test_daemon_is_not_waited_for_and_ends(uid: int) -> None:
    """A detached child that keeps the output open holds nobody up, and does not outlive its command."""
    mark = str(300_000 + os.getpid())
    script = f"(setsid sh -c 'setsid sleep {mark} & sleep {mark}' &) ; echo started"
    with folder_of(uid) as folder:
        done = box(uid, folder, ["sh", "-c", script])
    assert (done.code, done.stdout) == (0, b"started\n")
    ends = time.monotonic() + 20
    while any(_cmdline(path) == f"sleep\0{mark}\0".encode() for path in Path("/proc").glob("[0-9]*/cmdline")):
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.parametrize("uid", USERS)
def test_command_that_kills_all_it_sees_kills_itself(uid: int) -> None:
    """SIGKILL to every process in sight ends the command at most; the worker reads how it ended."""
    with folder_of(uid) as folder:
        done = box(uid, folder, ["sh", "-c", "echo before; kill -9 -1; kill -9 1; echo after"])
    assert b"before" in done.stdout


@pytest.mark.parametrize("uid", USERS)
def test_nothing_of_one_command_meets_the_next(uid: int) -> None:
    """Temporary files, shared memory and homes are of one command; the workspace is what they share."""
    leave = (
        "for place in /tmp /dev/shm $HOME /var/tmp; do mkdir -p $place; echo left > $place/left-here; done; touch kept"
    )
    with folder_of(uid) as folder:
        assert box(uid, folder, ["sh", "-c", f"{leave}; cat /tmp/left-here"]).stdout == b"left\n"
        look = "cat /tmp/left-here /dev/shm/left-here $HOME/left-here /var/tmp/left-here; ls"
        assert box(uid, folder, ["sh", "-c", look]).stdout == b"kept\n"


def _cmdline(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _python() -> str:
    return shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable
