"""The worker on whose behalf scripts run: a process with a terminal, a token in its environment and open files."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from perdure.workspace.sandbox import Sandbox

if TYPE_CHECKING:
    from tests.hostile.escapes.hosts import Host

TERMINAL_WIDTH = 4000
_LIMIT = timedelta(seconds=120)
_ADD_KEY, _KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
_SESSION_KEYRING = -3
_JOIN_SESSION = 1


def run_as_worker(host: Host, world: Mapping[str, Any], *, boxed: bool) -> NoReturn:
    """Become the user, hold the canary wherever a careless worker would, attempt all, leave what was said in a file."""
    try:
        become(host.uid)
        os.environ["PERDURE_TOKEN"] = f"victim-of-{host.canary}"
        _keep_key(host)
        segment = _share_memory(host)
        environ = {"ESCAPE_WORLD": json.dumps({**world, "worker": os.getpid(), "segment": segment[0]})}
        secret = os.open(host.secret, os.O_RDONLY)
        os.set_inheritable(secret, True)
        try:
            said = _boxed(host, environ) if boxed else _unboxed(host, environ, secret)
        finally:
            ctypes.CDLL(None).shmctl(segment[1], 0, None)
        (host.root / "said.json").write_bytes(said)
        os._exit(0)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        os._exit(1)


def become(uid: int) -> None:
    """Give up root for good; without effect for who is that user already."""
    if os.geteuid() != uid:
        tempfile.tempdir = "/tmp"  # the one it was told of may be closed to that user
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def _keep_key(host: Host) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(_KEYCTL, _JOIN_SESSION, None)
    name, value = host.secret.name.encode(), host.canary.encode()
    libc.syscall(_ADD_KEY, b"user", name, value, len(value), _SESSION_KEYRING)


def _share_memory(host: Host) -> tuple[int, int]:
    """Return key and id of a segment with the canary in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    key = 0x50000000 | os.getpid()
    segment = libc.shmget(key, 4096, 0o1600)
    ctypes.memmove(libc.shmat(segment, None, 0), host.canary.encode(), len(host.canary))
    return key, segment


def _unboxed(host: Host, environ: Mapping[str, str], secret: int) -> bytes:
    interpreter = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    ran = subprocess.run(
        [interpreter, "runner.py"], cwd=host.workspace, env=environ, pass_fds=[secret], stdout=subprocess.PIPE
    )
    return ran.stdout


def _boxed(host: Host, environ: Mapping[str, str]) -> bytes:
    argv = ["python3", "runner.py"]
    done = Sandbox.find().run(argv, workspace=host.workspace, limit=_LIMIT, env=dict(environ))
    if done.code != 0:
        raise RuntimeError(f"the runner ended with {done.code}: {done.output[-TERMINAL_WIDTH:]!r}")
    return done.stdout
