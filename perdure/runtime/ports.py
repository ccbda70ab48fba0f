"""Free ports, and who holds a taken one."""

from __future__ import annotations

import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """Return a loopback port that was free a moment ago; whoever binds it must be ready to ask again."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether ``host:port`` can be bound now. Connections in TIME_WAIT do not count, as for the servers themselves."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError:
            return False
        return True


def holder(port: int) -> str:
    """Return who listens on ``port``, for a person: ``pid 412 (nginx)``, or that it is somebody else's process."""
    inodes = _listening(port)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and _has_socket(folder, inodes):
            return f"pid {folder.name} ({_name(folder)})"
    return "a process of another user" if inodes else "an unknown process"


def _listening(port: int) -> set[str]:
    """Inodes of the sockets that listen on ``port``."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text("ascii").splitlines()[1:]
        except OSError:
            continue  # IPv6 may be off
        for fields in (line.split() for line in lines):
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    return inodes


def _has_socket(folder: Path, inodes: set[str]) -> bool:
    try:
        return any(str(fd.readlink()) in inodes for fd in (folder / "fd").iterdir())
    except OSError:
        return False  # another user's process, or one that just ended


def _name(folder: Path) -> str:
    try:
        return (folder / "comm").read_text().strip()
    except OSError:
        return "gone by now"
