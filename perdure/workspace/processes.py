"""Commands on the host that can outlive their worker: found again by group, fenced off by a lock on their target."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from perdure.effects.base import Finished
from perdure.errors import EffectUnknown
from perdure.workspace.commands import GRACE, OUTPUT_LIMIT_BYTES, Command, LimitMet, run_command

_PROC = Path("/proc")


def boot_id() -> str:
    """The id of this boot of the machine: process ids mean nothing across boots."""
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class GroupRunner:
    """Implements ``effects.base.Runner``: every command is a session of its own that holds the target's lock."""

    def __init__(
        self,
        lock_path: Path,
        on_start: Callable[[int, str], None],
        *,
        output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    ) -> None:
        """``on_start`` gets (process group id, mark) before the command begins; give both to :func:`end_group`."""
        self._lock_path = lock_path
        self._on_start = on_start
        self._output_limit_bytes = output_limit_bytes

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: bytes = b"",
        limit: timedelta,
        pass_fds: Sequence[int] = (),
    ) -> Finished:
        """Run to the end. Raises ``EffectUnknown`` when the wall limit is met (the group is killed first)."""
        lock = _open_lock(self._lock_path)
        try:
            if not _try_lock(lock, fcntl.LOCK_SH):
                raise EffectUnknown(f"Another process took {self._lock_path} meanwhile. Nothing was started.")
            mark = _mark(lock)
            command = Command(argv, env, cwd, stdin, limit, self._output_limit_bytes, pass_fds=(lock, *pass_fds))
            return run_command(command, on_start=lambda pgid: self._on_start(pgid, mark))
        except LimitMet as met:
            tail = met.output[-500:].decode("utf-8", "replace").strip()
            raise EffectUnknown(f"{met.message} It was killed. It wrote: {tail or 'nothing'}") from None
        finally:
            os.close(lock)


@contextmanager
def take_lock(lock_path: Path, limit: timedelta) -> Iterator[None]:
    """Hold the lock on a target: nobody else does, and no process that a dead holder started is left.

    Taken exclusively, then kept shared, so that the commands of a :class:`GroupRunner` on the same path can share it;
    whoever comes next wants it exclusively and waits for the last of them. The file stays for good: a lock on a
    removed file would fence off nobody.

    Raises:
        EffectUnknown: it was not free within ``limit``.
    """
    lock = _open_lock(lock_path)
    try:
        deadline = time.monotonic() + limit.total_seconds()
        # The change to shared is not atomic: somebody may slip in between, then all is tried again.
        while not (_try_lock(lock, fcntl.LOCK_EX) and _try_lock(lock, fcntl.LOCK_SH)):
            if time.monotonic() >= deadline:
                raise EffectUnknown(
                    f"The target is still locked after {limit} ({lock_path}): a command that an earlier worker started "
                    "may be running. Look for it (`fuser <lock file>`), then say what became of the effect."
                )
            time.sleep(0.02)
        yield
    finally:
        os.close(lock)


def end_group(pgid: int, mark: str) -> bool:
    """End a dead worker's process group; return whether there was one.

    ``mark`` is what ``on_start`` was told. Only a group of this boot with a process that still holds that very lock
    is touched: a process id used again by somebody else never is. SIGTERM first, SIGKILL after some seconds.
    """
    boot, _, lock = mark.partition("/")
    if pgid <= 1 or boot != boot_id() or not _holders(pgid, lock):
        return False
    os.killpg(pgid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE.total_seconds()
    killed = False
    while _holders(pgid, lock):
        if not killed and time.monotonic() >= deadline:
            os.killpg(pgid, signal.SIGKILL)
            killed = True
        time.sleep(0.01)
    return True


def _mark(lock: int) -> str:
    found = os.fstat(lock)
    return f"{boot_id()}/{found.st_dev}:{found.st_ino}"


def _open_lock(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _try_lock(lock: int, how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN):
            return False
        raise
    return True


def _holders(pgid: int, lock: str) -> list[int]:
    """Processes of the group that have the lock's file open."""
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and _group_of(entry) == pgid and _has_open(entry, lock):
            found.append(int(entry.name))
    return found


def _group_of(process: Path) -> int:
    try:
        stat = (process / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return -1  # it ended meanwhile
    return int(stat.rpartition(")")[2].split()[2])


def _has_open(process: Path, lock: str) -> bool:
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:
        return False  # ended meanwhile, or another user's
    return any(_file_id(descriptor) == lock for descriptor in descriptors)


def _file_id(descriptor: Path) -> str:
    try:
        found = descriptor.stat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"
