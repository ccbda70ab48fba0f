"""The filter on system calls: its table of numbers, and what still works under it."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from perdure.errors import SetupError
from perdure.workspace.sandbox import Sandbox
from perdure.workspace.seccomp import MACHINES, make_filter

LIMIT = timedelta(seconds=30)

_HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_the_kernels(machine: str) -> None:
    """Where this machine has the kernel's list, no number differs; a call that the list is too old for may lack."""
    header = _HEADERS[machine]
    said = header.read_text(encoding="utf-8") if header.exists() else ""
    known = {name: int(number) for name, number in re.findall(r"__NR(?:3264)?_(\w+) (\d+)\n", said)}
    wrong = {name: number for name, number in MACHINES[machine][1].items() if known.get(name, number) != number}
    assert wrong == {}


@pytest.mark.parametrize("machine", MACHINES)
def test_filter_is_a_program_the_kernel_takes(machine: str) -> None:
    """Whole steps of eight bytes, fewer than the kernel's most, and the last of them allows."""
    program = make_filter(machine=machine)
    assert len(program) % 8 == 0
    assert len(program) // 8 < 4096
    assert program[-4:] == b"\x00\x00\xff\x7f"
    assert program != make_filter(machine=machine, unix_sockets=True)


def test_machine_without_a_table_is_refused() -> None:
    """No filter is no sandbox."""
    with pytest.raises(SetupError, match="no filter of system calls for riscv64"):
        make_filter(machine="riscv64")


def run_python(folder: Path, code: str, network: tuple[str, ...] = ()) -> bytes:
    """What a sandboxed Python prints, both streams."""
    done = Sandbox.find().run(["python3", "-c", code], workspace=folder, limit=LIMIT, network=network)
    return done.output.strip()


def test_programs_run_as_before(tmp_path: Path) -> None:
    """Threads, processes, pipes, pairs of sockets, loopback, event loops and files of every usual mode."""
    code = """
import asyncio, os, socket, subprocess, tempfile, threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
async def echo():
    made = await asyncio.create_subprocess_exec("echo", "hi", stdout=subprocess.PIPE)
    return (await made.communicate())[0]
assert asyncio.run(echo()) == b"hi\\n"
assert list(ThreadPoolExecutor(4).map(abs, [-1])) == [1]
one, other = socket.socketpair(); one.send(b"x"); assert other.recv(1) == b"x"
with socket.create_server(("127.0.0.1", 0)) as server: socket.create_connection(server.getsockname()).close()
for mode in (0o600, 0o644, 0o755, 0o777, 0o1777): os.mkdir(f"d{mode}"); os.chmod(f"d{mode}", mode)
os.close(os.open("new", os.O_CREAT | os.O_WRONLY, 0o640)); os.memfd_create("m")
print("fine")
"""
    assert run_python(tmp_path, code) == b"fine"


def test_unix_sockets_are_opened_by_name(tmp_path: Path) -> None:
    """A command that needs them says `network: [unix]`; without, it cannot make one."""
    code = """
import socket
try: server = socket.socket(socket.AF_UNIX); server.bind("s"); server.listen(); print("listens")
except OSError as refused: print(refused.strerror)
"""
    assert run_python(tmp_path, code) == b"Operation not permitted"
    assert run_python(tmp_path, code, ("unix",)) == b"listens"
