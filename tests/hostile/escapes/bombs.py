"""Commands that take all there is: each ends by itself when nobody stops it (and says ``DONE``), within what a machine
stands; in the sandbox it meets a bound, and the person reads which.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bomb:
    """One way to take too much."""

    name: str
    script: str
    """Python; prints ``DONE`` when it got all that it wanted."""
    said: str
    """What the result must say, as a pattern: the sandbox's word, or the error that the program met."""


MIB = 1 << 20

BOMBS = (
    Bomb(
        "memory",
        "block = bytearray(400 << 20)\nprint('DONE')",
        r"MemoryError|memory",
    ),
    Bomb(
        "memory of many processes",
        """
import os, time
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(os.urandom(1 << 20) * 60); time.sleep(2); os._exit(0)
codes = [os.wait()[1] for _ in range(8)]
if not any(codes): print("DONE")
""",
        r"killed: .*memory",
    ),
    Bomb(
        "memory that no process holds",
        """
import os, time
held = [os.memfd_create("held") for _ in range(5)]
for fd in held:
    for _ in range(90): os.write(fd, bytes(1 << 20))
time.sleep(1)
print("DONE")
""",
        r"killed: .*memory|File too large|No space|Cannot allocate|EFBIG",
    ),
    Bomb(
        "shared segments",
        """
import ctypes, time
libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p
for _ in range(10):
    segment = libc.shmget(0, 45 << 20, 0o1600)
    at = libc.shmat(segment, None, 0)
    if segment < 0 or at in (None, ctypes.c_void_p(-1).value): raise SystemExit("Cannot allocate memory")
    ctypes.memset(at, 1, 45 << 20); libc.shmdt(ctypes.c_void_p(at))
time.sleep(1)
print("DONE")
""",
        r"killed: .*memory|Cannot allocate memory",
    ),
    Bomb(
        "one large file",
        "with open('large', 'wb') as file:\n for _ in range(150): file.write(bytes(1 << 20))\nprint('DONE')",
        r"File too large|killed: .*disk",
    ),
    Bomb(
        "many files",
        """
for number in range(60):
    with open(f"part-{number}", "wb") as file: file.write(bytes(5 << 20))
import time; time.sleep(3)
print("DONE")
""",
        r"killed: .*workspace",
    ),
    Bomb(
        "temporary files",
        """
import tempfile
folder = tempfile.mkdtemp(dir="/tmp")
try:
    for number in range(40):
        with open(f"{folder}/part-{number}", "wb") as file: file.write(bytes(5 << 20))
    print("DONE")
finally:
    import shutil; shutil.rmtree(folder)
""",
        r"No space left|killed: .*memory",
    ),
    Bomb(
        "empty files",
        """
for number in range(30000): open(f"{number}", "w").close()
import time; time.sleep(3)
print("DONE")
""",
        r"killed: .*workspace",
    ),
    Bomb(
        "open files",
        """
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = [open("/dev/null") for _ in range(9000)]
print("DONE")
""",
        r"Too many open files",
    ),
    Bomb(
        "processes",
        """
import os, time
for _ in range(9):
    try: os.fork()
    except OSError as refused: print(refused, flush=True)
time.sleep(2)
print("DONE")
""",
        r"started more than \d+ processes",
    ),
)
