"""Ways out through other processes, their memory, their terminal and what they share."""

from __future__ import annotations

from tests.hostile.escapes.base import Escape

PROCESSES = (
    Escape(
        "another process's environment",
        "tokens in /proc/pid/environ",
        'for pid in pids():\n    try: show(f"/proc/{pid}/environ")\n    except OSError: pass',
    ),
    Escape(
        "another process's command line",
        "passwords in argv",
        'for pid in pids():\n    try: show(f"/proc/{pid}/cmdline")\n    except OSError: pass',
    ),
    Escape(
        "another process's memory",
        "mimipenguin: /proc/pid/mem",
        """
def look(pid):
    maps = [line.split() for line in open(f"/proc/{pid}/maps")]
    for low, high in [line[0].split("-") for line in maps if line[-1] in ("[stack]", "[heap]")]:
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(int(low, 16)); found = memory.read(int(high, 16) - int(low, 16))
        if b"victim-of-" in found: print(found[found.index(b"victim-of-"):][:100]); return
    raise FileNotFoundError("nothing in its memory")
each(look, pids())
""",
    ),
    Escape(
        "another process's memory by a call",
        "process_vm_readv(2)",
        """
def look(pid):
    stack = [line.split()[0].split("-") for line in open(f"/proc/{pid}/maps") if "[stack]" in line][0]
    low, size = int(stack[0], 16), int(stack[1], 16) - int(stack[0], 16)
    here = ctypes.create_string_buffer(size)
    local = struct.pack("PN", ctypes.addressof(here), size); remote = struct.pack("PN", low, size)
    call("process_vm_readv", pid, ctypes.c_char_p(local), 1, ctypes.c_char_p(remote), 1, 0)
    if b"victim-of-" not in here.raw: raise FileNotFoundError("nothing in its memory")
    print(here.raw[here.raw.index(b"victim-of-"):][:100])
each(look, pids())
""",
    ),
    Escape(
        "ptrace",
        "MITRE T1055.008",
        'each(lambda pid: (call("ptrace", 0x4206, pid, 0, 0), escaped(str(pid))), pids())',
    ),
    Escape(
        "ptrace a child",
        "a traced child may change its system calls after the filter looked",
        'escaped() if call("ptrace", 0, 0, 0, 0) == 0 else None',
    ),
    Escape(
        "another process's descriptor",
        "pidfd_getfd(2)",
        """
def steal(pid):
    got = call("pidfd_getfd", call("pidfd_open", pid, 0), W["victim_fd"], 0)
    show(f"/proc/self/fd/{got}")
each(steal, pids())
""",
    ),
    Escape("kill", "MITRE T1489", 'os.kill(W["prey"], signal.SIGKILL); escaped()'),
    Escape("kill the worker", "MITRE T1562", 'os.kill(W["worker"], 0); escaped("it would have been")'),
    Escape(
        "renice",
        "setpriority(2) on all of a user's processes",
        'os.setpriority(os.PRIO_PROCESS, W["victim"], 19)',
    ),
    Escape(
        "limits of another",
        "prlimit(2)",
        'resource.prlimit(W["victim"], resource.RLIMIT_CORE, (0, 0)); escaped()',
    ),
    Escape(
        "scheduling of another",
        "sched_setaffinity(2)",
        'os.sched_setaffinity(W["victim"], os.sched_getaffinity(W["victim"])); escaped()',
    ),
    Escape(
        "type into the terminal",
        "CVE-2017-5226: TIOCSTI",
        """
def push(path):
    fcntl.ioctl(os.open(path, os.O_RDWR | os.O_NOCTTY), 0x5412, b"#"); escaped(path)
each(push, ["/dev/tty", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"])
""",
    ),
    Escape(
        "type into the terminal, high bits set",
        "CVE-2019-10063: the filter compared 64 bits, the kernel takes 32",
        """
def push(path):
    libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p]
    checked(libc.ioctl(os.open(path, os.O_RDWR | os.O_NOCTTY), 0x5412 | 1 << 32, b"#")); escaped(path)
each(push, ["/dev/tty", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"])
""",
    ),
    Escape(
        "type into a terminal of its own",
        "TIOCSTI on a new pseudo-terminal shows whether the call itself is let through",
        """
import pty
child, master = pty.fork()
if child == 0:
    try: fcntl.ioctl(0, 0x5412, b"#"); os.write(1, b"TYPED")
    except OSError as refused: os.write(1, str(refused).encode())
    os._exit(0)
seen = b""
while b"TYPED" not in seen and b"rror" not in seen and b"not" not in seen: seen += os.read(master, 100)
print(seen)
if b"TYPED" in seen: escaped()
""",
    ),
    Escape(
        "draw on the terminal",
        "escape sequences that change a terminal",
        'open("/dev/tty", "wb", 0).write(b"\\x1b]0;DRAWN\\x07")',
    ),
    Escape(
        "System V shared memory",
        "ipcs(1): segments of other processes",
        """
libc.shmat.restype = ctypes.c_void_p
at = libc.shmat(libc.shmget(W["segment"], 0, 0), None, 0o10000)
if at in (None, ctypes.c_void_p(-1).value): raise OSError(ctypes.get_errno(), "shmat")
print(ctypes.string_at(at, 100))
""",
    ),
    Escape(
        "key of the session",
        "keyrings are not namespaced (Docker's keyring leak)",
        """
key = call("request_key", ctypes.c_char_p(b"user"), ctypes.c_char_p(W["name"].encode()), None, 0)
text = ctypes.create_string_buffer(200); call("keyctl", 11, key, text, 200, 0); print(text.raw)
""",
    ),
    Escape(
        "keep something in the kernel",
        "add_key(2): a store that outlives the command",
        'call("add_key", ctypes.c_char_p(b"user"), ctypes.c_char_p(b"kept"), ctypes.c_char_p(b"x"), 1, -2); escaped()',
    ),
)
