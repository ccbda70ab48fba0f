"""Become another program that the kernel ends together with this process's parent.

Run as a script: ``python -I -S leash.py PARENT_PID PROGRAM ARGUMENT…``. A launcher of its own, because setting this in
the parent between fork and exec is not safe where the parent has threads. SIGKILL, because a parent that died cannot
wait for anybody to be polite; every child is built to survive it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, argv: list[str]) -> None:
    """Tie this process to ``parent`` and replace it by ``argv``."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit(f"The parent {parent} was gone before {argv[0]} could start.")
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
