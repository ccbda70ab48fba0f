"""Trying to get out of the sandbox of this machine, and saying what holds here and what does not."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from perdure.scratch import scratch_folder
from perdure.workspace.control_groups import bounded_group
from perdure.workspace.handover import PLAIN_UID, is_root, try_hand_over
from perdure.workspace.sandbox import Sandbox

_LIMIT = timedelta(seconds=20)

_TRIED = {
    "files outside of the workspace are read": 'cat "$SECRET"',
    "files outside of the workspace are written": 'echo x > "$OUTSIDE/written"',
    "a link leads outside": "cat link",
    "another job's folder is seen": "ls ../other-job",
    "the machine's accounts are read": "cat /etc/shadow",
    "system programs are changed": "test -w /usr/bin",
    "the machine's switches are changed": "test -w /proc/sys/kernel/core_pattern",
    "processes of the machine are reached": 'kill -0 "$WORKER"',
    "the worker's environment is read": 'cat /proc/*/environ | grep -a "$MARK="',
    "the network is reached": 'grep -v -e "^ *lo:" -e "|" /proc/net/dev',
    "the machine's own addresses are reached": 'test "$(readlink /proc/self/ns/net)" = "$NETWORK"',
    "capabilities are left": 'grep CapEff /proc/self/status | grep "[1-9a-f]$"',
    "privileges can be gained": 'grep "NoNewPrivs:.*0" /proc/self/status',
    "system calls are not filtered": '! grep -q "Seccomp:.*2" /proc/self/status',
    "a namespace of one's own is made": "unshare --user true",
    "set-id files are left behind": "touch set-id && chmod 4755 set-id",
}
"""What must not be, and a shell's word for trying it: it ends well when it got through."""


@dataclass(frozen=True)
class Proof:
    """What was seen of a sandbox."""

    backend: str
    """Which one, its version and place."""
    identity: str
    """Who runs commands, as the machine sees it."""
    held: tuple[str, ...]
    """What was tried and did not work."""
    got_through: tuple[str, ...]
    """What was tried and worked."""
    limits: tuple[str, ...]
    """What this machine cannot bound, in sentences; nothing when all of it is bounded."""


def prove(sandbox: Sandbox) -> Proof:
    """Try to get out in several ways, in a fraction of a second. Nothing outside of a scratch folder is touched.

    Raises:
        SetupError: the sandbox does not start.
    """
    with _prey() as (workspace, environment):
        script = "".join(
            f"( {word} ) >/dev/null 2>&1 && echo {number}\n" for number, word in enumerate(_TRIED.values())
        )
        done = sandbox.run(["sh", "-c", f"{script}\necho end"], workspace=workspace, limit=_LIMIT, env=environment)
        said = done.stdout.decode("utf-8", "replace").split()
        through = {int(word) for word in said if word.isdigit()}
        names = list(_TRIED)
        identity = _identity(workspace)
        if (workspace.parent / "outside" / "written").exists():
            through.add(names.index("files outside of the workspace are written"))
    if "end" not in said:
        through = set(range(len(names)))  # what did not run to its end has proven nothing
    return Proof(
        _backend(sandbox),
        identity,
        tuple(name for number, name in enumerate(names) if number not in through),
        tuple(name for number, name in enumerate(names) if number in through),
        _limits(sandbox),
    )


@contextmanager
def _prey() -> Iterator[tuple[Path, dict[str, str]]]:
    """A workspace with something worth taking beside it, and what a command is told of it."""
    with scratch_folder("proof") as folder:
        for name in ("workspace", "outside", "other-job"):
            (folder / name).mkdir()
        secret = folder / "outside" / "secret"
        secret.write_text("secret", encoding="utf-8")
        (folder / "workspace" / "link").symlink_to(secret)
        told = {"SECRET": str(secret), "OUTSIDE": str(secret.parent), "WORKER": str(os.getpid())}
        network = str(Path("/proc/self/ns/net").readlink())
        yield folder / "workspace", {**told, "NETWORK": network, "MARK": "PERDURE_[A-Z_]*"}


def _backend(sandbox: Sandbox) -> str:
    said = subprocess.run([sandbox.program, "--version"], capture_output=True, text=True, timeout=10)
    version = re.search(r"[\d.]+", said.stdout)
    return f"bubblewrap {version[0] if version else 'of an unknown version'} ({sandbox.program})"


def _identity(workspace: Path) -> str:
    mounts = try_hand_over([workspace]) if is_root() else None
    if mounts is not None:
        os.close(mounts)
        return f"uid {PLAIN_UID}, nobody's: the worker is run by root and gives that up for each command"
    if is_root():
        return (
            "root, without capabilities, in a user namespace: the worker is run by root, and folders cannot be handed "
            "to a plain user here (in a container, for example). Run the worker as another user"
        )
    return f"uid {os.getuid()}, as the worker; it has no capability and sees no process of that user"


def _limits(sandbox: Sandbox) -> tuple[str, ...]:
    """What only a watcher bounds."""
    with bounded_group(sandbox.bounds.processes, memory_bytes=sandbox.bounds.memory_bytes) as group:
        found = [] if group else ["the number of processes is watched ten times a second, not bounded by the kernel"]
        if group is None or not group.bounds_memory:
            found.append("memory is bounded for each process, and watched for all together")
    return (*found, "the workspace's size is watched, not bounded by the kernel")
