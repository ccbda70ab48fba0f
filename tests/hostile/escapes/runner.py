"""Runs all scripts that stand beside it, each in a process of its own; standard library only, for any interpreter.

Usage: ``python3 runner.py``: reads ``scripts.json`` (prelude and scripts by name), writes what each said by name.
"""

import ctypes  # noqa: F401  # what scripts use is loaded before they are forked
import glob  # noqa: F401
import json
import mmap  # noqa: F401
import os
import platform  # noqa: F401
import resource  # noqa: F401
import signal
import socket  # noqa: F401
import subprocess  # noqa: F401
import sys
import time
import traceback

_SECONDS = 20


def attempt(script):
    """Return what a script wrote, with its refusal as the last line; one that does not end is ended."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        os.dup2(into, 1)
        os.dup2(into, 2)
        os.close(into)
        _run(script)
    os.close(into)
    said = _read(out, child)
    os.close(out)
    return said


def _run(script):
    signal.alarm(_SECONDS)
    try:
        exec(script, {"__name__": "escape"})
    except BaseException:
        sys.stdout.flush()
        os.write(1, ("\n" + traceback.format_exc(limit=0)).encode())
    sys.stdout.flush()
    os._exit(0)


def _read(out, child):
    """All that the child writes; what a grandchild keeps open is not waited for."""
    os.set_blocking(out, False)
    said, ends = b"", time.monotonic() + _SECONDS + 1
    alive = True
    while alive and time.monotonic() < ends:
        alive = os.waitpid(child, os.WNOHANG)[0] == 0
        said += _available(out)
        if alive:
            time.sleep(0.001)
    if alive:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        said += b"\nit did not end"
    return (said + _available(out)).decode(errors="replace")


def _available(out):
    try:
        return os.read(out, 1 << 17)
    except BlockingIOError:
        return b""


def main():
    """Attempt all, one after another."""
    with open("scripts.json", encoding="utf-8") as file:  # noqa: PTH123 - few imports
        prelude, scripts = json.load(file)
    json.dump({name: attempt(prelude + script) for name, script in scripts.items()}, sys.stdout)


if __name__ == "__main__":
    main()
