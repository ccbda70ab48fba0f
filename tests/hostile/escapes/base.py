"""What one escape is, and the words its script may use.

A script runs in an interpreter of its own with the names of ``PRELUDE``. It has escaped when its output holds the
canary (a random word that only the machine outside knows: in files, environments, memory, sockets), when it says
``ESCAPED`` of itself, or when something outside is changed (see ``witnesses`` in ``hosts.py``). What a script raises
is the refusal that it met.
"""

from __future__ import annotations

from dataclasses import dataclass

ESCAPED = "ESCAPED"


@dataclass(frozen=True)
class Escape:
    """One way out."""

    name: str
    described: str
    """Where one can read of it: a CVE, a tool's or project's write-up."""
    script: str
    needs_root: bool = False
    """Unboxed, only root can do it: nothing to show for a plain user, who is refused with or without a sandbox."""
    is_optional: bool = False
    """Kernels may be built without it, and a machine may keep it from everybody: then it fails unboxed too."""


PRELUDE = r"""
import ctypes, errno, fcntl, glob, json, mmap, os, platform, resource, signal, socket, stat, struct, subprocess, sys

W = json.loads(os.environ["ESCAPE_WORLD"])
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86 = dict(ptrace=101, acct=163, swapoff=168, reboot=169, iopl=172, init_module=175, kexec_load=246, add_key=248,
           request_key=249, keyctl=250, perf_event_open=298, fanotify_init=300, open_by_handle_at=304,
           process_vm_readv=310, bpf=321, userfaultfd=323)
ARM = dict(ptrace=117, acct=89, swapoff=225, reboot=142, init_module=105, kexec_load=104, add_key=217,
           request_key=218, keyctl=219, perf_event_open=241, fanotify_init=262, open_by_handle_at=265,
           process_vm_readv=270, bpf=280, userfaultfd=282)
BOTH = dict(io_uring_setup=425, open_tree=428, fsopen=430, pidfd_open=434, clone3=435, pidfd_getfd=438, fchmodat2=452)
NUMBERS = {**(X86 if platform.machine() == "x86_64" else ARM), **BOTH}

def call(name, *args):
    "A system call by name; its refusal is raised."
    words = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    answer = libc.syscall(ctypes.c_long(NUMBERS[name]), *words)
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return answer

def reached(name, *args):
    "Whether the kernel did more than say no: a complaint about nonsense arguments means that it would listen."
    try:
        call(name, *args)
    except OSError as refused:
        if refused.errno in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            raise
    escaped(name)

def escaped(how=""):
    print("ESCAPED", how, flush=True)

def checked(answer):
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer

def show(path):
    "Without waiting: what is read may be a pipe that nobody fills."
    print(os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 65536).decode(errors="replace"), flush=True)

def pids():
    "The host's victim first, then all that can be seen."
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [W["victim"], *(pid for pid in seen if pid not in (W["victim"], os.getpid()))][:200]

def each(work, items):
    "Try all; the last refusal is raised when none worked."
    last = None
    for item in items:
        try:
            work(item)
            return
        except OSError as refused:
            last = refused
    raise last or FileNotFoundError("nothing to try")
"""
