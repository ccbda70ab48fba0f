"""The filter on system calls that every sandboxed command runs under: what a command never needs and escapes do.

A short program for the kernel (classic BPF, seccomp(2)), put together here: no library and no opaque file. It refuses
by name, not by default: a list of all that is allowed would break commands with every new libc. What namespaces and
lost capabilities already refuse is refused again. Calls that carry what the filter cannot read (``clone3``,
``openat2``, ``io_uring``) answer "not there", so that libraries fall back to the calls it can read.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable, Mapping
from functools import cache

from perdure.errors import SetupError

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _ABOVE, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000

_NAMESPACES = 0x7E020080
"""Every CLONE_NEW… flag."""
_CREATING = 0x40 | 0x400000
"""O_CREAT, and what sets O_TMPFILE apart: only then does open take a mode."""
_SET_IDS = 0o6000

_TERMINAL_CALLS = (0x5412, 0x541C, 0x5423)
"""TIOCSTI types into a terminal, TIOCLINUX pastes into a console, TIOCSETD loads line disciplines."""

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16

_NOT_THERE = ("clone3", "openat2", "fchmodat2", "io_uring_setup", "io_uring_enter", "io_uring_register")

_FORBIDDEN = (
    # Other processes' memory, files and steps.
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "move_pages", "migrate_pages"),
    # Keys: not namespaced, and they outlive the command.
    *("add_key", "request_key", "keyctl"),
    # Wide doors into the kernel.
    *("bpf", "perf_event_open", "userfaultfd", "memfd_secret", "fanotify_init", "open_by_handle_at", "lookup_dcookie"),
    # Mounts and namespaces, by the old calls and the new.
    *("mount", "umount2", "pivot_root", "chroot", "setns", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount"),
    *("open_tree", "open_tree_attr", "mount_setattr", "quotactl", "quotactl_fd"),
    # The machine itself.
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff"),
    *("acct", "syslog", "settimeofday", "clock_settime", "vhangup", "nfsservctl", "iopl", "ioperm", "modify_ldt"),
    *("uselib", "ustat", "sysfs", "_sysctl"),
)

_MODE_ARGUMENTS = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "creat": 1, "mknod": 1, "mknodat": 2}
_OPENING = {"open": (1, 2), "openat": (2, 3)}
"""Where the flags and the mode are."""

_SHARED = {  # numbered alike on every machine since 2019
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "openat2": 437,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "fchmodat2": 452,
    "open_tree_attr": 467,
}
_X86_64 = {
    "open": 2,
    "ioctl": 16,
    "socket": 41,
    "clone": 56,
    "creat": 85,
    "chmod": 90,
    "fchmod": 91,
    "ptrace": 101,
    "syslog": 103,
    "mknod": 133,
    "uselib": 134,
    "ustat": 136,
    "sysfs": 139,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "_sysctl": 156,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "nfsservctl": 180,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "openat": 257,
    "mknodat": 259,
    "fchmodat": 268,
    "unshare": 272,
    "move_pages": 279,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "open_by_handle_at": 304,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
_AARCH64 = {
    "lookup_dcookie": 18,
    "ioctl": 29,
    "mknodat": 33,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "nfsservctl": 42,
    "chroot": 51,
    "fchmod": 52,
    "fchmodat": 53,
    "openat": 56,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "settimeofday": 170,
    "socket": 198,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "clone": 220,
    "swapon": 224,
    "swapoff": 225,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "open_by_handle_at": 265,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}
MACHINES: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "x86_64": (0xC000003E, {**_X86_64, **_SHARED}),
    "aarch64": (0xC00000B7, {**_AARCH64, **_SHARED}),
}
"""By ``platform.machine``: the kernel's word for it, and its calls' numbers."""


@cache
def make_filter(*, unix_sockets: bool = False, machine: str = "") -> bytes:
    """Return the filter's program, as bwrap and the kernel take it. The same for the same arguments.

    Without ``unix_sockets`` no Unix socket can be made (pairs can): one that lies in a folder shown to a command is
    a way out that no namespace closes.

    Raises:
        SetupError: nobody has written down this machine's calls.
    """
    name = machine or platform.machine()
    if name not in MACHINES:
        raise SetupError(f"There is no filter of system calls for {name}. Use one of {', '.join(MACHINES)}.")
    word, numbers = MACHINES[name]
    program = [
        _load(_ARCH),
        *_unless(_EQUAL, word, [_refuse(errno.ENOSYS)]),
        _load(_NUMBER),
        *(_when(_ABOVE, _X32, [_refuse(errno.ENOSYS)]) if name == "x86_64" else []),
        *_refuse_each(numbers, _NOT_THERE, errno.ENOSYS),
        *_refuse_each(numbers, _FORBIDDEN, errno.EPERM),
        *_call(numbers, "clone", _if_argument_has(0, _NAMESPACES)),
        *_call(numbers, "unshare", _if_argument_has(0, _NAMESPACES)),
        *_call(numbers, "ioctl", [_load_argument(1), *_any_of(_TERMINAL_CALLS, errno.EPERM)]),
        *_call(numbers, "socket", _socket(unix_sockets=unix_sockets)),
    ]
    for call, place in _MODE_ARGUMENTS.items():
        program += _call(numbers, call, _if_argument_has(place, _SET_IDS))
    for call, (flags, mode) in _OPENING.items():
        guarded = _if_argument_has(mode, _SET_IDS)
        program += _call(numbers, call, [_load_argument(flags), *_when(_HAS, _CREATING, guarded)])
    return b"".join([*program, _step(_RETURN, _ALLOW)])


def _step(code: int, value: int, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, when_true, when_false, value)


def _load(offset: int) -> bytes:
    return _step(_LOAD, offset)


def _load_argument(place: int) -> bytes:
    """The lower half: the kernel takes no more of what is looked at here (CVE-2019-10063 compared both)."""
    return _load(_ARGUMENTS + 8 * place)


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _REFUSE | number)


def _when(test: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_step(test, value, 0, len(then)), *then]


def _unless(test: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_step(test, value, len(then), 0), *then]


def _any_of(values: Iterable[int], number: int) -> list[bytes]:
    return [step for value in values for step in _when(_EQUAL, value, [_refuse(number)])]


def _refuse_each(numbers: Mapping[str, int], names: Iterable[str], number: int) -> list[bytes]:
    return _any_of((numbers[name] for name in names if name in numbers), number)


def _call(numbers: Mapping[str, int], name: str, body: list[bytes]) -> list[bytes]:
    """What is asked of one call; afterwards it is allowed (its argument stands where the number was)."""
    return _when(_EQUAL, numbers[name], [*body, _step(_RETURN, _ALLOW)]) if name in numbers else []


def _if_argument_has(place: int, bits: int) -> list[bytes]:
    return [_load_argument(place), *_when(_HAS, bits, [_refuse(errno.EPERM)])]


def _socket(*, unix_sockets: bool) -> list[bytes]:
    """IP (into a namespace with nothing in it), the question for interfaces, and nothing else."""
    allowed = (_INET, _INET6, *((_UNIX,) if unix_sockets else ()))
    allow = [_step(_RETURN, _ALLOW)]
    families = [step for family in allowed for step in _when(_EQUAL, family, allow)]
    interfaces = [_load_argument(2), *_when(_EQUAL, 0, allow)]
    return [_load_argument(0), *families, *_when(_EQUAL, _NETLINK, interfaces), _refuse(errno.EPERM)]
