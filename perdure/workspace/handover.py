"""What a worker run by root gives up for a command: a plain user runs it, and files stay the worker's own.

Root without capabilities is still root to the kernel where it asks for the user alone: it may write the machine's
switches (``/proc/sys/kernel/core_pattern`` names a program that the kernel starts as root), and limits on a user's
processes do not count. So the command's user is nobody's. The folders that it may see are mounted for it with owners
exchanged (mount_setattr(2), idmapped mounts): what is root's on disk is the plain user's inside, and the other way
round, without a change on disk. The mounts are seen in a namespace of their own, which ends with the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import shutil
import struct
import subprocess
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from perdure.errors import SetupError

PLAIN_UID = 2_000_000
"""Nobody's: above people, services and the ranges of containers; below 2^21, where old archive formats end."""

log = logging.getLogger("perdure.workspace")

_PROGRAMS = "/usr/bin:/bin:/usr/sbin:/sbin"
_NEW_MOUNTS = 0x20000
_FOLLOWING = 0x4000 | 0x80000
"""MS_REC and MS_SLAVE: mounts made here are not seen outside."""
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE, _EMPTY_PATH, _MOVE_EMPTY_PATH, _ID_MAPPED = 1, 0x1000, 4, 0x100000
_HERE = -100


def is_root() -> bool:
    """Whether there is anything to give up."""
    return os.geteuid() == 0


def enter_words(namespace: int) -> list[str]:
    """The beginning of a command line that starts in the mount namespace of this descriptor (which it inherits)."""
    return [_program("nsenter"), f"--mount=/proc/self/fd/{namespace}", "--"]


def drop_words() -> list[str]:
    """The beginning of a command line that gives up root, inside; its program is found where the sandbox shows it."""
    user = [f"--reuid={PLAIN_UID}", f"--regid={PLAIN_UID}", "--clear-groups", "--no-new-privs"]
    return [_program("setpriv"), *user, "--inh-caps=-all", "--bounding-set=-all", "--"]


def hand_over(folders: Sequence[Path]) -> int:
    """Return a mount namespace in which these folders belong to the plain user; the caller closes it.

    Raises:
        SetupError: this machine or a folder's file system cannot do it.
    """
    made: list[int | OSError] = []
    # A thread may have a mount namespace of its own, and takes it along when it ends; the descriptor keeps it.
    thread = threading.Thread(target=lambda: made.append(_make_namespace(folders)))
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise SetupError(
            f"The worker is run by root, and a folder cannot be handed to a plain user here ({made[0]}). "
            "Run the worker as another user."
        )
    return made[0]


def try_hand_over(folders: Sequence[Path]) -> int | None:
    """As :func:`hand_over`; ``None`` where it cannot be done, which is said in the log, and by ``perdure doctor``."""
    try:
        return hand_over(folders)
    except SetupError as error:
        log.warning("commands run as root, without capabilities, in a user namespace of their own: %s", error.message)
        return None


def _make_namespace(folders: Sequence[Path]) -> int | OSError:
    try:
        owners = _exchanged_owners()
        libc = ctypes.CDLL(None, use_errno=True)
        _check(libc.unshare(_NEW_MOUNTS))
        _check(libc.mount(b"none", b"/", None, _FOLLOWING, None))
        for folder in folders:
            _mount_exchanged(libc, folder, owners)
        return os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return error


def _mount_exchanged(libc: ctypes.CDLL, folder: Path, owners: int) -> None:
    """Put a view of the folder with exchanged owners in its own place."""
    path = ctypes.c_char_p(os.fsencode(folder))
    view = _check(libc.syscall(_OPEN_TREE, _HERE, path, _CLONE | os.O_CLOEXEC), folder)
    try:
        wanted = struct.pack("=QQQQ", _ID_MAPPED, 0, 0, owners)
        _check(libc.syscall(_MOUNT_SETATTR, view, ctypes.c_char_p(b""), _EMPTY_PATH, wanted, len(wanted)), folder)
        _check(libc.syscall(_MOVE_MOUNT, view, ctypes.c_char_p(b""), _HERE, path, _MOVE_EMPTY_PATH), folder)
    finally:
        os.close(view)


def _check(answer: int, folder: Path | None = None) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder) if folder else None)
    return answer


@cache
def _exchanged_owners() -> int:
    """A user namespace that says who is whom: root is the plain user, everybody below that is who they are."""
    holder = subprocess.Popen(
        [_program("unshare"), "--user", "sh", "-c", "echo; read end"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": _PROGRAMS},
    )
    with holder, contextlib.suppress(BrokenPipeError):
        assert holder.stdin and holder.stdout
        holder.stdout.readline()
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{holder.pid}/{kind}").write_text(f"0 {PLAIN_UID} 1\n1 1 {PLAIN_UID - 1}\n", encoding="ascii")
        return os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    raise OSError("the namespace's process ended")


def _program(name: str) -> str:
    found = shutil.which(name, path=_PROGRAMS)
    if found is None:
        raise SetupError(
            f"The worker is run by root, and {name} is not here to give that up for commands. "
            "Run the worker as another user, or install util-linux."
        )
    return found
